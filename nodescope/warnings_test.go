package nodescope_test

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/nodescope"
)

func TestHoles(t *testing.T) {
	core := []string{""}
	anywhere := func(verb string, resources ...string) v1alpha1.NodeScopeSpec {
		return v1alpha1.NodeScopeSpec{Anywhere: []v1alpha1.AnywhereRule{
			{APIGroups: core, Resources: []string{"nodes"}, Verbs: []string{"get"}},
			{APIGroups: core, Resources: resources, Verbs: []string{verb}, ResourceNames: []string{"agent"}},
		}}
	}
	for _, tc := range []struct {
		rule string
		spec v1alpha1.NodeScopeSpec
		want []string
	}{
		{"nothing", v1alpha1.NodeScopeSpec{}, nil},
		{"tokens as the node", v1alpha1.NodeScopeSpec{AsNode: true}, nil},
		{"tokens anywhere", anywhere("create", "serviceaccounts/token"), []string{"TokensAnywhere anywhere[1]"}},
		{"all subresources anywhere", anywhere("*", "*"), []string{"TokensAnywhere anywhere[1]"}},
		{"reads of accounts", anywhere("get", "serviceaccounts/token"), nil},
		{"accounts, not their tokens", anywhere("create", "serviceaccounts"), nil},
		{"paths", v1alpha1.NodeScopeSpec{Anywhere: []v1alpha1.AnywhereRule{{NonResourceURLs: []string{"*"}, Verbs: []string{"*"}}}}, nil},
		{"another group", v1alpha1.NodeScopeSpec{Anywhere: []v1alpha1.AnywhereRule{
			{APIGroups: []string{"example.io"}, Resources: []string{"*"}, Verbs: []string{"*"}},
		}}, nil},
		{"tokens of an account with the name of the node", v1alpha1.NodeScopeSpec{AsNode: true, NamedAsNode: []v1alpha1.NamedRule{
			{APIGroups: core, Resources: []string{"serviceaccounts/token"}, Verbs: []string{"create"}},
		}}, []string{"TokensAnywhere namedAsNode[0]"}},
		{
			"what no rule names",
			v1alpha1.NodeScopeSpec{Otherwise: v1alpha1.Allow},
			[]string{"TokensAnywhere otherwise", "OtherwiseAllowed otherwise"},
		},
		{
			"what no rule names, and tokens as the node",
			v1alpha1.NodeScopeSpec{AsNode: true, Otherwise: v1alpha1.Allow},
			[]string{"OtherwiseAllowed otherwise"},
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			for _, without := range []v1alpha1.Effect{v1alpha1.Deny, v1alpha1.Allow} {
				tc.spec.TokensWithoutNode = without
				var got []string
				for _, h := range nodescope.Warnings(&tc.spec) {
					got = append(got, string(h.Code)+" "+h.Rule)
					says := strings.Contains(h.Message, "tokensWithoutNode")
					if h.Code == nodescope.TokensAnywhere && says != (without == v1alpha1.Allow) {
						t.Errorf("%s: %s", without, h.Message)
					}
				}
				if !slices.Equal(got, tc.want) {
					t.Errorf("got %q, want %q", got, tc.want)
				}
			}
		})
	}
}

func TestRulesThatCreateTokens(t *testing.T) {
	for resource, want := range map[string]bool{"serviceaccounts/token": true, "*/token": true, "*": true, "serviceaccounts": false} {
		rule := rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{"create"}, ResourceNames: []string{"a"},
		}
		if nodescope.CreatesTokens(&rule) != want {
			t.Errorf("%s: %v", resource, !want)
		}
	}
}
