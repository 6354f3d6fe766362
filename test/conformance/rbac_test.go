package conformance

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/kubernetes/pkg/registry/rbac/validation"
	intreerbac "k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"

	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/test/conformance/generate"
	"github.com/node-authorizer/node-authorizer/test/conformance/intree"
)

// TestRandomPolicies puts questions about random roles and bindings to the
// in-tree RBAC authorizer and to ours.
func TestRandomPolicies(t *testing.T) {
	b := readBudget(t)
	asked, allowed, divergences := 0, 0, 0
	for _, seed := range b.seeds(b.clusters) {
		p := generate.NewPolicy(seed)
		ours, theirs := policyOf(p, generate.NewPolicy(seed+1)), inTreePolicy(p)
		for _, r := range p.Requests(seed, b.requests) {
			asked++
			got := ours.Evaluate(requestOf(&r))
			d, reason, err := theirs.Authorize(context.Background(), intree.Attributes(&r))
			if err != nil {
				t.Fatal(err)
			}
			if d == authorizer.DecisionAllow {
				allowed++
			} else if unresolved := reason != ""; unresolved != (len(got.Unresolved) > 0) {
				divergences++
				t.Errorf("seed %d: %s\n  in-tree could not resolve: %q\n  ours: %v", seed, &r, reason, got.Unresolved)
			}
			if got.Allowed != (d == authorizer.DecisionAllow) {
				divergences++
				t.Errorf("seed %d: %s\n  in-tree: %v %s\n  ours: %t %s", seed, &r, d, reason, got.Allowed, got.Grant)
			}
			divergences += compareRules(t, seed, ours, theirs, &r)
			if divergences > maxDivergences {
				t.FailNow()
			}
		}
	}
	t.Logf("RBAC: %d questions over %d policies, %d allowed (%.1f%%): %d divergences",
		asked, b.clusters, allowed, 100*float64(allowed)/float64(asked), divergences)
	if allowed == 0 || allowed == asked {
		t.Errorf("%d of %d answers are Allow: the questions exercise one outcome only", allowed, asked)
	}
}

// policyOf returns our policy with p's objects, after it has held other's,
// which have the same names and other contents.
func policyOf(p, other *generate.Policy) *rbac.Policy {
	policy := rbac.NewPolicy()
	fill(policy, other)
	for _, role := range other.Roles {
		policy.DeleteRole(role.Namespace, role.Name)
	}
	for _, binding := range other.RoleBindings {
		policy.DeleteRoleBinding(binding.Namespace, binding.Name)
	}
	fill(policy, p)
	for _, role := range other.ClusterRoles {
		policy.DeleteClusterRole(role.Name)
	}
	for _, binding := range other.ClusterRoleBindings {
		policy.DeleteClusterRoleBinding(binding.Name)
	}
	fill(policy, p)
	return policy
}

func fill(policy *rbac.Policy, p *generate.Policy) {
	for _, role := range p.Roles {
		policy.SetRole(role)
	}
	for _, binding := range p.RoleBindings {
		policy.SetRoleBinding(binding)
	}
	for _, role := range p.ClusterRoles {
		policy.SetClusterRole(role)
	}
	for _, binding := range p.ClusterRoleBindings {
		policy.SetClusterRoleBinding(binding)
	}
}

func inTreePolicy(p *generate.Policy) *intreerbac.RBACAuthorizer {
	_, roles := validation.NewTestRuleResolver(p.Roles, p.RoleBindings, p.ClusterRoles, p.ClusterRoleBindings)
	return intreerbac.New(roles, roles, roles, roles)
}

// compareRules compares the rules that both list for the user, in any order.
func compareRules(t *testing.T, seed uint64, ours *rbac.Policy, theirs *intreerbac.RBACAuthorizer, r *generate.Request) int {
	t.Helper()
	resource, nonResource, err := ours.RulesFor(r.User, r.Groups, r.Namespace)
	subject := &user.DefaultInfo{Name: r.User, Groups: r.Groups}
	theirResource, theirNonResource, _, theirErr := theirs.RulesFor(context.Background(), subject, r.Namespace)
	var got, want []string
	for _, rule := range resource {
		got = append(got, lineOf(t, rule))
	}
	for _, rule := range nonResource {
		got = append(got, lineOf(t, rule))
	}
	for _, rule := range theirResource {
		want = append(want, lineOf(t, authorizationv1.ResourceRule{
			Verbs: rule.GetVerbs(), APIGroups: rule.GetAPIGroups(),
			Resources: rule.GetResources(), ResourceNames: rule.GetResourceNames(),
		}))
	}
	for _, rule := range theirNonResource {
		want = append(want, lineOf(t, authorizationv1.NonResourceRule{Verbs: rule.GetVerbs(), NonResourceURLs: rule.GetNonResourceURLs()}))
	}
	slices.Sort(got)
	slices.Sort(want)
	if slices.Equal(got, want) && (err == nil) == (theirErr == nil) {
		return 0
	}
	t.Errorf("seed %d: rules of %q %q in %q:\n  in-tree: %q (%v)\n  ours: %q (%v)", seed, r.User, r.Groups, r.Namespace, want, theirErr,
		got, err)
	return 1
}

func lineOf(t *testing.T, rule any) string {
	t.Helper()
	text, err := json.Marshal(rule)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
