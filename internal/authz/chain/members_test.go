package chain

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// cluster has pod shop/api on node a, which pulls with secret shop/pull, and
// roles for the nodes.
func cluster() Chain {
	g := graph.New()
	g.SetPod(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "api"},
		Spec:       corev1.PodSpec{NodeName: "a", ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}}},
	})
	p := rbac.NewPolicy()
	p.SetClusterRole(&rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "extra"},
		Rules: []rbacv1.PolicyRule{
			{Verbs: []string{"get"}, APIGroups: []string{"example.com"}, Resources: []string{"gadgets"}, ResourceNames: []string{"one"}},
			{Verbs: []string{"get"}, NonResourceURLs: []string{"/healthz"}},
		},
	})
	bind := func(name, role string) {
		p.SetClusterRoleBinding(&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{Kind: "Group", Name: "system:nodes"}},
		})
	}
	bind("extra", "extra")
	bind("lost", "gone")
	return Chain{Masters(), Node(nodeauthz.New(g, kubeversion.For(kubeversion.Latest))), RBAC(p)}
}

func TestNodeThenRBAC(t *testing.T) {
	node := func(r access.Request) access.Request {
		r.User, r.Groups, r.ResourceRequest = "system:node:a", []string{"system:nodes"}, r.Path == ""
		return r
	}
	for _, tc := range []struct {
		rule     string
		req      access.Request
		decision verdict.Decision
		by       string
		code     verdict.Code // of the last asked
		says     string
	}{
		{
			"Node allows what its pods need", node(access.Request{Verb: "get", Resource: "secrets", Namespace: "shop", Name: "pull"}),
			verdict.Allow, NameNode, nodeauthz.PathToObject, "secret shop/pull",
		},
		{
			"RBAC allows what Node does not", node(access.Request{Verb: "get", Group: "example.com", Resource: "gadgets", Name: "one"}),
			verdict.Allow, NameRBAC, CodeBindingAllows, `ClusterRole "extra"`,
		},
		{
			"RBAC allows URLs", node(access.Request{Verb: "get", Path: "/healthz"}),
			verdict.Allow, NameRBAC, CodeBindingAllows, `ClusterRole "extra"`,
		},
		{
			"a role that does not exist grants nothing", node(access.Request{
				Verb: "get", Resource: "secrets", Namespace: "shop", Name: "other",
			}),
			verdict.NoOpinion, "", CodeNoBindingAllows, "none of the 2 bindings that apply to user system:node:a allows it",
		},
		{
			"a user without bindings",
			access.Request{User: "ada", Verb: "get", Resource: "pods", ResourceRequest: true},
			verdict.NoOpinion, "", CodeNoBindingAllows, "no role is bound to user ada or its groups",
		},
		{
			"system:masters may do everything",
			access.Request{User: "root", Groups: []string{"system:masters"}, Verb: "get", Resource: "pods", ResourceRequest: true},
			verdict.Allow, NameMasters, CodePrivilegedGroup, "system:masters",
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			c := cluster()
			decision, by, err := c.Decide(t.Context(), &tc.req)
			if err != nil || decision != tc.decision || by != tc.by {
				t.Errorf("Decide = %s by %q, %v", decision, by, err)
			}
			result, err := c.Explain(t.Context(), &tc.req)
			if err != nil || result.Decision != tc.decision || result.DecidedBy != tc.by {
				t.Fatalf("Explain = %+v, %v", result, err)
			}
			last := result.Opinions[len(result.Opinions)-1]
			if last.Code != tc.code || !strings.Contains(last.Message, tc.says) {
				t.Errorf("last opinion = %+v", last)
			}
		})
	}
}

func TestRBACHints(t *testing.T) {
	for name, want := range map[string]string{
		"two": "it differs in the resource name",
		"":    "it differs in the resource name",
	} {
		opinion, err := cluster()[2].Authorize(t.Context(), &access.Request{
			User: "system:node:a", Groups: []string{"system:nodes"},
			Verb: "get", Group: "example.com", Resource: "gadgets", Name: name, ResourceRequest: true,
		}, Full)
		if err != nil || !strings.HasSuffix(opinion.Hint, want) {
			t.Errorf("hint for %q = %q, %v", name, opinion.Hint, err)
		}
	}
}

func TestRuleText(t *testing.T) {
	for want, rule := range map[string]rbacv1.PolicyRule{
		"get,list pods": {Verbs: []string{"get", "list"}, APIGroups: []string{""}, Resources: []string{"pods"}},
		"get gadgets in example.com named one": {
			Verbs: []string{"get"}, APIGroups: []string{"example.com"}, Resources: []string{"gadgets"},
			ResourceNames: []string{"one"},
		},
		"get /healthz,/livez": {Verbs: []string{"get"}, NonResourceURLs: []string{"/healthz", "/livez"}},
		"* * in *":            {Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
	} {
		if got := ruleText(rbac.Grant{Rule: &rule}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
