package scopepolicies_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	"github.com/google/cel-go/cel"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/scopepolicies"
	"github.com/node-authorizer/node-authorizer/internal/source"
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

// expression is one of CEL, with its type.
type expression struct {
	name, text string
	of         []*cel.Type
}

func (e *expression) GetExpression() string    { return e.text }
func (e *expression) GetName() string          { return e.name }
func (e *expression) ReturnTypes() []*cel.Type { return e.of }

// evaluator evaluates a policy with the API server's library.
type evaluator struct {
	conditions            matchconditions.Matcher
	validations, messages plugincel.ConditionEvaluator
}

func newEvaluator(t *testing.T, scope *v1alpha1.NodeScope) *evaluator {
	t.Helper()
	policies, err := scopepolicies.Write([]*scopepolicies.Policy{scopepolicies.Generate(scope, "")})
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(policies.Manifest, "---\n")
	var policy registrationv1.ValidatingAdmissionPolicy
	var binding registrationv1.ValidatingAdmissionPolicyBinding
	if err := yaml.UnmarshalStrict([]byte(documents[0]), &policy); err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict([]byte(documents[1]), &binding); err != nil || binding.Spec.PolicyName != policy.Name {
		t.Fatal(err, binding)
	}
	compiler, err := plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	declared := plugincel.OptionalVariableDeclarations{HasAuthorizer: true}
	for _, v := range policy.Spec.Variables {
		result := compiler.CompileAndStoreVariable(&expression{v.Name, v.Expression, []*cel.Type{cel.AnyType, cel.DynType}}, declared, environment.NewExpressions)
		if result.Error != nil {
			t.Fatalf("variable %s: %v", v.Name, result.Error)
		}
	}
	compile := func(all ...plugincel.ExpressionAccessor) plugincel.ConditionEvaluator {
		compiled := compiler.CompileCondition(all, declared, environment.NewExpressions)
		if errs := compiled.CompilationErrors(); len(errs) > 0 {
			t.Fatal(errs)
		}
		return compiled
	}
	var conditions, validations, messages []plugincel.ExpressionAccessor
	for i := range policy.Spec.MatchConditions {
		conditions = append(conditions, (*matchconditions.MatchCondition)(&policy.Spec.MatchConditions[i]))
	}
	for _, v := range policy.Spec.Validations {
		validations = append(validations, &expression{text: v.Expression, of: []*cel.Type{cel.BoolType}})
		if v.MessageExpression != "" {
			messages = append(messages, &expression{text: v.MessageExpression, of: []*cel.Type{cel.StringType}})
		}
	}
	return &evaluator{
		matchconditions.NewMatcher(compile(conditions...), policy.Spec.FailurePolicy, "policy", "validate", policy.Name),
		compile(validations...), compile(messages...),
	}
}

// passes reports whether the API server admits a write. An error in an expression is an error of the test.
func (e *evaluator) passes(t *testing.T, w *noderestriction.Request) bool {
	t.Helper()
	resource := schema.GroupVersionResource{Group: w.Group, Version: "v1", Resource: w.Resource}
	kind := schema.GroupVersionKind{Group: w.Group, Version: "v1", Kind: "Kind"}
	attributes := &admission.VersionedAttributes{VersionedKind: kind, Attributes: admission.NewAttributesRecord(
		w.Object, w.OldObject, kind, w.Namespace, w.Name, resource, w.Subresource, admission.Operation(w.Operation), nil, false,
		&user.DefaultInfo{Name: w.User, Groups: w.Groups, Extra: w.Extra},
	)}
	if w.Object != nil {
		attributes.VersionedObject.Set(w.Object)
	}
	if w.OldObject != nil {
		attributes.VersionedOldObject.Set(w.OldObject)
	}
	matched := e.conditions.Match(t.Context(), attributes, nil, nil)
	if matched.Error != nil {
		t.Fatal(matched.Error)
	}
	if !matched.Matches {
		return true
	}
	request := plugincel.CreateAdmissionRequest(attributes.Attributes, metav1.GroupVersionResource(resource), metav1.GroupVersionKind(kind))
	passes := true
	for name, all := range map[string]plugincel.ConditionEvaluator{"validation": e.validations, "message": e.messages} {
		results, _, err := all.ForInput(t.Context(), attributes, request, plugincel.OptionalVariableBindings{}, nil, celconfig.RuntimeCELCostBudget)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, r := range results {
			if r.Error != nil {
				t.Fatalf("%s of %s: %v", name, describe(w), r.Error)
			}
			passes = passes && (name != "validation" || r.EvalResult.Value() == true)
		}
	}
	return passes
}

