package rbac_test

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/rbac"
)

// labelled returns the role with labels of the value "true".
func labelled(role *rbacv1.ClusterRole, labels ...string) *rbacv1.ClusterRole {
	role.Labels = map[string]string{}
	for _, label := range labels {
		role.Labels[label] = "true"
	}
	return role
}

// aggregated is a cluster role that collects the roles with any of the labels.
func aggregated(name string, labels ...string) *rbacv1.ClusterRole {
	rule := &rbacv1.AggregationRule{}
	for _, label := range labels {
		rule.ClusterRoleSelectors = append(rule.ClusterRoleSelectors,
			metav1.LabelSelector{MatchLabels: map[string]string{label: "true"}})
	}
	return &rbacv1.ClusterRole{ObjectMeta: meta("", name), AggregationRule: rule}
}

func TestAggregation(t *testing.T) {
	getPods, listPods := allow("get", "pods"), allow("list", "pods")
	bind := clusterRoleBinding("b", "all", user("ann"))
	stated := aggregated("all", "x")
	stated.Rules = []rbacv1.PolicyRule{listPods}
	invalid := aggregated("all")
	invalid.AggregationRule.ClusterRoleSelectors = []metav1.LabelSelector{
		{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "x", Operator: "Near"}}},
	}

	tests := []struct {
		name    string
		compute bool
		objects []any
		want    bool
		from    string
	}{
		{
			"an unfilled role grants nothing by itself", false,
			[]any{aggregated("all", "x"), labelled(clusterRole("part", getPods), "x")},
			false, "",
		},
		{
			"computed, it grants what it selects", true,
			[]any{aggregated("all", "x"), labelled(clusterRole("part", getPods), "x")},
			true, "part",
		},
		{
			"and nothing else", true,
			[]any{aggregated("all", "x"), labelled(clusterRole("part", getPods), "y")},
			false, "",
		},
		{
			"any selector selects", true,
			[]any{aggregated("all", "y", "x"), labelled(clusterRole("part", getPods), "x")},
			true, "part",
		},
		{
			"no selector selects nothing", true,
			[]any{aggregated("all"), labelled(clusterRole("part", getPods), "x")},
			false, "",
		},
		{
			"stated rules are kept", true,
			[]any{stated, labelled(clusterRole("part", getPods), "x")},
			false, "",
		},
		{
			"aggregations nest", true,
			[]any{aggregated("all", "x"), labelled(aggregated("some", "y"), "x"), labelled(clusterRole("part", getPods), "y")},
			true, "part",
		},
		{
			"a role may select itself", true,
			[]any{labelled(aggregated("all", "x"), "x"), labelled(clusterRole("part", getPods), "x")},
			true, "part",
		},
		{
			"roles may select each other", true,
			[]any{
				labelled(aggregated("all", "y"), "x"), labelled(aggregated("some", "x", "z"), "y"),
				labelled(clusterRole("part", getPods), "z"),
			},
			true, "part",
		},
		{
			"of equal rules the first role's counts", true,
			[]any{aggregated("all", "x"), labelled(clusterRole("part-b", getPods), "x"), labelled(clusterRole("part-a", getPods), "x")},
			true, "part-a",
		},
		{
			"an invalid selector grants nothing", true,
			[]any{invalid, labelled(clusterRole("part", getPods), "x")},
			false, "",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var opts []rbac.Option
			if tt.compute {
				opts = append(opts, rbac.ComputeAggregation())
			}
			got := fill(t, rbac.NewPolicy(opts...), append(tt.objects, bind)...).Evaluate(&getPod)
			if got.Allowed != tt.want || got.Grant.AggregatedFrom != tt.from {
				t.Errorf("decision = %+v", got)
			}
		})
	}
}

func TestComputedAggregationFollowsChanges(t *testing.T) {
	p := fill(t, rbac.NewPolicy(rbac.ComputeAggregation()),
		aggregated("all", "x"), clusterRoleBinding("b", "all", user("ann")))
	if p.Evaluate(&getPod).Allowed {
		t.Fatal("allowed by nothing")
	}
	p.SetClusterRole(labelled(clusterRole("part", allow("get", "pods")), "x"))
	got := p.Evaluate(&getPod)
	want := `rule 0 of ClusterRole "all" (from ClusterRole "part"), which ClusterRoleBinding "b" grants to User "ann"`
	if !got.Allowed || got.Grant.String() != want {
		t.Fatalf("decision = %+v", got)
	}
	p.DeleteClusterRole("part")
	if p.Evaluate(&getPod).Allowed {
		t.Error("allowed by a deleted role")
	}
}

func TestComputedAggregationDropsEqualRules(t *testing.T) {
	p := fill(t, rbac.NewPolicy(rbac.ComputeAggregation()),
		aggregated("all", "x", "y"), clusterRoleBinding("b", "all", user("ann")),
		labelled(clusterRole("b", allow("get", "pods"), allow("list", "pods")), "x", "y"),
		labelled(clusterRole("a", allow("list", "pods")), "y"))
	rules, _, err := p.RulesFor("ann", nil, "")
	if err != nil || len(rules) != 2 || rules[0].Verbs[0] != "get" || rules[1].Verbs[0] != "list" {
		t.Errorf("rules = %v, error %v", rules, err)
	}
}

func TestInvalidAggregationIsReported(t *testing.T) {
	role := aggregated("all")
	role.AggregationRule.ClusterRoleSelectors = []metav1.LabelSelector{
		{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "x", Operator: "Near"}}},
	}
	p := fill(t, rbac.NewPolicy(rbac.ComputeAggregation()), role, clusterRoleBinding("b", "all", user("ann")))
	got := p.Evaluate(&getPod).Unresolved
	want := `ClusterRoleBinding "b" to ClusterRole "all": cluster role "all": aggregation rule, selector 0: "Near" is not a ` +
		`valid label selector operator`
	if len(got) != 1 || got[0].Error() != want {
		t.Errorf("unresolved = %v", got)
	}
}
