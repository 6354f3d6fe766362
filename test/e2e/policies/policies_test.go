package policies

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// demands are specs of policies without their match rules. Each is about the objects of
// one namespace.
var demands = []string{
	validation("true"),
	validation("false"),
	validation("object.missing.field == 1"),
	"failurePolicy: Ignore\nvalidations: [{expression: object.missing.field == 1}]",
	"failurePolicy: Ignore\nvalidations: [{expression: object.missing.field == 1}, {expression: 'false'}]",
	validation("request.userInfo.username == 'nobody'"),
	validation("request.operation == 'CREATE' && request.namespace.startsWith('case-')"),
	validation("request.name == 'web' && object.metadata.name == request.name"),
	validation("request.kind.kind != 'Pod'"),
	validation("request.resource.resource != 'deployments' && request.requestKind.version == 'v1'"),
	validation("oldObject == null && object != null"),
	validation("namespaceObject.metadata.labels.env == 'prod'"),
	validation("namespaceObject.metadata.labels.other == 'x'"),
	validation("namespaceObject.metadata.name.startsWith('case')"),
	"matchConditions: [{name: a, expression: request.kind.kind == 'Secret'}]\nvalidations: [{expression: 'false'}]",
	"matchConditions: [{name: a, expression: namespaceObject.metadata.name == 'x'}]\nvalidations: [{expression: 'true'}]",
	"failurePolicy: Ignore\nmatchConditions: [{name: a, expression: object.no.field == 1}]\nvalidations: [{expression: 'false'}]",
	"matchConditions: [{name: a, expression: object.no.field == 1}, {name: b, expression: 'false'}]\nvalidations: [{expression: 'false'}]",
	`variables: [{name: all, expression: "object.spec.containers + object.spec.?initContainers.orValue([])"}]
validations: [{expression: "!has(object.spec.containers) || variables.all.all(c, !c.?securityContext.?privileged.orValue(false))"}]`,
	validation("!has(object.spec) || !object.spec.?hostPID.orValue(false)"),
	validation("!has(object.spec) || object.spec.?volumes.orValue([]).all(v, !has(v.hostPath))"),
	validation("!has(object.spec.containers) || object.spec.containers.all(c, c.securityContext.runAsNonRoot)"),
	validation("!has(object.spec.nodeName)"),
	validation("!has(object.spec.serviceAccountName) || object.spec.serviceAccountName == 'db'"),
	validation("!has(object.spec.template) || !has(object.spec.template.spec.nodeName)"),
	validation("object.spec.template.spec.containers.exists(c, has(c.resources.limits.cpu))"),
	validation("object.spec.?template.?spec.?hostPID.orValue(false) || has(object.type)"),
	validation("object.spec.tolerations.size() == 2 && object.spec.enableServiceLinks"),
	validation("object.spec.containers.all(c, c.terminationMessagePath == '/dev/termination-log' && c.image.contains(':'))"),
	validation("object.spec.terminationGracePeriodSeconds == 30 && object.spec.dnsPolicy == 'ClusterFirst'"),
	validation("has(object.spec.securityContext) && has(object.spec.schedulerName)"),
	validation("object.roleRef.name == 'view'", "object.subjects.all(s, s.kind == 'Group')"),
	validation("object.type == 'kubernetes.io/service-account-token'"),
	validation("object.spec.storageClassName == '' && object.spec.volumeName != ''"),
	validation("object.metadata.labels.app == 'web'"),
	"validations: [{expression: 'true', messageExpression: request.userInfo.username}]",
	"auditAnnotations: [{key: a, valueExpression: 'string(object.no.field)'}]",
	"auditAnnotations: [{key: a, valueExpression: object.metadata.name + ''}]",
	validation("quantity(object.spec.containers[0].resources.limits.memory).isLessThan(quantity('1Gi'))"),
	validation("has(object.metadata.uid)"),
}

