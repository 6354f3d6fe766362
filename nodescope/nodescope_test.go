package nodescope_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/nodescope"
	"github.com/node-authorizer/node-authorizer/verdict"
)

const (
	namespace = "kube-system"
	agent     = "agent"
	user      = "system:serviceaccount:kube-system:agent"
)

// cluster has the nodes a and b with one pod each: shop/on-a, which uses the secret of-a, and shop/on-b.
type cluster struct {
	graph  *graph.Graph
	pods   map[string]*corev1.Pod
	policy atomic.Pointer[nodescope.Policy]
	// aggregation has no aggregated APIs, unless a test sets it.
	aggregation nodescope.Aggregation
	*nodescope.Authorizer
}

func newCluster(t testing.TB, scopes ...*v1alpha1.NodeScope) *cluster {
	t.Helper()
	c := &cluster{graph: graph.New(), pods: map[string]*corev1.Pod{}, aggregation: nodescope.Aggregation{Complete: true}}
	for _, node := range []string{"a", "b"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "on-" + node, UID: "uid-of-" + "pod"}}
		pod.Spec.NodeName, pod.Spec.ServiceAccountName = node, "web"
		pod.Spec.Volumes = []corev1.Volume{{Name: "s", VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: "of-" + node},
		}}}
		c.graph.SetPod(pod)
		c.pods["shop/on-"+node] = pod
	}
	c.set(t, scopes...)
	features := kubeversion.For(kubeversion.Latest)
	c.Authorizer = nodescope.New(&c.policy, func() *nodescope.Aggregation { return &c.aggregation }, c.graph,
		nodeauthz.New(c.graph, features), noderestriction.New(c, nil, features))
	return c
}

func (c *cluster) set(t testing.TB, objects ...*v1alpha1.NodeScope) {
	t.Helper()
	var scopes []*nodescope.Scope
	for _, object := range objects {
		scope, errs := nodescope.Compile(object)
		if len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		scopes = append(scopes, scope)
	}
	policy, excess := nodescope.NewPolicy(scopes)
	if len(excess) > 0 {
		t.Fatalf("%d scopes too many", len(excess))
	}
	c.policy.Store(policy)
}

// scope returns a scope about the agent in the mode Enforce.
func scope(change ...func(*v1alpha1.NodeScopeSpec)) *v1alpha1.NodeScope {
	s := &v1alpha1.NodeScope{ObjectMeta: metav1.ObjectMeta{Name: "scope"}, Spec: v1alpha1.NodeScopeSpec{
		Subjects: []v1alpha1.Subject{{Namespace: namespace, Name: agent}}, Mode: v1alpha1.Enforce,
	}}
	for _, f := range change {
		f(&s.Spec)
	}
	return s
}

// ask returns a request of the agent with the token of node a: "get nodes a", "list pods",
// "patch nodes/status a", "get secrets shop/of-a", "get ciliumnodes.cilium.io a", "get /metrics".
func ask(text string, change ...func(*access.Request)) *access.Request {
	req := &access.Request{User: user, Extra: map[string][]string{nodeidentity.ExtraNode: {"a"}}}
	parts := strings.Fields(text)
	req.Verb = parts[0]
	if req.ResourceRequest = !strings.HasPrefix(parts[1], "/"); req.ResourceRequest {
		resource, subresource, _ := strings.Cut(parts[1], "/")
		req.Resource, req.Group, _ = strings.Cut(resource, ".")
		req.Subresource = subresource
		if len(parts) > 2 {
			req.Namespace, req.Name = object(parts[2])
		}
	} else {
		req.Path = parts[1]
	}
	for _, f := range change {
		f(req)
	}
	return req
}

// object splits "shop/web" and "worker-1".
func object(text string) (namespace, name string) {
	namespace, name, namespaced := strings.Cut(text, "/")
	if !namespaced {
		return "", text
	}
	return namespace, name
}

func selecting(field, value string, operator selection.Operator) func(*access.Request) {
	return func(req *access.Request) {
		req.FieldSelector = append(req.FieldSelector, fields.Requirement{Field: field, Operator: operator, Value: value})
	}
}

func extra(values map[string][]string) func(*access.Request) {
	return func(req *access.Request) { req.Extra = values }
}