func describe(w *noderestriction.Request) string {
	return fmt.Sprintf("%s %s/%s.%s %s/%s of %v (%+v, was %+v)", w.Operation, w.Resource, w.Subresource, w.Group, w.Namespace, w.Name,
		w.Extra, w.Object, w.OldObject)
}

const state = `{apiVersion: v1, kind: List, items: [
{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: slice-a}, spec: {nodeName: a, driver: d, pool: {name: p}}},
{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: slice-b}, spec: {nodeName: b, driver: d, pool: {name: p}}},
{apiVersion: v1, kind: Node, metadata: {name: a, uid: uid-a}}, {apiVersion: v1, kind: Node, metadata: {name: b, uid: uid-b}},
{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop, uid: uid-web}, spec: {nodeName: a, serviceAccountName: web, containers: [{name: c, image: i}]}},
{apiVersion: v1, kind: Pod, metadata: {name: other, namespace: shop, uid: uid-other}, spec: {nodeName: b, serviceAccountName: web, containers: [{name: c, image: i}]}}]}`

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

// admits is what a NodeScope's own admission says.
func admits(t *testing.T, e *evaluate.Evaluator, scope *v1alpha1.NodeScope, w *noderestriction.Request) bool {
	t.Helper()
	compiled, errs := nodescope.Compile(scope)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	policy, _ := nodescope.NewPolicy([]*nodescope.Scope{compiled})
	var pointer atomic.Pointer[nodescope.Policy]
	pointer.Store(policy)
	answer := nodescope.New(&pointer, e.State.Graph, e.Node, e.Restriction).Admit(t.Context(), w)
	return !answer.Refused()
}

func pod(name, node string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.PodSpec{NodeName: node}}
	for _, f := range change {
		f(p)
	}
	return p
}

func mirror(p *corev1.Pod) {
	yes := true
	p.Annotations = map[string]string{"kubernetes.io/config.mirror": "x"}
	p.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "Node", Name: p.Spec.NodeName, UID: "uid-" + "a", Controller: &yes,
	}}
	p.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
}

func node(name string, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, f := range change {
		f(n)
	}
	return n
}

func tainted(n *corev1.Node) {
	n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
}

func labelled(n *corev1.Node) { n.Labels = map[string]string{"node-restriction.kubernetes.io/x": "y"} }

func thing(name string) runtime.Object {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"nodeName": "a"}}}
	o.SetName(name)
	return o
}

// token is a TokenRequest that is bound to an object.
func token(kind, name, uid string) *authenticationv1.TokenRequest {
	r := &authenticationv1.TokenRequest{}
	if kind != "" {
		r.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: kind, Name: name, UID: "uid-" + "web"}
		if uid == "" {
			r.Spec.BoundObjectRef.UID = ""
		}
	}
	return r
}

// write is a write with the token of node a: "UPDATE pods/status shop/web".
func write(text string, objects ...runtime.Object) *noderestriction.Request {
	parts := strings.Fields(text)
	w := &noderestriction.Request{
		User: account, Groups: []string{"system:serviceaccounts"}, Operation: noderestriction.Operation(parts[0]), Version: "v1",
		Extra: map[string][]string{nodeidentity.ExtraNode: {"a"}, nodeidentity.ExtraNodeUID: {"uid-a"}},
	}
	resource, sub, _ := strings.Cut(parts[1], "/")
	w.Resource, w.Group, _ = strings.Cut(resource, ".")
	w.Subresource = sub
	if len(parts) > 2 {
		w.Name = parts[2]
		if namespace, name, both := strings.Cut(parts[2], "/"); both {
			w.Namespace, w.Name = namespace, name
		}
	}
	switch {
	case w.Operation == noderestriction.Delete && len(objects) > 0:
		w.OldObject = objects[0]
	case len(objects) > 0:
		w.Object = objects[0]
	}
	if len(objects) > 1 {
		w.OldObject = objects[1]
	}
	return w
}

func with(w *noderestriction.Request, extra map[string][]string) *noderestriction.Request {
	w.Extra = extra
	return w
}

func slice(node string) *resourcev1.ResourceSlice {
	return &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "slice-" + node}, Spec: resourcev1.ResourceSliceSpec{NodeName: &node}}
}

func signing(signer string) *certificatesv1.CertificateSigningRequest {
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "r"}, Spec: certificatesv1.CertificateSigningRequestSpec{SignerName: signer},
	}
}

