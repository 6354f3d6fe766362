package rbac_test

import (
	"fmt"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/rbac"
)

// Stated rules are not changed. Differences from the rules that a controller would
// write are found, whether or not the policy computes aggregation.
func TestAggregationDifferences(t *testing.T) {
	get, list, watch := allow("get", "pods"), allow("list", "pods"), allow("watch", "pods")
	states := func(role *rbacv1.ClusterRole, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
		role.Rules = rules
		return role
	}
	unreadable := states(aggregated("all"), get)
	unreadable.AggregationRule.ClusterRoleSelectors = []metav1.LabelSelector{
		{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "x", Operator: "Near"}}},
	}
	for name, tc := range map[string]struct {
		objects []any
		want    []rbac.AggregationDifference
	}{
		"no rules: they are computed, or not written yet": {
			[]any{aggregated("all", "x"), labelled(clusterRole("a", get), "x")}, nil,
		},
		"the rules that are selected": {
			[]any{
				states(aggregated("all", "x"), get, list), labelled(clusterRole("a", get), "x"),
				labelled(clusterRole("b", list), "x"),
			}, nil,
		},
		"the same in another order": {
			[]any{
				states(aggregated("all", "x"), list, get), labelled(clusterRole("a", get), "x"),
				labelled(clusterRole("b", list), "x"),
			}, nil,
		},
		"a rule that no selected role has": {
			[]any{states(aggregated("all", "x"), get, watch), labelled(clusterRole("a", get), "x")},
			[]rbac.AggregationDifference{{Role: "all", Extra: 1}},
		},
		"a missing rule": {
			[]any{states(aggregated("all", "x"), get), labelled(clusterRole("a", get, list), "x")},
			[]rbac.AggregationDifference{{Role: "all", Missing: 1}},
		},
		"roles that do not exist": {
			[]any{states(aggregated("all", "x"), get, list), clusterRole("a", get)},
			[]rbac.AggregationDifference{{Role: "all", Extra: 2}},
		},
		"a role that selects itself does not justify its rules": {
			[]any{states(labelled(aggregated("all", "x"), "x"), get)},
			[]rbac.AggregationDifference{{Role: "all", Extra: 1}},
		},
		"through another aggregated role without rules": {
			[]any{states(aggregated("all", "y"), get), labelled(aggregated("some", "x"), "y"), labelled(clusterRole("a", get), "x")}, nil,
		},
		"through one whose own rules differ": {
			[]any{
				states(aggregated("all", "y"), get), states(labelled(aggregated("some", "x"), "y"), list),
				labelled(clusterRole("a", get), "x"),
			},
			[]rbac.AggregationDifference{{Role: "some", Missing: 1, Extra: 1}},
		},
		"an invalid selector": {[]any{unreadable, labelled(clusterRole("a", list), "x")}, nil},
		"no aggregation":      {[]any{clusterRole("all", get)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for _, opts := range [][]rbac.Option{nil, {rbac.ComputeAggregation()}} {
				got, complete := fill(t, rbac.NewPolicy(opts...), tc.objects...).AggregationDifferences()
				if !complete || !slices.Equal(got, tc.want) {
					t.Errorf("got %+v, complete %t; want %+v", got, complete, tc.want)
				}
			}
		})
	}
}

// The comparison of thousands of roles that all select each other is bounded.
func TestAggregationDifferencesAreBounded(t *testing.T) {
	p := rbac.NewPolicy()
	for i := range 1500 {
		role := labelled(aggregated(fmt.Sprint("r", i), "x"), "x")
		role.Rules = []rbacv1.PolicyRule{allow("get", "pods")}
		p.SetClusterRole(role)
	}
	if _, complete := p.AggregationDifferences(); complete {
		t.Error("the comparison is reported as complete")
	}
}