// rules returns a scope with a rule of each kind.
func rules(s *v1alpha1.NodeScopeSpec) {
	s.AsNode = true
	s.NamedAsNode = []v1alpha1.NamedRule{
		{APIGroups: []string{"cilium.io"}, Resources: []string{"ciliumnodes", "ciliumnodes/status"}, Verbs: []string{"*"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}, Namespaces: []string{"agents"}},
	}
	s.SelectsNode = []v1alpha1.SelectedRule{{
		APIGroups: []string{"example.org"}, Resources: []string{"volumes"}, Verbs: []string{"list", "watch"}, Field: "spec.node",
	}}
	s.PodsOnNode = []v1alpha1.PodRule{
		{Resources: []string{"pods", "pods/exec"}, Verbs: []string{"get", "create", "patch"}},
		{Resources: []string{"pods/*"}, Verbs: []string{"delete"}},
		{
			APIGroups: []string{"", "example.org"}, Resources: []string{"pods/*", "podstates", "podstates/status"},
			Verbs: []string{"get", "list", "create", "update", "deletecollection"}, Namespaces: []string{"shop"},
		},
	}
	s.Anywhere = []v1alpha1.AnywhereRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get", "list"}},
		{APIGroups: []string{""}, Resources: []string{"endpoints"}, Verbs: []string{"update"}, ResourceNames: []string{"leader"}},
		{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}},
	}
}

