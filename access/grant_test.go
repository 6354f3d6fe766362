package access_test

import (
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/access"
)

func TestGrant(t *testing.T) {
	for _, tc := range []struct {
		rule string
		req  access.Request
		role string // the role's JSON from its rules on
		kind string
	}{
		{
			"one object in one namespace",
			access.Request{ResourceRequest: true, Verb: "get", Resource: "secrets", Namespace: "shop", Name: "db"},
			`"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["secrets"],"resourceNames":["db"]}]}`, "Role",
		},
		{
			"a subresource of a cluster-scoped object",
			access.Request{ResourceRequest: true, Verb: "patch", Group: "storage.k8s.io", Resource: "csinodes", Subresource: "status"},
			`"rules":[{"verbs":["patch"],"apiGroups":["storage.k8s.io"],"resources":["csinodes/status"]}]}`, "ClusterRole",
		},
		{
			"a create has no name when it is authorized",
			access.Request{ResourceRequest: true, Verb: "create", Resource: "secrets", Namespace: "shop", Name: "db"},
			`"rules":[{"verbs":["create"],"apiGroups":[""],"resources":["secrets"]}]}`, "Role",
		},
		{
			"a create of a subresource has one",
			access.Request{ResourceRequest: true, Verb: "create", Resource: "pods", Subresource: "exec", Namespace: "shop", Name: "db"},
			`"rules":[{"verbs":["create"],"apiGroups":[""],"resources":["pods/exec"],"resourceNames":["db"]}]}`, "Role",
		},
		{
			"a path",
			access.Request{Verb: "get", Path: "/metrics"},
			`"rules":[{"verbs":["get"],"nonResourceURLs":["/metrics"]}]}`, "ClusterRole",
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			tc.req.User = "system:node:a"
			changes := tc.req.Grant()
			if len(changes) != 2 || changes[0].Object.Kind != tc.kind || changes[1].Object.Kind != tc.kind+"Binding" {
				t.Fatalf("got %+v", changes)
			}
			role, binding := string(changes[0].Value), string(changes[1].Value)
			if !strings.HasSuffix(role, tc.role) {
				t.Errorf("got %s, want %s", role, tc.role)
			}
			for _, part := range []string{
				`"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"system:node:a"}]`,
				`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"` + tc.kind + `","name":"` + changes[0].Object.Name + `"}`,
			} {
				if !strings.Contains(binding, part) {
					t.Errorf("got %s, want %s", binding, part)
				}
			}
		})
	}
}

// TestGrantNamesAreNamesOfRoles: a name is a segment of a path, and requests that differ have other names.
func TestGrantNamesAreNamesOfRoles(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"db", "a/b", "a%b", "a-b", "..", strings.Repeat("x", 300), strings.Repeat("x", 301), "é", "\n", ""} {
		req := access.Request{User: "system:node:" + name, ResourceRequest: true, Verb: "get", Resource: "secrets", Name: name}
		got := req.Grant()[0].Object.Name
		if strings.ContainsAny(got, "/%\n é") || len(got) > 120 || got == "." || got == ".." {
			t.Errorf("%q: the role is named %q", name, got)
		}
		if other, twice := seen[got]; twice {
			t.Errorf("%q and %q have the role %q", name, other, got)
		}
		seen[got] = name
	}
}
