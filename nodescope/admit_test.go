package nodescope_test

import (
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/nodescope"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// write returns a write of the agent with the token of node a: "CREATE leases.coordination.k8s.io/status
// kube-node-lease/a". A name that ends in "-" is a generateName.
func write(text string, objects ...runtime.Object) *noderestriction.Request {
	parts := strings.Fields(text)
	req := &noderestriction.Request{
		User: user, Extra: map[string][]string{nodeidentity.ExtraNode: {"a"}}, Operation: noderestriction.Operation(parts[0]),
	}
	resource, subresource, _ := strings.Cut(parts[1], "/")
	req.Resource, req.Group, _ = strings.Cut(resource, ".")
	req.Subresource = subresource
	if len(parts) > 2 {
		req.Namespace, req.Name = object(parts[2])
	}
	if len(objects) > 0 {
		req.Object = objects[0]
	}
	if len(objects) > 1 {
		req.OldObject = objects[1]
	}
	return req
}

// custom returns an object of a custom resource.
func custom(name, generateName string) runtime.Object {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetName(name)
	o.SetGenerateName(generateName)
	return o
}

func node(name string, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, f := range change {
		f(n)
	}
	return n
}

func TestAdmit(t *testing.T) {
	tainted := func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}} }
	labelled := func(n *corev1.Node) { n.Labels = map[string]string{"node-restriction.kubernetes.io/x": "y"} }
	lease := func(name string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-node-lease", Name: name}}
	}
	for _, tc := range []struct {
		rule  string
		req   *noderestriction.Request
		code  verdict.Code
		which string
	}{
		{"a create of the node's object", write("CREATE ciliumnodes.cilium.io a"), nodescope.ScopePassed, "namedAsNode[0]"},
		{"a create of another node's", write("CREATE ciliumnodes.cilium.io b"), nodescope.ScopeNameNotNode, "namedAsNode[0]"},
		{
			"a create whose object has the name", write("CREATE ciliumnodes.cilium.io", custom("a", "")),
			nodescope.ScopePassed, "namedAsNode[0]",
		},
		{
			"a create whose object has another name", write("CREATE ciliumnodes.cilium.io", custom("b", "")),
			nodescope.ScopeNameNotNode, "namedAsNode[0]",
		},
		{
			"a create with a generated name", write("CREATE ciliumnodes.cilium.io", custom("", "a")),
			nodescope.ScopeNameNotNode, "namedAsNode[0]",
		},
		{"a create without an object", write("CREATE ciliumnodes.cilium.io"), nodescope.ScopeNameNotNode, "namedAsNode[0]"},
		{"an update of another node's", write("UPDATE ciliumnodes.cilium.io b"), nodescope.ScopeNameNotNode, "namedAsNode[0]"},
		{"one of a collection that is deleted", write("DELETE ciliumnodes.cilium.io b"), nodescope.ScopeNameNotNode, "namedAsNode[0]"},
		{
			"as the node: its own lease", write("CREATE leases.coordination.k8s.io kube-node-lease/a", lease("a")),
			nodescope.ScopePassed, "asNode",
		},
		{
			"as the node: another node's lease", write("CREATE leases.coordination.k8s.io kube-node-lease/b", lease("b")),
			nodescope.ScopeNotAsNode, "asNode",
		},
		{"as the node: its own Node", write("UPDATE nodes a", node("a"), node("a")), nodescope.ScopePassed, "asNode"},
		{"as the node: its taints", write("UPDATE nodes a", node("a", tainted), node("a")), nodescope.ScopeNotAsNode, "asNode"},
		{"as the node: reserved labels", write("UPDATE nodes a", node("a", labelled), node("a")), nodescope.ScopeNotAsNode, "asNode"},
		{
			"as the node: spec through status", write("UPDATE nodes/status a", node("a", tainted), node("a")),
			nodescope.ScopeNotAsNode, "asNode",
		},
		{"as the node: another Node", write("UPDATE nodes/status b", node("b"), node("b")), nodescope.ScopeNotAsNode, "asNode"},
		{"a connection to a pod on the node", write("CONNECT pods/exec shop/on-a"), nodescope.ScopePassed, "podsOnNode[0]"},
		{"a connection to a pod elsewhere", write("CONNECT pods/exec shop/on-b"), nodescope.ScopePodNotOnNode, "podsOnNode[0]"},
		{"a pod on the node", write("UPDATE pods shop/on-a"), nodescope.ScopePassed, "podsOnNode[0]"},
		{"a pod elsewhere", write("UPDATE pods shop/on-b"), nodescope.ScopePodNotOnNode, "podsOnNode[0]"},
		{
			"a create of an object that is called like a pod on the node", write("CREATE podstates.example.org shop/on-a"),
			nodescope.ScopePassed, "podsOnNode[2]",
		},
		{
			"a create of one that is called like a pod elsewhere", write("CREATE podstates.example.org shop/on-b"),
			nodescope.ScopePodNotOnNode, "podsOnNode[2]",
		},
		{
			"a create of one with a generated name", write("CREATE podstates.example.org shop/", custom("", "on-")),
			nodescope.ScopePodNotOnNode, "podsOnNode[2]",
		},
		{"a create of one without an object", write("CREATE podstates.example.org shop/"), nodescope.ScopePodNotOnNode, "podsOnNode[2]"},
		{"an update of one", write("UPDATE podstates.example.org/status shop/on-a"), nodescope.ScopePassed, "podsOnNode[2]"},
		{
			"an update of one that is called like a pod elsewhere", write("UPDATE podstates.example.org shop/on-b"),
			nodescope.ScopePodNotOnNode, "podsOnNode[2]",
		},
		{
			"one of a collection that is deleted, called like a pod elsewhere", write("DELETE podstates.example.org shop/on-b"),
			nodescope.ScopePodNotOnNode, "podsOnNode[2]",
		},
		{"what no rule names", write("DELETE namespaces shop"), nodescope.ScopeNoRule, ""},
		{"a resource that may only be read", write("UPDATE namespaces shop"), nodescope.ScopeNoRule, ""},
		{"anywhere, by name", write("UPDATE endpoints shop/leader"), nodescope.ScopePassed, "anywhere[1]"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			c := newCluster(t, scope(rules))
			got := c.Admit(t.Context(), tc.req)
			want := verdict.Deny
			if tc.code == nodescope.ScopePassed {
				want = verdict.NoOpinion
			}
			if got.Decision != want || got.Code != tc.code || got.Rule != tc.which {
				t.Errorf("got %v %s by %q, want %v %s by %q", got.Decision, got.Code, got.Rule, want, tc.code, tc.which)
			}
			tc.req.User += "s"
			if other := c.Admit(t.Context(), tc.req); other.Code != nodescope.NotInScope {
				t.Errorf("another account: %s", other.Code)
			}
		})
	}
}

