package chain

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// TestExtraChecksOfNodeRestriction asks about an audience, as for a token that a
// node requests for one of its pods.
func TestExtraChecksOfNodeRestriction(t *testing.T) {
	p := rbac.NewPolicy()
	p.SetClusterRole(&rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "audiences"},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"request-serviceaccounts-token-audience"}, APIGroups: []string{""}, Resources: []string{"vault"}, ResourceNames: []string{"api"}}},
	})
	p.SetClusterRoleBinding(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "audiences"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "audiences"},
		Subjects: []rbacv1.Subject{{Kind: "Group", Name: "system:nodes"}},
	})
	access := func(audience, account string) *noderestriction.Access {
		return &noderestriction.Access{
			User: "system:node:a", Groups: []string{"system:nodes"}, Verb: "request-serviceaccounts-token-audience",
			Version: "v1", Resource: audience, Namespace: "shop", Name: account,
		}
	}
	h := newHook(t)
	for _, tc := range []struct {
		rule    string
		chain   Chain
		access  *noderestriction.Access
		allowed bool
		reason  string
		fails   bool
	}{
		{"a role allows it", Chain{RBAC(p)}, access("vault", "api"), true, `RBAC: allowed by rule 0 of ClusterRole "audiences", which ClusterRoleBinding "audiences" grants to Group "system:nodes"`, false},
		{"no role allows it", Chain{Masters(), RBAC(p)}, access("bank", "api"), false, "RBAC: no role that is bound to the user allows it", false},
		{"all who were asked are heard", Chain{Masters(), cluster()[1], RBAC(p)}, access("vault", "other"), false, "Node: nodes have no access to this resource; RBAC: no role that is bound to the user allows it", false},
		{"a webhook is asked", built(t, Parts{}, h.yaml("a", hookOptions{})), access("vault", "allow"), true, "a: the name is allow", false},
		{"an error is no yes", built(t, Parts{}, h.yaml("a", hookOptions{})), access("vault", "garbage"), false, "", true},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			allowed, reason, err := tc.chain.Authorize(t.Context(), tc.access)
			if allowed != tc.allowed || (err != nil) != tc.fails || tc.reason != "" && reason != tc.reason {
				t.Errorf("got %t, %q, %v", allowed, reason, err)
			}
		})
	}
}
