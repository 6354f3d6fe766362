package nodeauthz

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/verdict"
)

func TestEveryRefusalHasARemedy(t *testing.T) {
	allowed := []verdict.Code{PathToObject, OwnName, OwnFieldSelector, GrantedToNodes}
	for _, code := range declaredCodes(t) {
		if _, has := remedies[code]; has == slices.Contains(allowed, code) {
			t.Errorf("%s has a remedy: %v", code, has)
		}
	}
}

// shown writes a remedy as lines: each change without the value of a whole object, the warning, or
// why there is none.
func shown(r verdict.Remedy) string {
	var lines []string
	for _, c := range r.Changes {
		value := string(c.Value)
		if c.Of == verdict.OfObject {
			value = c.Object.Kind + " " + c.Object.Namespace
		}
		lines = append(lines, strings.TrimSpace(string(c.Op)+" "+c.Path+" "+value))
	}
	if r.None != "" {
		lines = append(lines, "none: "+r.None)
	}
	return strings.Join(lines, "\n")
}

func TestRemedy(t *testing.T) {
	g := graph.New()
	g.SetPod(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "api"},
		Spec: corev1.PodSpec{
			NodeName: "a", ServiceAccountName: "api", ImagePullSecrets: []corev1.LocalObjectReference{{Name: "db"}, {Name: "web"}},
		},
	})
	role, clusterRole := "add  Role shop\nadd  RoleBinding shop", "add  ClusterRole\nadd  ClusterRoleBinding"
	for _, tc := range []struct {
		rule    string
		req     access.Request
		of      string // a version other than the latest
		want    string
		warning string // a part of it
	}{
		{"nothing for what is allowed", access.Request{Verb: "get", Resource: "secrets", Namespace: "shop", Name: "db"}, "", "", ""},
		{
			"a role for an object without a path",
			access.Request{Verb: "get", Resource: "secrets", Namespace: "shop", Name: "other"},
			"", role, "then get secrets shop/other;",
		},
		{
			"the first object that the node reaches",
			access.Request{Verb: "list", Resource: "secrets", Namespace: ""},
			"",
			`add /request/namespace "shop"` + "\n" + `add /request/name "db"`, "is related to 1 more",
		},
		{
			"a cluster role with a clear warning if the node reaches none",
			access.Request{Verb: "list", Resource: "configmaps"},
			"", clusterRole, "all configmaps of the cluster",
		},
		{
			"rights that lead to the cluster say so",
			access.Request{Verb: "escalate", Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
			"", clusterRole, "which can give them the whole cluster",
		},
		{
			"no role in a namespace that cannot exist",
			access.Request{Verb: "list", Resource: "deployments", Group: "apps", Namespace: "a b"},
			"",
			`none: no namespace can have the name "a b"`, "",
		},
		{
			"no role for tokens",
			access.Request{Verb: "create", Resource: "serviceaccounts", Subresource: "token", Namespace: "shop", Name: "web"},
			"", "none: nodes get tokens only for service accounts of their pods, with any right: " +
				"a pod that is bound to node a must run as the service account", "",
		},
		{
			"the selector of the node replaces that of another node, and other requirements stay",
			access.Request{Verb: "list", Resource: "pods", FieldSelector: fields.Requirements{
				{Field: "spec.nodeName", Operator: selection.Equals, Value: "b"},
				{Field: "status.phase", Operator: selection.NotEquals, Value: "Failed"},
			}},
			"", `replace /request/fieldSelector "status.phase!=Failed,spec.nodeName=a"`, "",
		},
		{"the own node", access.Request{Verb: "get", Resource: "nodes", Name: "b"}, "", `replace /request/name "a"`, ""},
		{
			"the lease's namespace, then its name",
			access.Request{Verb: "get", Group: "coordination.k8s.io", Resource: "leases", Namespace: "x", Name: "b"},
			"", `replace /request/namespace "kube-node-lease"` + "\n" + `replace /request/name "a"`, "",
		},
		{
			"a gate that is sufficient",
			access.Request{Verb: "list", Group: "certificates.k8s.io", Resource: "clustertrustbundles"},
			"1.36",
			"replace  true", "changes the whole cluster",
		},
		{
			"a role instead of a gate that is not",
			access.Request{Verb: "get", Group: "certificates.k8s.io", Resource: "podcertificaterequests", Namespace: "shop", Name: "x"},
			"1.36",
			role, "then get podcertificaterequests",
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			minor := kubeversion.Latest
			if tc.of != "" {
				var err error
				if minor, err = kubeversion.Parse(tc.of); err != nil {
					t.Fatal(err)
				}
			}
			tc.req.User, tc.req.Groups, tc.req.ResourceRequest = "system:node:a", []string{"system:nodes"}, true
			got := New(g, kubeversion.For(minor)).Remedy(&tc.req)
			if shown(got) != tc.want || !strings.Contains(got.Warning, tc.warning) || tc.warning == "" && got.Warning != "" {
				t.Errorf("got\n%s\nwarning %q\nwant\n%s\nwarning with %q", shown(got), got.Warning, tc.want, tc.warning)
			}
		})
	}
}

// TestRemedyLeavesTheRequest: a remedy is made on a copy.
func TestRemedyLeavesTheRequest(t *testing.T) {
	selector := fields.Requirements{{Field: "spec.nodeName", Operator: selection.Equals, Value: "b"}}
	groups := append(make([]string, 0, 4), "devs")
	req := access.Request{
		User: "system:node:a", Groups: groups, Verb: "list", Resource: "pods", ResourceRequest: true, FieldSelector: selector,
	}
	New(graph.New(), kubeversion.For(kubeversion.Latest)).Remedy(&req)
	if len(req.Groups) != 1 || groups[:2][1] != "" || selector[0].Value != "b" || len(req.FieldSelector) != 1 {
		t.Errorf("the request is changed: %+v, groups %q", req, groups[:2])
	}
}