// TestRefusalsOfNodeRestrictionAreKept: they say whether another answer is possible later.
func TestRefusalsOfNodeRestrictionAreKept(t *testing.T) {
	c := newCluster(t, scope(rules))
	got := c.Admit(t.Context(), write("DELETE pods shop/none"))
	if got.Code != nodescope.ScopeNotAsNode && got.Code != nodescope.ScopePodNotOnNode {
		t.Fatalf("got %s", got.Code)
	}
	if got.Restriction == nil || got.Restriction.Code != noderestriction.PodNotFound || !got.Restriction.Stale {
		t.Errorf("got %+v", got.Restriction)
	}
}

func TestReads(t *testing.T) {
	for _, tc := range []struct {
		rule        string
		req         *noderestriction.Request
		object, old bool
	}{
		{"what NodeRestriction reads", write("UPDATE nodes a"), true, true},
		{"a new object that is called like a pod", write("CREATE podstates.example.org shop/on-a"), false, false},
		{"a new object without a name, of a kind without a decoder", write("CREATE ciliumnodes.cilium.io"), false, false},
		{"a review, which never has a name", write("CREATE subjectaccessreviews.authorization.k8s.io"), false, false},
		{"a new object whose name is known", write("CREATE ciliumnodes.cilium.io a"), false, false},
		{"nothing", write("UPDATE ciliumnodes.cilium.io a"), false, false},
	} {
		c := newCluster(t, scope(rules))
		if object, old := c.Reads(tc.req); object != tc.object || old != tc.old {
			t.Errorf("%s: %v %v", tc.rule, object, old)
		}
		tc.req.Extra = nil
		if object, old := c.Reads(tc.req); object || old {
			t.Errorf("%s, for a token without a node: %v %v", tc.rule, object, old)
		}
		tc.req.User = "system:serviceaccount:x:y"
		if object, old := c.Reads(tc.req); object || old {
			t.Errorf("%s, for another account: %v %v", tc.rule, object, old)
		}
	}
	without := newCluster(t, scope(func(s *v1alpha1.NodeScopeSpec) {
		rules(s)
		s.AsNode = false
	}))
	if object, old := without.Reads(write("UPDATE nodes a")); object || old {
		t.Errorf("without asNode: %v %v", object, old)
	}
}
