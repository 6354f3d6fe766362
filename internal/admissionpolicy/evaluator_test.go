package admissionpolicy_test

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/internal/admissionpolicy"
)

// policyOf is the policy of a text with the fields of the spec, bound with a binding that denies.
func policyOf(t *testing.T, spec, binding string) *inventory.Admission {
	t.Helper()
	a := &inventory.Admission{
		Kind: "ValidatingAdmissionPolicy", Name: "p", Webhook: "b",
		Policy: &admissionv1.ValidatingAdmissionPolicySpec{}, Binding: &admissionv1.ValidatingAdmissionPolicyBindingSpec{},
	}
	for text, into := range map[string]any{spec: a.Policy, binding: a.Binding} {
		if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
	}
	if a.Policy.MatchConstraints == nil {
		a.Policy.MatchConstraints = &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{"*"},
				Rule:       admissionv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*", "*/*"}},
			},
		}}}
	}
	return a
}

// validation is a policy with one expression.
func validation(text string) string {
	encoded, err := yaml.Marshal(map[string]any{"validations": []any{map[string]any{"expression": text}}})
	if err != nil {
		panic(err)
	}
	return string(encoded)
}

func field(path ...string) attackpaths.Field { return path }

// podCreation is a request to create a privileged pod in the namespace shop.
func podCreation() *attackpaths.Request {
	privileged := true
	return &attackpaths.Request{
		Operation: admissionv1.Create, Kind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"},
		Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Namespace: "shop", Name: "web",
		NamespaceLabels: map[string]string{"env": "prod", "kubernetes.io/metadata.name": "shop"},
		Unknown:         []attackpaths.Field{field("metadata", "uid"), field("status")},
		Filled:          []attackpaths.Field{field("spec", "nodeName")},
		Objects: func() (runtime.Object, runtime.Object) {
			p := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
			p.ObjectMeta = metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{"app": "web"}}
			p.Spec = corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{
				Name: "c", Image: "i", SecurityContext: &corev1.SecurityContext{Privileged: &privileged},
			}}}
			return p, nil
		},
	}
}

// ofProd selects namespaces.
const ofProd = "namespaceSelector: {matchLabels: {env: prod}}, "

// statusOfNamespace is an update of the status of a namespace of which the objects show nothing.
func statusOfNamespace(labels map[string]string) *attackpaths.Request {
	r := podCreation()
	r.Operation, r.Subresource, r.Namespace, r.Name, r.NamespaceLabels = admissionv1.Update, "status", "shop", "shop", labels
	r.Kind, r.Resource.Resource = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, "namespaces"
	r.Objects = func() (runtime.Object, runtime.Object) { return &corev1.Namespace{}, &corev1.Namespace{} }
	return r
}

// podUpdate is a request to change a pod of which only the namespace and the added container are
// known.
func podUpdate() *attackpaths.Request {
	r := podCreation()
	r.Operation, r.AnyName = admissionv1.Update, true
	r.Known = []attackpaths.Field{field("metadata", "namespace"), field("spec", "ephemeralContainers")}
	r.OldKnown = []attackpaths.Field{field("metadata", "namespace")}
	r.Objects = func() (runtime.Object, runtime.Object) {
		old := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}}
		changed := old.DeepCopy()
		changed.Spec.EphemeralContainers = []corev1.EphemeralContainer{{}}
		changed.Spec.EphemeralContainers[0].Name = "d"
		return changed, old
	}
	return r
}

const (
	passed    = attackpaths.Passed
	refused   = attackpaths.Refused
	undecided = attackpaths.Undecided
)

// TestReview decides about the creation of a privileged pod unless a case says otherwise.
func TestReview(t *testing.T) {
	noPrivileged := "object.spec.containers.all(c, !has(c.securityContext.privileged) || !c.securityContext.privileged)"
	cases := []struct {
		rule          string
		spec, binding string
		request       *attackpaths.Request
		want          attackpaths.PolicyDecision
		why           string
	}{
		{rule: "a field of the object decides", spec: validation(noPrivileged), want: refused},
		{rule: "another field decides", spec: validation("!has(object.spec.hostPID) || !object.spec.hostPID"), want: passed},
		{rule: "a field of the server is not known", spec: validation("object.metadata.uid != ''"), why: "reads object.metadata.uid"},
		{
			rule: "what contains an unknown field is not known",
			spec: validation("object.metadata == oldObject"),
			why:  "reads object.metadata",
		},
		{rule: "an object that contains an unknown field is not known", spec: validation("size(object) > 2"), why: "reads object"},
		{
			rule: "whether an unknown field is there is not known",
			spec: validation("has(object.status.phase)"),
			why:  "reads object.status.phase",
		},
		{rule: "whether a filled field is there is known", spec: validation("!has(object.spec.nodeName)"), want: refused},
		{
			rule: "what a filled field is is not known", spec: validation("object.spec.nodeName == 'n1'"),
			why: "reads object.spec.nodeName",
		},
		{rule: "a field by its name in brackets", spec: validation("object['metadata']['uid'] != ''"), why: "reads object.metadata.uid"},
		{
			rule: "an optional field", spec: validation("object.?metadata.?uid.orValue('') != ''"), why: "reads object.metadata.uid",
		},
		{rule: "an optional field by index", spec: validation("object[?'metadata'][?'uid'].hasValue()"), why: "reads object.metadata.uid"},
		{rule: "a field by a computed name", spec: validation("object[object.metadata.name] == 1"), why: "reads object"},
		{rule: "a key that is looked for in a map", spec: validation("'uid' in object.metadata"), why: "reads object.metadata.uid"},
		{rule: "a known key that is looked for in a map", spec: validation("'app' in object.metadata.labels"), want: passed},
		{rule: "an unknown field through a comprehension", spec: validation("[object].all(o, o.metadata.uid != '')"), why: "reads object"},
		{
			rule: "an unknown field through a comprehension with the name of a variable",
			spec: validation("object.spec.containers.all(request, .request.userInfo.username == '')"), why: "reads request.userInfo",
		},
		{
			rule: "an unknown field through a comprehension over what contains it",
			spec: validation("[object.metadata].exists(m, m.uid != '')"), why: "reads object.metadata",
		},
		{rule: "there is no old object of a creation", spec: validation("oldObject == null"), want: passed},
		{rule: "there is an object", spec: validation("object == null"), want: refused},
		{
			rule: "an old object that is compared in a creation",
			spec: validation("oldObject != null && oldObject.spec.x == 1"),
			want: refused,
		},
		{rule: "the operation", spec: validation("request.operation == 'CREATE'"), want: passed},
		{rule: "the kind", spec: validation("request.kind.kind == 'Pod' && request.resource.resource == 'pods'"), want: passed},
		{rule: "the subresource", spec: validation("request.subResource == 'exec'"), want: refused},
		{rule: "the namespace of the request", spec: validation("request.namespace == 'shop'"), want: passed},
		{rule: "the name of the request", spec: validation("request.name == 'web'"), want: passed},
		{rule: "it is no dry run", spec: validation("!request.dryRun"), want: passed},
		{rule: "the user", spec: validation("request.userInfo.username == 'alice'"), why: "reads request.userInfo"},
		{rule: "the user in the second operand", spec: validation("true || 'g' in request.userInfo.groups"), why: "reads request.userInfo"},
		{rule: "whether there is a user", spec: validation("has(request.userInfo)"), why: "reads request.userInfo"},
		{rule: "options", spec: validation("request.options == null"), why: "reads request.options"},
		{rule: "the whole request", spec: validation("[request].all(r, r.userInfo.username == '')"), why: "reads the whole request"},
		{
			rule: "the authorizer", spec: validation("authorizer.group('').resource('pods').check('get').allowed()"),
			why: "reads the authorizer",
		},
		{
			rule: "the authorizer of the resource", spec: validation("authorizer.requestResource.check('get').allowed()"),
			why: "reads the authorizer",
		},
		{
			rule: "a policy with a kind of parameters",
			spec: "paramKind: {apiVersion: v1, kind: ConfigMap}\n" + validation("true"),
			why:  "has parameters",
		},
		{rule: "a binding with parameters", spec: validation("true"), binding: "paramRef: {name: x}", why: "has parameters"},
		{rule: "the name of the namespace", spec: validation("namespaceObject.metadata.name == 'shop'"), want: passed},
		{rule: "a label of the namespace", spec: validation("namespaceObject.metadata.labels.env != 'prod'"), want: refused},
		{
			rule: "an annotation of the namespace", spec: validation("has(namespaceObject.metadata.annotations)"),
			why: "reads namespaceObject.metadata.annotations",
		},
		{rule: "the whole namespace", spec: validation("namespaceObject != null"), why: "reads namespaceObject"},
		{
			rule: "a variable of what is known",
			spec: "variables: [{name: host, expression: 'has(object.spec.hostPID)'}]\n" + validation("!variables.host"), want: passed,
		},
		{
			rule: "a variable of what is not known",
			spec: "variables: [{name: u, expression: request.userInfo.username}, {name: v, expression: variables.u + ''}]\n" +
				validation("variables.v == ''"),
			why: "reads request.userInfo",
		},
		{
			rule: "a variable that nothing uses",
			spec: "variables: [{name: u, expression: request.userInfo.username}]\n" + validation("true"), want: passed,
		},
		{
			rule: "all variables",
			spec: "variables: [{name: u, expression: request.userInfo.username}]\n" + validation("size(dyn(variables)) == 0"),
			why:  "reads all variables",
		},
		{rule: "an expression that does not compile", spec: validation("object.spec."), why: "does not compile"},
		{rule: "an expression of another type", spec: validation("'text'"), why: "does not compile"},
		{
			rule: "a variable that does not compile", spec: "variables: [{name: u, expression: 'nothing'}]\n" + validation("true"),
			why: "has a variable u that does not compile",
		},
		{rule: "parameters that are not declared", spec: validation("params == null"), why: "does not compile"},
		{rule: "an error refuses", spec: validation("object.spec.missing == 1"), want: refused},
		{rule: "an error that is ignored", spec: "failurePolicy: Ignore\n" + validation("object.spec.missing == 1"), want: passed},
		{
			rule: "an ignored error beside a refusal",
			spec: "failurePolicy: Ignore\nvalidations: [{expression: object.spec.missing == 1}, {expression: 'false'}]", want: refused,
		},
		{rule: "too much work refuses", spec: validation(expensive), want: refused},
		{
			rule: "a condition that does not hold",
			spec: "matchConditions: [{name: a, expression: request.operation == 'DELETE'}]\n" + validation("false"),
			want: passed,
		},
		{
			rule: "a condition that holds",
			spec: "matchConditions: [{name: a, expression: request.operation == 'CREATE'}]\n" + validation("false"),
			want: refused,
		},
		{
			rule: "a condition about the user",
			spec: "matchConditions: [{name: a, expression: '''g'' in request.userInfo.groups'}]\n" + validation("false"),
			why:  "reads request.userInfo",
		},
		{
			rule: "an error in a condition",
			spec: "matchConditions: [{name: a, expression: object.spec.no == 1}]\n" + validation("true"),
			want: refused,
		},
		{
			rule: "an error in a condition that is ignored",
			spec: "failurePolicy: Ignore\nmatchConditions: [{name: a, expression: object.spec.no == 1}]\n" + validation("false"),
			want: passed,
		},
		{
			rule: "conditions do not know the namespace",
			spec: "matchConditions: [{name: a, expression: namespaceObject.metadata.name == 'shop'}]\n" + validation("true"), want: refused,
		},
		{
			rule: "a message about the user decides nothing",
			spec: "validations: [{expression: 'true', messageExpression: request.userInfo.username}]", want: passed,
		},
		{
			rule: "an audit annotation with an error refuses",
			spec: "auditAnnotations: [{key: a, valueExpression: 'string(object.spec.no)'}]",
			want: refused,
		},
		{
			rule: "an audit annotation about the user", spec: "auditAnnotations: [{key: a, valueExpression: request.userInfo.username}]",
			why: "reads request.userInfo",
		},
		{rule: "an audit annotation", spec: "auditAnnotations: [{key: a, valueExpression: 'string(object.metadata.name)'}]", want: passed},
		{
			rule: "a policy of an older snapshot", spec: "failurePolicy: Fail", why: "is not in the state as a whole",
		},
		{rule: "another resource", spec: matchText("resourceRules: [" + ruleText("CREATE", "secrets") + "]"), want: passed},
		{rule: "the resource", spec: matchText("resourceRules: [" + ruleText("CREATE", "pods") + "]"), want: refused},
		{rule: "another operation", spec: matchText("resourceRules: [" + ruleText("DELETE", "pods") + "]"), want: passed},
		{
			rule: "another version with equivalents",
			spec: matchText("matchPolicy: Equivalent, " +
				"resourceRules: [{operations: [CREATE], apiGroups: [''], apiVersions: [v2], resources: [pods]}]"),
			want: passed,
		},
		{
			rule: "a scope",
			spec: matchText("resourceRules: [" + ruleText("CREATE", "pods", "scope: Cluster") + "]"),
			want: passed,
		},
		{
			rule: "an excluded resource",
			spec: matchText("resourceRules: [" + ruleText("CREATE", "'*'") + "], " +
				"excludeResourceRules: [" + ruleText("CREATE", "pods") + "]"),
			want: passed,
		},
		{
			rule: "names that the attacker avoids",
			spec: matchText("resourceRules: [" + ruleText("CREATE", "pods", "resourceNames: [db]") + "]"),
			want: passed,
		},
		{
			rule: "a selected namespace",
			spec: matchText(ofProd + "resourceRules: [" + ruleText("CREATE", "pods") + "]"),
			want: refused,
		},
		{
			rule: "another namespace",
			spec: matchText("namespaceSelector: {matchLabels: {env: test}}, resourceRules: [" + ruleText("CREATE", "pods") + "]"),
			want: passed,
		},
		{
			rule:    "the status of a namespace of which nothing is known",
			spec:    matchText(ofProd + "resourceRules: [" + ruleText("UPDATE", "namespaces/status") + "]"),
			request: statusOfNamespace(nil), why: "selects namespaces by labels that are not known",
		},
		{
			rule:    "the status of a namespace is selected by the labels that the namespace has",
			spec:    matchText(ofProd + "resourceRules: [" + ruleText("UPDATE", "namespaces/status") + "]"),
			request: statusOfNamespace(map[string]string{"env": "prod"}), want: refused,
		},
		{
			rule: "a binding for another namespace", spec: validation("false"),
			binding: "matchResources: {namespaceSelector: {matchLabels: {env: test}}}", want: passed,
		},
		{
			rule: "an object that is not selected", spec: validation("false"),
			binding: "matchResources: {objectSelector: {matchLabels: {app: db}}}", want: passed,
		},
		{
			rule: "an invalid selector", spec: validation("true"),
			binding: "matchResources: {objectSelector: {matchExpressions: [{key: a, operator: No}]}}", want: refused,
		},
		{
			rule: "an update: a known field", request: podUpdate(),
			spec: validation("object.spec.ephemeralContainers.all(c, c.name == 'd')"),
			want: passed,
		},
		{
			rule: "an update: another field", request: podUpdate(), spec: validation("object.spec.containers.size() > 0"),
			why: "reads object.spec.containers",
		},
		{
			rule: "an update: the old object", request: podUpdate(), spec: validation("has(oldObject.spec.ephemeralContainers)"),
			why: "reads oldObject.spec.ephemeralContainers",
		},
		{rule: "an update: that there is an old object", request: podUpdate(), spec: validation("oldObject == null"), want: refused},
		{rule: "an update: a name", request: podUpdate(), spec: validation("request.name == 'x'"), why: "reads request.name"},
		{
			rule: "an update: a selection by labels", request: podUpdate(), spec: validation("false"),
			binding: "matchResources: {objectSelector: {matchLabels: {app: db}}}", why: "selects objects by labels that are not known",
		},
		{
			rule: "an update: a selection by name", request: podUpdate(),
			spec: matchText("resourceRules: [" + ruleText("UPDATE", "pods", "resourceNames: [db]") + "]"),
			why:  "selects objects by name",
		},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			if c.request == nil {
				c.request = podCreation()
			}
			got := admissionpolicy.New().Review(policyOf(t, c.spec, c.binding), c.request)
			if want := (attackpaths.PolicyAnswer{Decision: c.want, Why: c.why}); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
}

// matchText is a policy that refuses every request that it is asked about.
func matchText(constraints string) string {
	return "matchConstraints: {" + constraints + "}\n" + validation("false")
}

func ruleText(operation, resource string, more ...string) string {
	text := "operations: [" + operation + "], apiGroups: [''], apiVersions: [v1], resources: [" + resource + "]"
	return "{" + strings.Join(append([]string{text}, more...), ", ") + "}"
}