func TestDecide(t *testing.T) {
	for _, tc := range []struct {
		rule  string
		req   *access.Request
		code  verdict.Code
		which string // the rule of the scope
	}{
		{"as the node: the secret of a pod of the node", ask("get secrets shop/of-a"), nodescope.ScopePassed, "asNode"},
		{"as the node: the secret of a pod of another node", ask("get secrets shop/of-b"), nodescope.ScopeNotAsNode, "asNode"},
		{"as the node: its own status", ask("patch nodes/status a"), nodescope.ScopePassed, "asNode"},
		{
			"as the node: the status of another node, which only NodeRestriction refuses", ask("patch nodes/status b"),
			nodescope.ScopeNotAsNode, "asNode",
		},
		{
			"as the node: the lease of another node",
			ask("update leases.coordination.k8s.io kube-node-lease/b"), nodescope.ScopeNotAsNode, "asNode",
		},
		{"as the node: a create, whose name only admission knows", ask("create nodes"), nodescope.ScopePassed, "asNode"},
		{
			"as the node: pods of the node", ask("list pods", selecting("spec.nodeName", "a", selection.Equals)),
			nodescope.ScopePassed, "asNode",
		},
		{
			"as the node: pods of another node", ask("list pods", selecting("spec.nodeName", "b", selection.Equals)),
			nodescope.ScopeNotAsNode, "asNode",
		},
		{"the object of the node", ask("patch ciliumnodes.cilium.io a"), nodescope.ScopePassed, "namedAsNode[0]"},
		{"its subresource", ask("update ciliumnodes.cilium.io/status a"), nodescope.ScopePassed, "namedAsNode[0]"},
		{"the object of another node", ask("patch ciliumnodes.cilium.io b"), nodescope.ScopeNameNotNode, "namedAsNode[0]"},
		{"a list without a name", ask("list ciliumnodes.cilium.io"), nodescope.ScopeNameNotNode, "namedAsNode[0]"},
		{"a create, whose name only admission knows", ask("create ciliumnodes.cilium.io"), nodescope.ScopePassed, "namedAsNode[0]"},
		{"a create by a patch, which has a name", ask("create ciliumnodes.cilium.io b"), nodescope.ScopeNameNotNode, "namedAsNode[0]"},
		{
			"a create of a subresource without a name",
			ask("create ciliumnodes.cilium.io/status"), nodescope.ScopeNameNotNode, "namedAsNode[0]",
		},
		{"a deletion of all", ask("deletecollection ciliumnodes.cilium.io"), nodescope.ScopeNameNotNode, "namedAsNode[0]"},
		{"another subresource", ask("update ciliumnodes.cilium.io/scale a"), nodescope.ScopeNoRule, ""},
		{"another group", ask("get ciliumnodes.example.org a"), nodescope.ScopeNoRule, ""},
		{"in the namespace", ask("get configmaps agents/a"), nodescope.ScopePassed, "namedAsNode[1]"},
		{"in another namespace", ask("get configmaps shop/a"), nodescope.ScopeNotAsNode, "asNode"},
		{
			"selected", ask("list volumes.example.org", selecting("spec.node", "a", selection.Equals)),
			nodescope.ScopePassed, "selectsNode[0]",
		},
		{
			"selected among other requirements", ask("watch volumes.example.org", selecting("spec.x", "y", selection.Equals),
				selecting("spec.node", "a", selection.Equals)), nodescope.ScopePassed, "selectsNode[0]",
		},
		{
			"another node selected", ask("list volumes.example.org", selecting("spec.node", "b", selection.Equals)),
			nodescope.ScopeSelectorRequired, "selectsNode[0]",
		},
		{
			"all but the node selected", ask("list volumes.example.org", selecting("spec.node", "a", selection.NotEquals)),
			nodescope.ScopeSelectorRequired, "selectsNode[0]",
		},
		{
			"another field", ask("list volumes.example.org", selecting("spec.nodeName", "a", selection.Equals)),
			nodescope.ScopeSelectorRequired, "selectsNode[0]",
		},
		{"nothing selected", ask("list volumes.example.org"), nodescope.ScopeSelectorRequired, "selectsNode[0]"},
		{"a get of what may be listed", ask("get volumes.example.org a"), nodescope.ScopeNoRule, ""},
		{"a pod on the node", ask("create pods/exec shop/on-a"), nodescope.ScopePassed, "podsOnNode[0]"},
		{"a pod on another node", ask("create pods/exec shop/on-b"), nodescope.ScopePodNotOnNode, "podsOnNode[0]"},
		{"a pod that does not exist", ask("create pods/exec shop/none"), nodescope.ScopePodNotOnNode, "podsOnNode[0]"},
		{"a pod in another namespace", ask("create pods/exec other/on-a"), nodescope.ScopePodNotOnNode, "podsOnNode[0]"},
		{"a pod without a namespace", ask("create pods/exec on-a"), nodescope.ScopePodNotOnNode, "podsOnNode[0]"},
		{"a pod by the name of a proxied port", ask("create pods/exec shop/https:on-a:80"), nodescope.ScopePodNotOnNode, "podsOnNode[0]"},
		{"every subresource", ask("delete pods/ephemeralcontainers shop/on-b"), nodescope.ScopePodNotOnNode, "podsOnNode[1]"},
		{"another verb", ask("delete pods/exec shop/on-a"), nodescope.ScopePassed, "podsOnNode[1]"},
		{
			"an object that is called like a pod on the node",
			ask("get podstates.example.org shop/on-a"), nodescope.ScopePassed, "podsOnNode[2]",
		},
		{
			"one that is called like a pod on another node",
			ask("get podstates.example.org shop/on-b"), nodescope.ScopePodNotOnNode, "podsOnNode[2]",
		},
		{"one that is called like no pod", ask("get podstates.example.org shop/none"), nodescope.ScopePodNotOnNode, "podsOnNode[2]"},
		{"one in another namespace than the pod", ask("get podstates.example.org other/on-a"), nodescope.ScopeNoRule, ""},
		{"one of the core group", ask("update podstates shop/on-a"), nodescope.ScopePassed, "podsOnNode[2]"},
		{"one of the core group, of another node", ask("update podstates shop/on-b"), nodescope.ScopePodNotOnNode, "podsOnNode[2]"},
		{"its subresource", ask("update podstates.example.org/status shop/on-a"), nodescope.ScopePassed, "podsOnNode[2]"},
		{"another subresource of it", ask("update podstates.example.org/scale shop/on-a"), nodescope.ScopeNoRule, ""},
		{"it in another group", ask("get podstates.example.com shop/on-a"), nodescope.ScopeNoRule, ""},
		{"all of them", ask("list podstates.example.org shop/"), nodescope.ScopePodNotOnNode, "podsOnNode[2]"},
		{"all of them, to delete", ask("deletecollection podstates.example.org shop/"), nodescope.ScopePodNotOnNode, "podsOnNode[2]"},
		{"one of a list, by its name", ask("list podstates.example.org shop/on-a"), nodescope.ScopePassed, "podsOnNode[2]"},
		{
			"a create of one, whose name only admission knows", ask("create podstates.example.org shop/"),
			nodescope.ScopePassed, "podsOnNode[2]",
		},
		{
			"a create of one by a patch, which has a name", ask("create podstates.example.org shop/on-b"),
			nodescope.ScopePodNotOnNode, "podsOnNode[2]",
		},
		{
			"a create of its subresource without a name", ask("create podstates.example.org/status shop/"),
			nodescope.ScopePodNotOnNode, "podsOnNode[2]",
		},
		{"anywhere", ask("list namespaces"), nodescope.ScopePassed, "anywhere[0]"},
		{"anywhere, by name", ask("update endpoints shop/leader"), nodescope.ScopePassed, "anywhere[1]"},
		{"anywhere, by another name", ask("update endpoints shop/other"), nodescope.ScopeNoRule, ""},
		{"a path", ask("get /metrics"), nodescope.ScopePassed, "anywhere[2]"},
		{"another path", ask("get /metrics/x"), nodescope.ScopeNoRule, ""},
		{"what no rule names", ask("delete namespaces shop"), nodescope.ScopeNoRule, ""},
		{"impersonation", ask("impersonate serviceaccounts shop/web"), nodescope.ScopeNoRule, ""},
		{"no extra values", ask("list namespaces", extra(nil)), nodescope.ScopeTokenWithoutNode, ""},
		{
			"two nodes", ask("list namespaces", extra(map[string][]string{nodeidentity.ExtraNode: {"a", "b"}})),
			nodescope.ScopeTokenNodeAmbiguous, "",
		},
		{
			"an empty node", ask("get ciliumnodes.cilium.io", extra(map[string][]string{nodeidentity.ExtraNode: {""}})),
			nodescope.ScopeTokenNodeAmbiguous, "",
		},
		{"another account", ask("delete namespaces shop", func(r *access.Request) { r.User += "s" }), nodescope.NotInScope, ""},
		{"a node", ask("delete namespaces shop", func(r *access.Request) { r.User = "system:node:a" }), nodescope.NotInScope, ""},
		{
			"may it impersonate its node", ask("impersonate:associated-node nodes.authentication.k8s.io *", extra(map[string][]string{
				nodeidentity.ExtraAssociatedNodeKeys: {nodeidentity.ExtraNode},
			})), nodescope.ScopePassed, "asNode",
		},
		{
			"may it impersonate any node", ask("impersonate:arbitrary-node nodes.authentication.k8s.io b"),
			nodescope.ScopeNoRule, "",
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			c := newCluster(t, scope(rules))
			got := c.Decide(tc.req)
			want := verdict.Deny
			if tc.code == nodescope.ScopePassed || tc.code == nodescope.NotInScope {
				want = verdict.NoOpinion
			}
			if got.Decision != want || got.Code != tc.code || got.Rule != tc.which {
				t.Errorf("got %v %s by %q, want %v %s by %q", got.Decision, got.Code, got.Rule, want, tc.code, tc.which)
			}
			c.set(t, scope(rules, func(s *v1alpha1.NodeScopeSpec) { s.Mode = v1alpha1.Observe }))
			if observed := c.Decide(tc.req); observed.Decision != verdict.NoOpinion || observed.Code != tc.code {
				t.Errorf("in the mode Observe: %v %s", observed.Decision, observed.Code)
			}
			explained := newCluster(t, scope(rules)).Explain(tc.req)
			if explained.Code != got.Code || explained.Reason.Code != got.Code || explained.Reason.Message == "" {
				t.Errorf("explained as %+v", explained)
			}
			if want == verdict.Deny && explained.Reason.Hint == "" {
				t.Errorf("no hint: %+v", explained.Reason)
			}
		})
	}
}

