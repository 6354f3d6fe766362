package generate_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/scopetools/generate"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/nodescope"
)

const account = "system:serviceaccount:team:agent"

func scopeOf(t *testing.T, spec string) *v1alpha1.NodeScope {
	t.Helper()
	scope := &v1alpha1.NodeScope{}
	text := "{metadata: {name: s}, spec: {subjects: [{namespace: team, name: agent}], mode: Enforce, " + spec + "}}"
	if err := yaml.UnmarshalStrict([]byte(text), scope); err != nil {
		t.Fatal(err)
	}
	if errs := nodescope.Validate(scope); len(errs) > 0 {
		t.Fatal(errs)
	}
	return scope
}

func describe(w *noderestriction.Request) string {
	return fmt.Sprintf("%s %s/%s.%s %s/%s of %v (%+v, was %+v)", w.Operation, w.Resource, w.Subresource, w.Group, w.Namespace, w.Name,
		w.Extra, w.Object, w.OldObject)
}

const state = `{apiVersion: v1, kind: List, items: [
{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: slice-a}, spec: {nodeName: a, driver: d, pool: {name: p}}},
{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: slice-b}, spec: {nodeName: b, driver: d, pool: {name: p}}},
{apiVersion: v1, kind: Node, metadata: {name: a, uid: uid-a}}, {apiVersion: v1, kind: Node, metadata: {name: b, uid: uid-b}},
{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop, uid: uid-web},
  spec: {nodeName: a, serviceAccountName: web, containers: [{name: c, image: i}]}},
{apiVersion: v1, kind: Pod, metadata: {name: other, namespace: shop, uid: uid-other},
  spec: {nodeName: b, serviceAccountName: web, containers: [{name: c, image: i}]}}]}`

