package rbac_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/rbac"
)

func TestExplain(t *testing.T) {
	named := allow("get", "pods")
	named.ResourceNames = []string{"db"}
	p := policy(t,
		clusterRole("empty"),
		clusterRole("urls", rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"*"}}),
		clusterRole("writer", allow("get", "secrets"), allow("update", "pods"), allow("delete", "nodes")),
		clusterRole("one", allow("update", "pods"), named),
		clusterRole("reader", allow("list", "pods"), allow("get", "pods")),
		roleBinding("shop", "a", "ClusterRole", "writer", user("ann")),
		roleBinding("shop", "b", "ClusterRole", "reader", group("dev"), user("ann")),
		roleBinding("bank", "b", "ClusterRole", "reader", user("ann")),
		clusterRoleBinding("c", "one", user("ann")),
		clusterRoleBinding("d", "missing", user("ann")),
		clusterRoleBinding("e", "empty", group("dev")),
		clusterRoleBinding("f", "urls", group("dev")),
		clusterRoleBinding("g", "reader", user("bob")),
	)
	var got []string
	for _, f := range p.Explain(&getPod) {
		got = append(got, fmt.Sprintf("%s rule %d: %v [%s] %v", f.Grant.Binding, f.Grant.RuleIndex, f.Allows, f.Mismatch, f.Err))
	}
	want := []string{
		`ClusterRoleBinding "c" rule 1: false [resource name] <nil>`,
		`ClusterRoleBinding "d" rule -1: false [] role not found`,
		`ClusterRoleBinding "e" rule -1: false [] <nil>`,
		`ClusterRoleBinding "f" rule 0: false [API group, resource] <nil>`,
		`RoleBinding "shop/a" rule 1: false [verb] <nil>`,
		`RoleBinding "shop/b" rule 1: true [] <nil>`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("explanations:\n%q\nwant:\n%q", got, want)
	}
}

func TestRulesFor(t *testing.T) {
	both := allow("get", "pods")
	both.NonResourceURLs = []string{"/healthz"}
	p := policy(t,
		role("shop", "r", allow("list", "secrets")),
		clusterRole("both", both),
		clusterRoleBinding("b", "both", user("ann"), group("dev")),
		clusterRoleBinding("c", "missing", group("dev")),
		roleBinding("shop", "a", "Role", "r", group("dev")),
		roleBinding("bank", "a", "Role", "r", group("dev")),
	)
	resource, nonResource, err := p.RulesFor("ann", []string{"dev"}, "shop")
	verbs := func(rules []authorizationv1.ResourceRule) (all []string) {
		for _, r := range rules {
			all = append(all, r.Verbs[0]+" "+r.Resources[0])
		}
		return all
	}
	if got := verbs(resource); !slices.Equal(got, []string{"get pods", "list secrets"}) {
		t.Errorf("resource rules = %v", got)
	}
	if len(nonResource) != 1 || nonResource[0].NonResourceURLs[0] != "/healthz" {
		t.Errorf("non-resource rules = %v", nonResource)
	}
	var unresolved rbac.Unresolved
	if !errors.As(err, &unresolved) || unresolved.Binding.Name != "c" {
		t.Errorf("error = %v", err)
	}
	if resource, _, _ := p.RulesFor("ann", []string{"dev"}, ""); len(resource) != 1 {
		t.Errorf("cluster-wide rules = %v", verbs(resource))
	}
}