func certificate(node string) *certificatesv1.PodCertificateRequest {
	r := &certificatesv1.PodCertificateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "r"}}
	r.Spec.NodeName = "a"
	if node != "a" {
		r.Spec.NodeName = "b"
	}
	return r
}

// writes are writes of all kinds.
func writes() []*noderestriction.Request {
	lease := func(name string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	csi := func(name string) *storagev1.CSINode {
		return &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	labelledPod := func(p *corev1.Pod) { p.Labels = map[string]string{"k": "v"} }
	claims := func(p *corev1.Pod) { p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "c"}} }
	withSecret := func(p *corev1.Pod) {
		mirror(p)
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}}}
	}
	withEnv := func(p *corev1.Pod) {
		mirror(p)
		p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{}}}
	}
	withAccount := func(p *corev1.Pod) { mirror(p); p.Spec.ServiceAccountName = "web" }
	foreign := func(p *corev1.Pod) { mirror(p); p.OwnerReferences[0].UID = "uid-b" }
	var all []*noderestriction.Request
	for _, name := range []string{"a", "b"} {
		all = append(all,
			write("CREATE things.x "+name, thing(name)), write("CREATE things.x", thing(name)), write("UPDATE things.x "+name, thing(name), thing(name)),
			write("DELETE things.x "+name, thing(name)), write("UPDATE things.x/status "+name, thing(name), thing(name)),
			write("CREATE things.x n/"+name, thing(name)), write("CONNECT things.x/exec "+name, thing(name)),
			write("CREATE nodes "+name, node(name)), write("CREATE nodes "+name, node(name, labelled)), write("UPDATE nodes "+name, node(name), node(name)),
			write("UPDATE nodes "+name, node(name, tainted), node(name)), write("UPDATE nodes/status "+name, node(name, labelled), node(name)),
			write("UPDATE nodes/status "+name, node(name), node(name)), write("DELETE nodes "+name, node(name)),
			write("CONNECT nodes/proxy "+name, &corev1.NodeProxyOptions{}),
			write("CREATE leases.coordination.k8s.io kube-node-lease/"+name, lease(name)), write("CREATE leases.coordination.k8s.io shop/"+name, lease(name)),
			write("UPDATE leases.coordination.k8s.io kube-node-lease/"+name, lease(name), lease(name)),
			write("DELETE leases.coordination.k8s.io kube-node-lease/"+name, lease(name)),
			write("CREATE csinodes.storage.k8s.io "+name, csi(name)), write("UPDATE csinodes.storage.k8s.io "+name, csi(name), csi(name)),
			write("DELETE csinodes.storage.k8s.io "+name, csi(name)), write("UPDATE csinodes.storage.k8s.io/status "+name, csi(name), csi(name)),
			write("CREATE resourceslices.resource.k8s.io slice-"+name, slice(name)), write("DELETE resourceslices.resource.k8s.io slice-"+name, slice(name)),
			write("UPDATE resourceslices.resource.k8s.io slice-"+name, slice(name), slice(name)),
			write("CREATE podcertificaterequests.certificates.k8s.io shop/r", certificate(name)),
		)
	}
	for name, of := range map[string]string{"web": "a", "other": "b", "new": "a"} {
		p := pod(name, of)
		all = append(all,
			write("CREATE pods shop/"+name, p), write("CREATE pods shop/"+name, pod(name, of, mirror)), write("CREATE pods shop/"+name, pod(name, of, withSecret)),
			write("CREATE pods shop/"+name, pod(name, of, withEnv)), write("CREATE pods shop/"+name, pod(name, of, withAccount)),
			write("CREATE pods shop/"+name, pod(name, of, foreign)))
		if name == "new" {
			continue // it does not exist
		}
		all = append(all,
			write("UPDATE pods shop/"+name, p, p), write("DELETE pods shop/"+name, p), write("UPDATE pods/status shop/"+name, p, p),
			write("UPDATE pods/status shop/"+name, pod(name, of, labelledPod), p), write("UPDATE pods/status shop/"+name, pod(name, of, claims), p),
			write("UPDATE pods/ephemeralcontainers shop/"+name, p, p), write("UPDATE pods/resize shop/"+name, p, p),
			write("CREATE pods/eviction shop/"+name, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}),
			write("CREATE pods/binding shop/"+name, &corev1.Binding{}), write("CONNECT pods/exec shop/"+name, &corev1.PodExecOptions{}),
			write("CONNECT pods/portforward shop/"+name, &corev1.PodPortForwardOptions{}),
			write("CREATE serviceaccounts/token shop/web", token("Pod", name, "uid")))
	}
	return append(all,
		write("DELETE pods shop/", pod("web", "a")), write("DELETE pods shop/", pod("other", "b")), write("DELETE things.x", thing("a")),
		write("DELETE leases.coordination.k8s.io kube-node-lease/", lease("a")),
		write("CREATE serviceaccounts/token shop/web", token("", "", "")), write("CREATE serviceaccounts/token shop/web", token("Secret", "s", "uid")),
		write("CREATE serviceaccounts/token shop/web", token("Pod", "web", "")), write("CREATE secrets shop/s", &corev1.Secret{}),
		write("CREATE certificatesigningrequests.certificates.k8s.io r", signing("example.com/x")),
		write("CREATE certificatesigningrequests.certificates.k8s.io r", signing("kubernetes.io/kube-apiserver-client-kubelet")),
		write("CREATE events shop/e", &corev1.Event{}), write("UPDATE events shop/e", &corev1.Event{}, &corev1.Event{}),
		write("DELETE events shop/e", &corev1.Event{}), write("CREATE configmaps shop/c", &corev1.ConfigMap{}),
		write("UPDATE configmaps shop/c", &corev1.ConfigMap{}, &corev1.ConfigMap{}), write("DELETE configmaps shop/c", &corev1.ConfigMap{}),
	)
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
		"anywhere: [{apiGroups: [''], resources: [configmaps, secrets], verbs: [create, update, delete], namespaces: [shop]}]",
		"anywhere: [{apiGroups: [''], resources: [configmaps], resourceNames: [c], verbs: [create, update]}]",
		"anywhere: [{nonResourceURLs: [/metrics], verbs: [get]}]",
		"asNode: true, namedAsNode: [{apiGroups: [''], resources: [nodes, nodes/status], verbs: [patch]}], podsOnNode: [{resources: [pods], verbs: [delete]}]",
	}
	for _, rule := range rules {
		for _, rest := range []string{"otherwise: Deny", "otherwise: Allow", "tokensWithoutNode: Allow"} {
			all[rule+", "+rest] = scopeOf(t, rule+", "+rest)
		}
	}
	return all
}

