package nodeidentity_test

import (
	"testing"

	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

func TestServiceAccount(t *testing.T) {
	for user, want := range map[string][2]string{
		"system:serviceaccount:kube-system:cilium": {"kube-system", "cilium"},
		"system:serviceaccount:a:b:c":              {"a", "b:c"},
		"system:serviceaccount:a:":                 {},
		"system:serviceaccount::a":                 {},
		"system:serviceaccount:a":                  {},
		"system:serviceaccounts:a:b":               {},
		"system:node:a":                            {},
		"":                                         {},
	} {
		namespace, name, ok := nodeidentity.ServiceAccount(user)
		if want == [2]string{} {
			if ok {
				t.Errorf("%q is account %q %q", user, namespace, name)
			}
			continue
		}
		if !ok || namespace != want[0] || name != want[1] {
			t.Errorf("%q is %q %q %v, want %v", user, namespace, name, ok, want)
		}
		if nodeidentity.ServiceAccountUser(namespace, name) != user {
			t.Errorf("%q is not the user of its account", user)
		}
	}
}

func TestTokenNode(t *testing.T) {
	for _, tc := range []struct {
		rule      string
		extra     map[string][]string
		node      string
		ambiguous bool
	}{
		{"a token of a pod", map[string][]string{nodeidentity.ExtraNode: {"a"}, nodeidentity.ExtraPod: {"web"}}, "a", false},
		{"a token without a node", map[string][]string{nodeidentity.ExtraCredential: {"JTI=1"}}, "", false},
		{"no extra values", nil, "", false},
		{"two nodes", map[string][]string{nodeidentity.ExtraNode: {"a", "b"}}, "", true},
		{"an empty name", map[string][]string{nodeidentity.ExtraNode: {""}}, "", true},
		{"a key without values", map[string][]string{nodeidentity.ExtraNode: {}}, "", true},
		{"a key in another case", map[string][]string{"Authentication.kubernetes.io/node-name": {"a"}}, "", false},
	} {
		if node, ambiguous := nodeidentity.TokenNode(tc.extra); node != tc.node || ambiguous != tc.ambiguous {
			t.Errorf("%s: %q %v", tc.rule, node, ambiguous)
		}
	}
}

func TestAsksForAssociatedNode(t *testing.T) {
	keys := map[string][]string{nodeidentity.ExtraAssociatedNodeKeys: {nodeidentity.ExtraCredential, nodeidentity.ExtraNode}}
	for _, tc := range []struct {
		rule, verb string
		extra      map[string][]string
		want       bool
	}{
		{"the mode", "impersonate:associated-node", keys, true},
		{"a verb in the mode", "impersonate-on:associated-node:list", keys, true},
		{"another mode", "impersonate-on:arbitrary-node:list", keys, false},
		{"another verb", "list", keys, false},
		{"a token without a node", "impersonate:associated-node", map[string][]string{
			nodeidentity.ExtraAssociatedNodeKeys: {nodeidentity.ExtraCredential},
		}, false},
		{"no keys", "impersonate:associated-node", nil, false},
	} {
		if got := nodeidentity.AsksForAssociatedNode(tc.verb, tc.extra); got != tc.want {
			t.Errorf("%s: %v", tc.rule, got)
		}
	}
}