func TestEffects(t *testing.T) {
	allowRest := func(s *v1alpha1.NodeScopeSpec) { s.Otherwise = v1alpha1.Allow }
	allowTokens := func(s *v1alpha1.NodeScopeSpec) { s.TokensWithoutNode = v1alpha1.Allow }
	notAsNode := func(s *v1alpha1.NodeScopeSpec) { s.AsNode = false }
	onlyNamedAsPod := func(s *v1alpha1.NodeScopeSpec) { s.PodsOnNode = s.PodsOnNode[2:] }
	metrics := func(s *v1alpha1.NodeScopeSpec) {
		s.PodsOnNode = []v1alpha1.PodRule{
			{APIGroups: []string{"metrics.k8s.io"}, Resources: []string{"pods"}, Verbs: []string{"get", "create"}},
		}
	}
	associated := extra(map[string][]string{nodeidentity.ExtraAssociatedNodeKeys: {nodeidentity.ExtraNode}})
	for _, tc := range []struct {
		rule  string
		scope *v1alpha1.NodeScope
		req   *access.Request
		code  verdict.Code
	}{
		{"otherwise passes what no rule names", scope(rules, allowRest), ask("delete namespaces shop"), nodescope.ScopePassed},
		{
			"otherwise does not pass what a rule names", scope(rules, allowRest), ask("patch ciliumnodes.cilium.io b"),
			nodescope.ScopeNameNotNode,
		},
		{
			"otherwise does not pass what the Node authorizer has a rule for", scope(rules, allowRest), ask("get secrets shop/of-b"),
			nodescope.ScopeNotAsNode,
		},
		{
			"otherwise passes what asNode would name",
			scope(rules, allowRest, notAsNode), ask("get secrets shop/of-b"), nodescope.ScopePassed,
		},
		{"otherwise needs a node", scope(rules, allowRest), ask("delete namespaces shop", extra(nil)), nodescope.ScopeTokenWithoutNode},
		{"tokens without a node pass", scope(rules, allowTokens), ask("delete namespaces shop", extra(nil)), nodescope.ScopePassed},
		{"tokens with a node do not", scope(rules, allowTokens), ask("delete namespaces shop"), nodescope.ScopeNoRule},
		{
			"ambiguous tokens never pass", scope(rules, allowTokens, allowRest),
			ask("get /metrics", extra(map[string][]string{nodeidentity.ExtraNode: {"a", "b"}})), nodescope.ScopeTokenNodeAmbiguous,
		},
		{
			"impersonation of the own node needs asNode", scope(rules, notAsNode),
			ask("impersonate-on:associated-node:list pods", associated), nodescope.ScopeNoRule,
		},
		{
			"keys of a token without a node", scope(rules), ask("impersonate:associated-node nodes.authentication.k8s.io *",
				extra(map[string][]string{nodeidentity.ExtraAssociatedNodeKeys: {nodeidentity.ExtraCredential}})),
			nodescope.ScopeTokenWithoutNode,
		},
		{
			"a request with the keys and another verb", scope(rules), ask("list namespaces", associated),
			nodescope.ScopeTokenWithoutNode,
		},
		{"no rules", scope(), ask("list namespaces"), nodescope.ScopeNoRule},
		{
			"a create of a pod is not about a pod on the node",
			scope(rules, notAsNode), ask("create pods shop/"), nodescope.ScopePodNotOnNode,
		},
		{
			"nor where other resources are named like pods", scope(rules, notAsNode, onlyNamedAsPod), ask("create pods shop/"),
			nodescope.ScopePodNotOnNode,
		},
		{
			"pods of another group are objects that are named like pods", scope(metrics), ask("create pods.metrics.k8s.io shop/"),
			nodescope.ScopePassed,
		},
		{"by the pod that they are named like", scope(metrics), ask("get pods.metrics.k8s.io shop/on-a"), nodescope.ScopePassed},
		{"and by no other", scope(metrics), ask("get pods.metrics.k8s.io shop/on-b"), nodescope.ScopePodNotOnNode},
		{
			"objects without a namespace are not named like pods",
			scope(metrics), ask("get pods.metrics.k8s.io on-a"), nodescope.ScopePodNotOnNode,
		},
		{"also if they are created", scope(metrics), ask("create pods.metrics.k8s.io"), nodescope.ScopePodNotOnNode},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			if got := newCluster(t, tc.scope).Decide(tc.req); got.Code != tc.code {
				t.Errorf("got %s by %q, want %s", got.Code, got.Rule, tc.code)
			}
		})
	}
}