// open reports whether the policy says that it cannot decide about a resource.
func open(limits []scopepolicies.Limit, w *noderestriction.Request) bool {
	resource := w.Resource
	if w.Subresource != "" {
		resource += "/" + w.Subresource
	}
	return slices.ContainsFunc(limits, func(l scopepolicies.Limit) bool {
		return l.Rule != "" && slices.ContainsFunc(strings.FieldsFunc(l.Why, func(r rune) bool { return strings.ContainsRune(",: ", r) }), func(word string) bool {
			return word == resource
		})
	})
}

// TestNeverLooserThanTheScope: what a policy lets pass the scope lets pass too, unless the policy says
// that it cannot decide.
func TestNeverLooserThanTheScope(t *testing.T) {
	e := cluster(t)
	compared, passed, stricter := 0, 0, 0
	for name, scope := range scopes(t) {
		policy, limits := newEvaluator(t, scope), scopepolicies.Generate(scope, "").CannotExpress
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

// TestPolicies is the table of what policies are for.
func TestPolicies(t *testing.T) {
	const things = "namedAsNode: [{apiGroups: [x], resources: [things], verbs: [create, update, delete]}]"
	const evict = "podsOnNode: [{resources: [pods/eviction], verbs: [create]}]"
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
		{"a token with two nodes", things, with(write("CREATE things.x a", thing("a")), map[string][]string{nodeidentity.ExtraNode: {"a", "b"}}), false},
		{"a token without a node that may", "tokensWithoutNode: Allow", with(write("CREATE things.x b", thing("b")), nil), true},
		{
			"two nodes where none would do", "tokensWithoutNode: Allow",
			with(write("CREATE things.x b", thing("b")), map[string][]string{nodeidentity.ExtraNode: {"a", "b"}}), false,
		},
		{"what no rule names", things, write("CREATE others.x a", thing("a")), false},
		{"what no rule names and otherwise allows", things + ", otherwise: Allow", write("CREATE others.x b", thing("b")), true},
		{"what a rule names, otherwise or not", things + ", otherwise: Allow", write("CREATE things.x b", thing("b")), false},
		{"a pod on the node", "podsOnNode: [{resources: [pods], verbs: [delete]}]", write("DELETE pods shop/web", onA), true},
		{"a pod on another", "podsOnNode: [{resources: [pods], verbs: [delete]}]", write("DELETE pods shop/other", pod("other", "b")), false},
		{"an eviction does not show the node", evict, write("CREATE pods/eviction shop/other", &policyv1.Eviction{}), true},
		{
			"a collection of pods on the node", "selectsNode: [{apiGroups: [''], resources: [pods], verbs: [deletecollection], field: spec.nodeName}]",
			write("DELETE pods shop/", onA), true,
		},
		{
			"a collection of pods on another", "selectsNode: [{apiGroups: [''], resources: [pods], verbs: [deletecollection], field: spec.nodeName}]",
			write("DELETE pods shop/", pod("other", "b")), false,
		},
		{"the own Node object", "asNode: true", write("UPDATE nodes/status a", node("a"), node("a")), true},
		{"another Node object", "asNode: true", write("UPDATE nodes/status b", node("b"), node("b")), false},
		{"taints of the own Node object", "asNode: true", write("UPDATE nodes a", node("a", tainted), node("a")), false},
		{"a mirror pod", "asNode: true", write("CREATE pods shop/new", pod("new", "a", mirror)), true},
		{"a pod that is none", "asNode: true", write("CREATE pods shop/new", pod("new", "a")), false},
		{"a mirror pod of another node", "asNode: true", write("CREATE pods shop/new", pod("new", "b", mirror)), false},
		{"a token that is bound to a pod", "asNode: true", write("CREATE serviceaccounts/token shop/web", token("Pod", "web", "uid")), true},
		{"a token that is bound to nothing", "asNode: true", write("CREATE serviceaccounts/token shop/web", token("", "", "")), false},
		{"a token that is bound to a secret", "asNode: true", write("CREATE serviceaccounts/token shop/web", token("Secret", "web", "uid")), false},
		{
			"a name that a rule has", "anywhere: [{apiGroups: [''], resources: [configmaps], resourceNames: [c], verbs: [update]}]",
			write("UPDATE configmaps shop/c", &corev1.ConfigMap{}, &corev1.ConfigMap{}), true,
		},
		{
			"a name that it has not", "anywhere: [{apiGroups: [''], resources: [configmaps], resourceNames: [d], verbs: [update]}]",
			write("UPDATE configmaps shop/c", &corev1.ConfigMap{}, &corev1.ConfigMap{}), false,
		},
		{
			"a create, which has no name when it is authorized", "anywhere: [{apiGroups: [''], resources: [configmaps], resourceNames: [c], verbs: [create]}]",
			write("CREATE configmaps shop/c", &corev1.ConfigMap{}), false,
		},
	} {
		if got := newEvaluator(t, scopeOf(t, tc.spec)).passes(t, tc.write); got != tc.want {
			t.Errorf("%s: passes %v", tc.rule, got)
		}
	}
}

func TestWhatCannotBeExpressed(t *testing.T) {
	for rule, tc := range map[string]struct{ spec, want string }{
		"reads":     {"otherwise: Deny", "reads"},
		"evictions": {"podsOnNode: [{resources: [pods, pods/eviction], verbs: [create, delete]}]", "podsOnNode[0]: pods/eviction"},
		"tokens":    {"asNode: true", "asNode: serviceaccounts/token"},
		"fields":    {"selectsNode: [{apiGroups: [x], resources: [y], verbs: [deletecollection], field: spec.host}]", "spec.host"},
	} {
		policies, err := scopepolicies.Write([]*scopepolicies.Policy{scopepolicies.Generate(scopeOf(t, tc.spec), "")})
		if err != nil || !strings.Contains(policies.Manifest, tc.want) || len(policies.Policies[0].CannotExpress) == 0 {
			t.Errorf("%s: %v\n%s", rule, err, policies.Manifest)
		}
	}
}

func TestActions(t *testing.T) {
	scope := scopeOf(t, "otherwise: Deny")
	for mode, want := range map[v1alpha1.Mode]registrationv1.ValidationAction{v1alpha1.Observe: registrationv1.Audit, v1alpha1.Enforce: registrationv1.Deny} {
		scope.Spec.Mode = mode
		if _, binding := scopepolicies.Generate(scope, "").Objects(); !slices.Equal(binding.Spec.ValidationActions, []registrationv1.ValidationAction{want}) {
			t.Errorf("%s: %v", mode, binding.Spec.ValidationActions)
		}
	}
	if _, binding := scopepolicies.Generate(scope, registrationv1.Warn).Objects(); binding.Spec.ValidationActions[0] != registrationv1.Warn {
		t.Errorf("got %v", binding.Spec.ValidationActions)
	}
}
