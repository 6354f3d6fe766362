package rbac_test

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/rbac"
)

func TestAggregateSetsWhatTheControllerWould(t *testing.T) {
	getPods, listPods := allow("get", "pods"), allow("list", "pods")
	filled := func(name, label string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
		role := aggregated(name, label)
		role.Rules = rules
		return role
	}
	for _, tt := range []struct {
		name    string
		objects []any
		changed []*rbacv1.ClusterRole
		set     []string
		want    bool
	}{
		{
			"a role that selects an added one gets its rules",
			[]any{filled("all", "x", listPods), labelled(clusterRole("part", getPods), "x")},
			[]*rbacv1.ClusterRole{labelled(clusterRole("part"), "x")},
			[]string{"all"},
			true,
		},
		{
			"rules of a removed role are gone",
			[]any{filled("all", "x", getPods)},
			[]*rbacv1.ClusterRole{labelled(clusterRole("part", getPods), "x")},
			[]string{"all"},
			false,
		},
		{
			"a role that selects another one keeps its rules",
			[]any{filled("all", "y", getPods), labelled(clusterRole("part", listPods), "x")},
			[]*rbacv1.ClusterRole{labelled(clusterRole("part"), "x")},
			nil, true,
		},
		{
			"a change goes through roles that are aggregated too",
			[]any{
				filled("all", "x", listPods), labelled(filled("some", "y", listPods), "x"),
				labelled(clusterRole("part", getPods), "y"),
			},
			[]*rbacv1.ClusterRole{labelled(clusterRole("part"), "y")},
			[]string{"all", "some"},
			true,
		},
		{
			"an added aggregated role loses rules of its own",
			[]any{filled("all", "x", getPods)},
			[]*rbacv1.ClusterRole{aggregated("all", "x")},
			[]string{"all"},
			false,
		},
		{
			"a role whose label is gone no longer counts",
			[]any{filled("all", "x", getPods), clusterRole("part", getPods)},
			[]*rbacv1.ClusterRole{labelled(clusterRole("part"), "x"), clusterRole("part")},
			[]string{"all"},
			false,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := fill(t, rbac.NewPolicy(), append(tt.objects, clusterRoleBinding("b", "all", user("ann")))...)
			if got := p.Aggregate(tt.changed); !slices.Equal(got, tt.set) {
				t.Errorf("set %v, want %v", got, tt.set)
			}
			if got := p.Evaluate(&getPod); got.Allowed != tt.want {
				t.Errorf("decision = %+v", got)
			}
		})
	}
}