// TestObjectsFollowThePodThatTheyAreNamedLike: the pod of now decides, not the pod that an object was made for.
func TestObjectsFollowThePodThatTheyAreNamedLike(t *testing.T) {
	c := newCluster(t, scope(rules))
	get := ask("get podstates.example.org shop/on-a")
	create := write("CREATE podstates.example.org shop/on-a")
	check := func(when string, code verdict.Code) {
		t.Helper()
		if got := c.Decide(get); got.Code != code {
			t.Errorf("%s: %s", when, got.Code)
		}
		if got := c.Admit(t.Context(), create); got.Code != code {
			t.Errorf("%s, created: %s", when, got.Code)
		}
	}
	pod := c.pods["shop/on-a"]
	check("the pod is on the node", nodescope.ScopePassed)
	c.graph.DeletePod("shop", "on-a")
	check("the pod was deleted", nodescope.ScopePodNotOnNode)
	moved := pod.DeepCopy()
	moved.Spec.NodeName = ""
	c.graph.SetPod(moved)
	check("a pod of that name has no node yet", nodescope.ScopePodNotOnNode)
	moved = pod.DeepCopy()
	moved.Spec.NodeName = "b"
	c.graph.SetPod(moved)
	check("a pod of that name is on another node", nodescope.ScopePodNotOnNode)
	c.graph.SetPod(pod)
	check("a pod of that name is on the node again", nodescope.ScopePassed)
}