func cluster(t *testing.T) *evaluate.Evaluator {
	t.Helper()
	loaded, err := source.LoadFiles(t.Context(), []string{"-"}, source.FileOptions{Stdin: strings.NewReader(state)})
	if err != nil {
		t.Fatal(err)
	}
	e, err := evaluate.New(t.Context(), loaded, evaluate.Options{Features: kubeversion.For(kubeversion.Latest)})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// admits is the decision of a NodeScope's own admission.
func admits(t *testing.T, e *evaluate.Evaluator, scope *v1alpha1.NodeScope, w *noderestriction.Request) bool {
	t.Helper()
	compiled, errs := nodescope.Compile(scope)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	policy, _ := nodescope.NewPolicy([]*nodescope.Scope{compiled})
	var pointer atomic.Pointer[nodescope.Policy]
	pointer.Store(policy)
	answer := nodescope.New(&pointer, nil, e.State.Graph, e.Node, e.Restriction).Admit(t.Context(), w)
	return !answer.Refused()
}

// tokens are the extra values of users.
func tokens() []map[string][]string {
	return []map[string][]string{
		{nodeidentity.ExtraNode: {"a"}, nodeidentity.ExtraNodeUID: {"uid-a"}},
		{nodeidentity.ExtraNode: {"b"}, nodeidentity.ExtraNodeUID: {"uid-b"}},
		{nodeidentity.ExtraNode: {"a", "b"}},
		{nodeidentity.ExtraNode: {""}},
		{nodeidentity.ExtraNode: {}},
		{nodeidentity.ExtraCredential: {"JTI=1"}},
		nil,
	}
}

func scopes(t *testing.T) map[string]*v1alpha1.NodeScope {
	all := map[string]*v1alpha1.NodeScope{}
	rules := []string{
		"asNode: true",
		"namedAsNode: [{apiGroups: [x], resources: [things, '*/status'], verbs: [create, patch]}]",
		"namedAsNode: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]",
		"namedAsNode: [{apiGroups: [x], resources: [things], verbs: [delete]}]",
		"namedAsNode: [{apiGroups: [x], resources: [things], verbs: [create, deletecollection], namespaces: [n]}]",
		"selectsNode: [{apiGroups: [''], resources: [pods], verbs: [list, deletecollection], field: spec.nodeName}]",
		"selectsNode: [{apiGroups: [''], resources: [pods], verbs: [list], field: spec.nodeName}]",
		"podsOnNode: [{resources: [pods, pods/status], verbs: [create, update, patch, delete]}]",
		"podsOnNode: [{resources: [pods/*], verbs: ['*']}]",
		"podsOnNode: [{resources: [pods/eviction, pods/exec], verbs: [create]}]",
		"podsOnNode: [{apiGroups: [y.org], resources: [endpoints, endpoints/status], verbs: [create, update, delete], namespaces: [shop]}]",
		"podsOnNode: [{apiGroups: ['', y.org], resources: [endpoints, pods/*], verbs: ['*']}]",
		"anywhere: [{apiGroups: [''], resources: [configmaps, secrets], verbs: [create, update, delete], namespaces: [shop]}]",
		"anywhere: [{apiGroups: [''], resources: [configmaps], resourceNames: [c], verbs: [create, update]}]",
		"anywhere: [{nonResourceURLs: [/metrics], verbs: [get]}]",
		"asNode: true, namedAsNode: [{apiGroups: [''], resources: [nodes, nodes/status], verbs: [patch]}], " +
			"podsOnNode: [{resources: [pods], verbs: [delete]}]",
	}
	for _, rule := range rules {
		for _, rest := range []string{"otherwise: Deny", "otherwise: Allow", "tokensWithoutNode: Allow"} {
			all[rule+", "+rest] = scopeOf(t, rule+", "+rest)
		}
	}
	return all
}

// open reports whether the policy says that it cannot decide about a resource.
func open(limits []generate.Limit, w *noderestriction.Request) bool {
	resource := w.Resource
	if w.Subresource != "" {
		resource += "/" + w.Subresource
	}
	return slices.ContainsFunc(limits, func(l generate.Limit) bool {
		return l.Rule != "" && slices.ContainsFunc(strings.FieldsFunc(l.Why, func(r rune) bool {
			return strings.ContainsRune(",: ",
				r)
		}), func(word string) bool {
			return word == resource || word == resource+"."+w.Group
		})
	})
}

// TestNeverLooserThanTheScope: the scope lets every request pass that a policy lets pass, unless the policy says
// that it cannot decide.
func TestNeverLooserThanTheScope(t *testing.T) {
	e := cluster(t)
	compared, passed, stricter := 0, 0, 0
	for name, scope := range scopes(t) {
		policy, limits := newEvaluator(t, scope), generate.Generate(scope, "").CannotExpress
		for _, extra := range tokens() {
			for _, w := range writes() {
				w.Extra = extra
				got, want := policy.passes(t, w), admits(t, e, scope, w)
				compared++
				switch {
				case got && !want && !open(limits, w):
					t.Errorf("%s: lets pass what the scope refuses: %s", name, describe(w))
				case got && want:
					passed++
				case !got && want:
					stricter++
				}
			}
		}
	}
	t.Logf("%d writes compared, %d pass both, %d are refused by the policy only", compared, passed, stricter)
	if passed < 200 {
		t.Errorf("only %d writes pass", passed)
	}
}

// TestPolicies is the table of the writes that policies let pass and refuse.
func TestPolicies(t *testing.T) {
	const things = "namedAsNode: [{apiGroups: [x], resources: [things], verbs: [create, update, delete]}]"
	const evict = "podsOnNode: [{resources: [pods/eviction], verbs: [create]}]"
	const named = "podsOnNode: [{apiGroups: [y.org], resources: [endpoints], verbs: ['*']}]"
	const both = "podsOnNode: [{apiGroups: ['', y.org], resources: [pods, endpoints], verbs: ['*']}]"
	onA := pod("web", "a")
	for _, tc := range []struct {
		rule, spec string
		write      *noderestriction.Request
		want       bool
	}{
		{"a create of the node's object", things, write("CREATE things.x a", thing("a")), true},
		{"a create of another's", things, write("CREATE things.x b", thing("b")), false},
		{"a create whose name only the object has", things, write("CREATE things.x", thing("a")), true},
		{"an update of the node's object", things, write("UPDATE things.x a", thing("a"), thing("a")), true},
		{"a deletion of another's", things, write("DELETE things.x b", thing("b")), false},
		{"a deletion of a collection", things, write("DELETE things.x", thing("a")), false},
		{"another subresource", things, write("UPDATE things.x/status a", thing("a"), thing("a")), false},
		{"another account", things, func() *noderestriction.Request {
			w := write("CREATE things.x b", thing("b"))
			w.User = "system:serviceaccount:team:other"
			return w
		}(), true},
		{"a token without a node", things, with(write("CREATE things.x a", thing("a")), nil), false},
		{"a token with two nodes", things, with(write("CREATE things.x a", thing("a")),
			map[string][]string{nodeidentity.ExtraNode: {"a", "b"}}), false},
		{"a token without a node that may", "tokensWithoutNode: Allow", with(write("CREATE things.x b", thing("b")), nil), true},
		{
			"two nodes where none would do", "tokensWithoutNode: Allow",
			with(write("CREATE things.x b", thing("b")), map[string][]string{nodeidentity.ExtraNode: {"a", "b"}}), false,
		},
		{"what no rule names", things, write("CREATE others.x a", thing("a")), false},
		{"what no rule names and otherwise allows", things + ", otherwise: Allow", write("CREATE others.x b", thing("b")), true},
		{"what a rule names, otherwise or not", things + ", otherwise: Allow", write("CREATE things.x b", thing("b")), false},
		{"a pod on the node", "podsOnNode: [{resources: [pods], verbs: [delete]}]", write("DELETE pods shop/web", onA), true},
		{
			"a pod on another", "podsOnNode: [{resources: [pods], verbs: [delete]}]", write("DELETE pods shop/other", pod("other", "b")),
			false,
		},
		{"an object that is named like a pod", named, write("CREATE endpoints.y.org shop/web", thing("web")), true},
		{"a name does not show the node", named, write("UPDATE endpoints.y.org shop/other", thing("other"), thing("other")), true},
		{"a generated name", named, write("CREATE endpoints.y.org shop/", thing("web-x7k2p")), true},
		{"a collection of objects that are named like pods", named, write("DELETE endpoints.y.org shop/", thing("web")), false},
		{"an object that is named like a pod and has no namespace", named, write("CREATE endpoints.y.org web", thing("web")), false},
		{"another subresource of it", named, write("UPDATE endpoints.y.org/scale shop/web", thing("web"), thing("web")), false},
		{"it in another group", named, write("CREATE endpoints.z shop/web", thing("web")), false},
		{"a pod on another, beside objects named like pods", both, write("DELETE pods shop/other", pod("other", "b")), false},
		{"a pod on the node, beside objects named like pods", both, write("DELETE pods shop/web", onA), true},
		{"a new pod, beside objects named like pods", both, write("CREATE pods shop/web", onA), false},
		{"pods of another group", both, write("DELETE pods.y.org shop/other", pod("other", "b")), true},
		{"an eviction does not show the node", evict, write("CREATE pods/eviction shop/other", &policyv1.Eviction{}), true},
		{
			"a collection of pods on the node",
			"selectsNode: [{apiGroups: [''], resources: [pods], verbs: [deletecollection], field: spec.nodeName}]",
			write("DELETE pods shop/", onA), true,
		},
		{
			"a collection of pods on another",
			"selectsNode: [{apiGroups: [''], resources: [pods], verbs: [deletecollection], field: spec.nodeName}]",
			write("DELETE pods shop/", pod("other", "b")), false,
		},
		{"the own Node object", "asNode: true", write("UPDATE nodes/status a", node("a"), node("a")), true},
		{"another Node object", "asNode: true", write("UPDATE nodes/status b", node("b"), node("b")), false},
		{"taints of the own Node object", "asNode: true", write("UPDATE nodes a", node("a", tainted), node("a")), false},
		{"a mirror pod", "asNode: true", write("CREATE pods shop/new", pod("new", "a", mirror)), true},
		{"a pod that is none", "asNode: true", write("CREATE pods shop/new", pod("new", "a")), false},
		{"a mirror pod of another node", "asNode: true", write("CREATE pods shop/new", pod("new", "b", mirror)), false},
		{
			"a token that is bound to a pod", "asNode: true", write("CREATE serviceaccounts/token shop/web", token("Pod", "web", "uid")),
			true,
		},
		{"a token that is bound to nothing", "asNode: true", write("CREATE serviceaccounts/token shop/web", token("", "", "")), false},
		{"a token that is bound to a secret", "asNode: true", write("CREATE serviceaccounts/token shop/web", token("Secret", "web",
			"uid")), false},
		{
			"a name that a rule has", "anywhere: [{apiGroups: [''], resources: [configmaps], resourceNames: [c], verbs: [update]}]",
			write("UPDATE configmaps shop/c", &corev1.ConfigMap{}, &corev1.ConfigMap{}), true,
		},
		{
			"a name that it has not", "anywhere: [{apiGroups: [''], resources: [configmaps], resourceNames: [d], verbs: [update]}]",
			write("UPDATE configmaps shop/c", &corev1.ConfigMap{}, &corev1.ConfigMap{}), false,
		},
		{
			"a create, which has no name when it is authorized",
			"anywhere: [{apiGroups: [''], resources: [configmaps], resourceNames: [c], verbs: [create]}]",
			write("CREATE configmaps shop/c", &corev1.ConfigMap{}), false,
		},
	} {
		if got := newEvaluator(t, scopeOf(t, tc.spec)).passes(t, tc.write); got != tc.want {
			t.Errorf("%s: passes %v", tc.rule, got)
		}
	}
}

// TestMessagesNameScopeAndRule: a person who reads a refusal finds what to change.
func TestMessagesNameScopeAndRule(t *testing.T) {
	const things = "namedAsNode: [{apiGroups: [x], resources: [things], verbs: [create]}], " +
		"anywhere: [{apiGroups: [x], resources: [things], verbs: [create], namespaces: [n]}]"
	for _, tc := range []struct {
		spec  string
		write *noderestriction.Request
		want  string
	}{
		{things, write("CREATE things.x b", thing("b")), "NodeScope s: namedAsNode[0] refuses a token of node a: CREATE things b"},
		{
			"asNode: true, podsOnNode: [{resources: [pods], verbs: [delete]}]", write("DELETE pods shop/other", pod("other", "b")),
			"NodeScope s: asNode, podsOnNode[0] refuses a token of node a: DELETE pods shop/other",
		},
		{things, write("CREATE others.x b", thing("b")), "NodeScope s: no rule names the request of a token of node a: CREATE others b"},
		{
			"otherwise: Deny", write("CREATE others.x b", thing("b")),
			"NodeScope s: no rule names the request of a token of node a: CREATE others b",
		},
	} {
		if passes, got := newEvaluator(t, scopeOf(t, tc.spec)).decide(t, tc.write); passes || got != tc.want {
			t.Errorf("got %v %q, want %q", passes, got, tc.want)
		}
	}
}

func TestWhatCannotBeExpressed(t *testing.T) {
	for rule, tc := range map[string]struct{ spec, want string }{
		"reads":     {"otherwise: Deny", "reads"},
		"others":    {"otherwise: Deny", "impersonation"},
		"evictions": {"podsOnNode: [{resources: [pods, pods/eviction], verbs: [create, delete]}]", "podsOnNode[0]: pods/eviction"},
		"names": {
			"podsOnNode: [{apiGroups: [y.org], resources: [endpoints], verbs: [create]}]",
			"podsOnNode[0]: endpoints.y.org: the request does not show whether a pod of that name is on the node",
		},
		"names beside pods": {
			"podsOnNode: [{apiGroups: ['', y.org], resources: [pods, endpoints], verbs: [delete]}]",
			"podsOnNode[0]: endpoints, pods.y.org, endpoints.y.org: the request does not show whether",
		},
		"tokens": {"asNode: true", "asNode: serviceaccounts/token"},
		"fields": {"selectsNode: [{apiGroups: [x], resources: [y], verbs: [deletecollection], field: spec.host}]", "spec.host"},
	} {
		policies, err := generate.Write([]*generate.Policy{generate.Generate(scopeOf(t, tc.spec), "")})
		if err != nil || !strings.Contains(policies.Manifest, tc.want) || len(policies.Policies[0].CannotExpress) == 0 {
			t.Errorf("%s: %v\n%s", rule, err, policies.Manifest)
		}
	}
}

func TestActions(t *testing.T) {
	scope := scopeOf(t, "otherwise: Deny")
	for mode, want := range map[v1alpha1.Mode]registrationv1.ValidationAction{
		v1alpha1.Observe: registrationv1.Audit,
		v1alpha1.Enforce: registrationv1.Deny,
	} {
		scope.Spec.Mode = mode
		if _, binding := generate.Generate(scope, "").Objects(); !slices.Equal(binding.Spec.ValidationActions,
			[]registrationv1.ValidationAction{want}) {
			t.Errorf("%s: %v", mode, binding.Spec.ValidationActions)
		}
	}
	if _, binding := generate.Generate(scope,
		registrationv1.Warn).Objects(); binding.Spec.ValidationActions[0] != registrationv1.Warn {
		t.Errorf("got %v", binding.Spec.ValidationActions)
	}
}