// validation is the spec of a policy with expressions.
func validation(expressions ...string) string {
	var spec admissionv1.ValidatingAdmissionPolicySpec
	for _, e := range expressions {
		spec.Validations = append(spec.Validations, admissionv1.Validation{Expression: e})
	}
	text, err := yaml.Marshal(spec)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// matches are the match rules of one more group of policies. They refuse everything.
var matches = []string{
	"resourceRules: [{operations: [CREATE], apiGroups: [''], apiVersions: [v1], resources: [pods]}]",
	"resourceRules: [{operations: [UPDATE], apiGroups: ['*'], apiVersions: ['*'], resources: ['*']}]",
	"resourceRules: [{operations: ['*'], apiGroups: [apps], apiVersions: [v1beta1], resources: ['*']}]",
	"resourceRules: [{operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*'], scope: Cluster}]",
	"resourceRules: [{operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*'], scope: Namespaced}]",
	"resourceRules: [{operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*'], resourceNames: [web]}]",
	"resourceRules: [{operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*'], resourceNames: [db]}]",
	"{resourceRules: [{operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*']}], excludeResourceRules: " +
		"[{operations: ['*'], apiGroups: [''], apiVersions: [v1], resources: [pods, secrets]}]}",
	"{resourceRules: [{operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*']}], " +
		"objectSelector: {matchLabels: {app: web}}}",
	"{resourceRules: [{operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*']}], " +
		"namespaceSelector: {matchLabels: {env: test}}}",
}

// everything is asked about all creations.
const everything = "resourceRules: [{operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*']}]"

// policiesOf lists the policies with their bindings, each for its own namespace.
func policiesOf(t *testing.T) (
	policies []*admissionv1.ValidatingAdmissionPolicy, bindings []*admissionv1.ValidatingAdmissionPolicyBinding,
) {
	t.Helper()
	add := func(demand, match string) {
		name := fmt.Sprintf("case-%d", len(policies))
		p := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
		p.Spec.MatchConstraints = &admissionv1.MatchResources{}
		for text, into := range map[string]any{demand: &p.Spec, match: p.Spec.MatchConstraints} {
			if err := yaml.Unmarshal([]byte(text), into); err != nil {
				t.Fatalf("%v in %s", err, text)
			}
		}
		b := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
		b.Spec.PolicyName, b.Spec.ValidationActions = name, []admissionv1.ValidationAction{admissionv1.Deny}
		b.Spec.MatchResources = &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{
			MatchLabels: map[string]string{corev1.LabelMetadataName: name},
		}}
		policies, bindings = append(policies, p), append(bindings, b)
	}
	for _, demand := range demands {
		add(demand, everything)
	}
	for _, match := range matches {
		add("validations: [{expression: 'false'}]", match)
	}
	return policies, bindings
}

// TestPoliciesDecideAsTheAPIServer sends each object that attack paths try, as a dry run.
func TestPoliciesDecideAsTheAPIServer(t *testing.T) {
	policies, bindings := policiesOf(t)
	apply(t, policies, bindings)
	counts := map[attackpaths.PolicyDecision]int{}
	for _, asked := range reviews(t, policies, bindings) {
		r := asked.request
		if r.Operation != admissionv1.Create || r.AnyName || r.Namespace == "" || r.Subresource != "" {
			continue
		}
		counts[asked.answer.Decision]++
		if asked.answer.Decision == attackpaths.Undecided {
			continue
		}
		object := asUnstructured(t, r)
		created, err := create(t, r, complete(object))
		name := asked.policy
		switch refused := err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+name+"'"); {
		case err != nil && !refused:
			t.Errorf("%s: %s: %v", name, r.Shape, err)
		case refused != (asked.answer.Decision == attackpaths.Refused):
			t.Errorf("%s (%s): %s is %v, and the API server says %v", name, demandOf(name), r.Shape, asked.answer, err)
		case err == nil:
			compareKnown(t, r, nil, object.Object, created.Object)
		}
	}
	t.Logf("%d passed, %d refused, %d undecided", counts[attackpaths.Passed], counts[attackpaths.Refused], counts[attackpaths.Undecided])
	if counts[attackpaths.Passed] < 300 || counts[attackpaths.Refused] < 300 || counts[attackpaths.Undecided] == 0 {
		t.Error("too few objects were compared")
	}
}

func demandOf(name string) string {
	var i int
	if _, err := fmt.Sscanf(name, "case-%d", &i); err == nil && i < len(demands) {
		return demands[i]
	}
	return name
}

// compareKnown compares the fields of an object that are said to be known with those that the API
// server stores.
func compareKnown(t *testing.T, r *attackpaths.Request, at attackpaths.Field, ours, theirs map[string]any) {
	t.Helper()
	names := map[string]bool{}
	for name := range ours {
		names[name] = true
	}
	for name := range theirs {
		names[name] = true
	}
	for name := range names {
		field := append(slices.Clone(at), name)
		a, isMap := ours[name].(map[string]any)
		b, theirsIsMap := theirs[name].(map[string]any)
		switch {
		case isMap && theirsIsMap:
			compareKnown(t, r, field, a, b)
		case !r.Knows(field) && !slices.ContainsFunc(r.Filled, field.Within):
		case r.Knows(field) && !reflect.DeepEqual(ours[name], theirs[name]):
			t.Errorf("%s: %s is %v, and the API server has %v", r.Shape, strings.Join(field, "."), ours[name], theirs[name])
		case (ours[name] == nil) != (theirs[name] == nil):
			t.Errorf("%s: whether there is %s differs", r.Shape, strings.Join(field, "."))
		}
	}
}

func asUnstructured(t *testing.T, r *attackpaths.Request) *unstructured.Unstructured {
	t.Helper()
	object, _ := r.Objects()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: fields}
}

// complete adds the fields that the API server demands of an object and attack paths do not fix.
func complete(object *unstructured.Unstructured) *unstructured.Unstructured {
	object = object.DeepCopy()
	if object.GetKind() == "Secret" {
		object.SetAnnotations(map[string]string{"kubernetes.io/service-account.name": "default"})
	}
	return object
}