// TestCreatesOfUnknownNamesDependOnNoPods: state that is too old does not keep them from admission.
func TestCreatesOfUnknownNamesDependOnNoPods(t *testing.T) {
	c := newCluster(t, scope(func(s *v1alpha1.NodeScopeSpec) { rules(s); s.AsNode = false }))
	if got := c.Decide(ask("create podstates.example.org shop/")); got.Uses != nodescope.UsesAPIServices {
		t.Errorf("it uses %b", got.Uses)
	}
	got := c.Decide(ask("get podstates.example.org shop/on-a"))
	if got.Uses != nodescope.UsesPods || got.EnforcedUses != nodescope.UsesPods {
		t.Errorf("a read uses %b, %b", got.Uses, got.EnforcedUses)
	}
}

func TestSeveralScopes(t *testing.T) {
	named := func(name string, mode v1alpha1.Mode, resource string, change ...func(*v1alpha1.NodeScopeSpec)) *v1alpha1.NodeScope {
		s := scope(append(change, func(s *v1alpha1.NodeScopeSpec) {
			s.Mode = mode
			s.Anywhere = []v1alpha1.AnywhereRule{{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{"get"}}}
		})...)
		s.Name = name
		return s
	}
	ofNamespace := func(s *v1alpha1.NodeScopeSpec) { s.Subjects[0].Name = "" }
	pass, refuse := "*", "nothing"
	for _, tc := range []struct {
		rule     string
		scopes   []*v1alpha1.NodeScope
		decision verdict.Decision
		by       string
		refused  bool
	}{
		{
			"all pass",
			[]*v1alpha1.NodeScope{named("x", v1alpha1.Enforce, pass), named("y", v1alpha1.Enforce, pass)},
			verdict.NoOpinion, "x", false,
		},
		{
			"one refuses",
			[]*v1alpha1.NodeScope{named("x", v1alpha1.Enforce, pass), named("y", v1alpha1.Enforce, refuse)},
			verdict.Deny, "y", true,
		},
		{
			"one observes",
			[]*v1alpha1.NodeScope{named("x", v1alpha1.Enforce, pass), named("y", v1alpha1.Observe, refuse)},
			verdict.NoOpinion, "y", true,
		},
		{
			"what is enforced comes before what is observed",
			[]*v1alpha1.NodeScope{named("x", v1alpha1.Observe, refuse), named("y", v1alpha1.Enforce, refuse)},
			verdict.Deny, "y", true,
		},
		{
			"the namespace's counts too",
			[]*v1alpha1.NodeScope{named("x", v1alpha1.Enforce, pass), named("y", v1alpha1.Enforce, refuse, ofNamespace)},
			verdict.Deny, "y", true,
		},
		{
			"only the namespace's",
			[]*v1alpha1.NodeScope{named("y", v1alpha1.Enforce, refuse, ofNamespace)},
			verdict.Deny, "y", true,
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			got := newCluster(t, tc.scopes...).Decide(ask("get namespaces shop"))
			if got.Decision != tc.decision || got.Scope != tc.by || got.Refused() != tc.refused {
				t.Errorf("got %v by %s, refused %v (%s)", got.Decision, got.Scope, got.Refused(), got.Code)
			}
		})
	}
}

func TestTheOldestScopesCount(t *testing.T) {
	var scopes []*nodescope.Scope
	for i := range nodescope.MaxScopes + 3 {
		object := scope()
		object.Name = string(rune('z' - i))
		s, errs := nodescope.Compile(object)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		scopes = append(scopes, s)
	}
	policy, excess := nodescope.NewPolicy(scopes)
	if len(policy.Of(user)) != nodescope.MaxScopes || len(excess) != 3 || excess[0].Name() != "x" || excess[2].Name() != "z" {
		t.Errorf("%d count, %d do not", len(policy.Of(user)), len(excess))
	}
	if len(policy.Scopes()) != len(scopes) {
		t.Errorf("%d scopes", len(policy.Scopes()))
	}
}

func TestBrokenScope(t *testing.T) {
	object := scope(rules, func(s *v1alpha1.NodeScopeSpec) {
		s.Subjects = append(s.Subjects, v1alpha1.Subject{Namespace: "Not a namespace"})
	})
	if s, errs := nodescope.Compile(object); s != nil || len(errs) == 0 {
		t.Errorf("compiled as %v %v", s, errs)
	}
	broken := nodescope.Broken(object)
	if broken == nil || len(broken.Subjects()) != 1 {
		t.Fatalf("got %+v", broken)
	}
	c := newCluster(t)
	policy, _ := nodescope.NewPolicy([]*nodescope.Scope{broken})
	c.policy.Store(policy)
	for _, req := range []*access.Request{ask("list namespaces"), ask("get /healthz", extra(nil))} {
		if got := c.Decide(req); got.Decision != verdict.Deny || got.Code != nodescope.ScopeInvalid {
			t.Errorf("got %v %s", got.Decision, got.Code)
		}
	}
	for _, mode := range []v1alpha1.Mode{v1alpha1.Observe, "enforce", ""} {
		object.Spec.Mode = mode
		if nodescope.Broken(object) != nil {
			t.Errorf("a broken scope of mode %q refuses", mode)
		}
	}
}

func TestUsersWithoutScopeCostNoAllocation(t *testing.T) {
	c := newCluster(t, scope(rules))
	for _, req := range []*access.Request{
		ask("get pods shop/on-a", func(r *access.Request) { r.User = "system:serviceaccount:kube-system:other" }),
		ask("get pods shop/on-a", func(r *access.Request) { r.User = "system:node:a" }),
		ask("get pods shop/on-a"), ask("patch ciliumnodes.cilium.io b"), // nor do those with one
		ask("get podstates.example.org shop/on-a"),
	} {
		if n := testing.AllocsPerRun(100, func() { c.Decide(req) }); n != 0 {
			t.Errorf("%s %s: %v allocations", req.User, req.Verb, n)
		}
	}
}

func TestPassingListsEveryRule(t *testing.T) {
	c := newCluster(t, scope(rules, func(s *v1alpha1.NodeScopeSpec) { s.Otherwise = v1alpha1.Allow }))
	var names []string
	for _, p := range c.Policy().Passing(user, "a") {
		names = append(names, p.Rule)
		if p.Rule == "podsOnNode[2]" && (!slices.Contains(p.APIGroups, "example.org") || slices.Contains(p.Resources, "pods/*")) {
			t.Errorf("got %+v", p)
		}
		if p.Rule == "namedAsNode[0]" && p.Name != "a" || p.Rule == "selectsNode[0]" && p.FieldSelector != "spec.node=a" {
			t.Errorf("got %+v", p)
		}
	}
	want := "asNode namedAsNode[0] namedAsNode[1] selectsNode[0] podsOnNode[0] podsOnNode[1] podsOnNode[2] " +
		"anywhere[0] anywhere[1] anywhere[2] otherwise"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("got %s", got)
	}
	if without := c.Policy().Passing(user, ""); len(without) != 0 {
		t.Errorf("without a node: %+v", without)
	}
}
