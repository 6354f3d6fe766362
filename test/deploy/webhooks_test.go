package deploy

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/client-go/kubernetes/scheme"
)

// restricted are the writes that NodeRestriction checks: resource.group, subresource (*
// for any), operations.
var restricted = []struct {
	group, resource, subresource string
	operations                   []admission.Operation
}{
	{"", "pods", "*", writes},
	{"", "nodes", "*", writes},
	{"", "persistentvolumeclaims", "*", writes},
	{"", "serviceaccounts", "token", []admission.Operation{admission.Create}},
	{"certificates.k8s.io", "podcertificaterequests", "*", writes},
	{"coordination.k8s.io", "leases", "", writes},
	{"storage.k8s.io", "csinodes", "*", writes},
	{"resource.k8s.io", "resourceslices", "", []admission.Operation{admission.Create, admission.Delete}},
	{"certificates.k8s.io", "certificatesigningrequests", "", []admission.Operation{admission.Create}},
}

var writes = []admission.Operation{admission.Create, admission.Update, admission.Delete}

// request is a write without its object.
type request struct {
	resource    schema.GroupVersionResource
	subresource string
	operation   admission.Operation
}

func (r request) restricted() bool {
	for _, row := range restricted {
		if row.group == r.resource.Group && row.resource == r.resource.Resource &&
			(row.subresource == "*" || row.subresource == r.subresource) && slices.Contains(row.operations, r.operation) {
			return true
		}
	}
	return false
}

func (r request) attributes(object runtime.Object, by user.Info) admission.Attributes {
	return admission.NewAttributesRecord(object, nil, schema.GroupVersionKind{}, "shop", "name", r.resource, r.subresource, r.operation,
		nil, false, by)
}

// everyRequest visits all writes of all resources of Kubernetes, in every version, with
// every subresource in NodeRestriction's rules, and some others.
func everyRequest(visit func(request)) {
	for gvk := range scheme.Scheme.AllKnownTypes() {
		if gvk.Version == runtime.APIVersionInternal || strings.HasSuffix(gvk.Kind, "List") {
			continue
		}
		resource, _ := meta.UnsafeGuessKindToResource(gvk)
		for _, subresource := range []string{
			"", "status", "token", "eviction", "binding", "ephemeralcontainers", "resize", "proxy", "scale", "approval",
			"finalize", "exec",
		} {
			for _, operation := range append(slices.Clone(writes), admission.Connect) {
				visit(request{resource, subresource, operation})
			}
		}
	}
}

func sent(to []admissionregistrationv1.RuleWithOperations, attributes admission.Attributes) bool {
	return slices.ContainsFunc(to, func(rule admissionregistrationv1.RuleWithOperations) bool {
		m := rules.Matcher{Rule: rule, Attr: attributes}
		return m.Matches()
	})
}

func TestNodeRestrictionGetsExactlyTheRestrictedWrites(t *testing.T) {
	for _, form := range forms {
		restriction, _ := webhooks(t, form)
		asked := 0
		everyRequest(func(r request) {
			got := sent(restriction.Rules, r.attributes(nil, nil))
			if got != r.restricted() {
				t.Errorf("%s: %s of %s/%s sent: %v", form, r.operation, r.resource, r.subresource, got)
			}
			if got {
				asked++
			}
		})
		if asked == 0 {
			t.Error("nothing is sent")
		}
		for _, row := range restricted { // also versions that are not served today
			r := request{
				schema.GroupVersionResource{Group: row.group, Version: "v9", Resource: row.resource},
				strings.TrimSuffix(row.subresource, "*"), row.operations[0],
			}
			if !sent(restriction.Rules, r.attributes(nil, nil)) {
				t.Errorf("%s: %s is not sent in a version that is new", form, row.resource)
			}
		}
	}
}

// As in-tree, the webhook is called for created and updated pods.
func TestTolerationsAreAddedToPodsOnly(t *testing.T) {
	for _, form := range forms {
		_, tolerations := webhooks(t, form)
		everyRequest(func(r request) {
			want := r.resource.GroupResource() == schema.GroupResource{Resource: "pods"} && r.subresource == "" &&
				(r.operation == admission.Create || r.operation == admission.Update)
			if got := sent(tolerations.Rules, r.attributes(nil, nil)); got != want {
				t.Errorf("%s: %s of %s/%s sent: %v", form, r.operation, r.resource, r.subresource, got)
			}
		})
	}
}

func TestWebhooksFailClosedAndFast(t *testing.T) {
	for _, form := range forms {
		restriction, tolerations := webhooks(t, form)
		for _, configured := range []*admissionregistrationv1.MutatingWebhook{restriction, tolerations} {
			w := webhook.NewMutatingWebhookAccessor("", "", configured)
			if *configured.ReinvocationPolicy != admissionregistrationv1.IfNeededReinvocationPolicy {
				t.Errorf("%s: %s: changes by later webhooks are not checked", form, w.GetName())
			}
			if *w.GetFailurePolicy() != admissionregistrationv1.Fail {
				t.Errorf("%s: %s: failurePolicy is %s", form, w.GetName(), *w.GetFailurePolicy())
			}
			if *w.GetMatchPolicy() != admissionregistrationv1.Equivalent {
				t.Errorf("%s: %s: matchPolicy is %s", form, w.GetName(), *w.GetMatchPolicy())
			}
			if *w.GetSideEffects() != admissionregistrationv1.SideEffectClassNone {
				t.Errorf("%s: %s: sideEffects are %s", form, w.GetName(), *w.GetSideEffects())
			}
			if s := *w.GetTimeoutSeconds(); s > 5 {
				t.Errorf("%s: %s: timeoutSeconds is %d, which a node's lease cannot wait for", form, w.GetName(), s)
			}
			if w.GetNamespaceSelector() != nil || w.GetObjectSelector() != nil {
				t.Errorf("%s: %s: a selector excludes writes", form, w.GetName())
			}
			if v := w.GetAdmissionReviewVersions(); !slices.Equal(v, []string{"v1"}) {
				t.Errorf("%s: %s: admissionReviewVersions are %v", form, w.GetName(), v)
			}
		}
	}
}

// matches evaluates the match conditions like the API server.
func matches(t *testing.T, w webhook.WebhookAccessor, attributes admission.Attributes, object runtime.Object) bool {
	t.Helper()
	compiler := cel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	versioned := &admission.VersionedAttributes{Attributes: attributes, VersionedKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}}
	if object != nil {
		versioned.VersionedObject.Set(object)
	}
	result := w.GetCompiledMatcher(compiler).Match(t.Context(), versioned, nil, nil)
	if result.Error != nil {
		t.Fatal(result.Error)
	}
	return result.Matches
}

func TestOnlyNodesAreSentToNodeRestriction(t *testing.T) {
	pods := request{schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "", admission.Create}
	for _, form := range forms {
		restriction, _ := webhooks(t, form)
		w := webhook.NewMutatingWebhookAccessor("", "", restriction)
		for _, c := range []struct {
			name   string
			groups []string
			want   bool
		}{
			{"system:node:worker-1", []string{"system:nodes", "system:authenticated"}, true},
			{"system:node:worker-1", []string{"system:authenticated", "system:nodes"}, true},
			{"system:node:", []string{"system:nodes"}, true},
			{"somebody", []string{"system:nodes", "system:authenticated"}, false},
			{"system:nodes", []string{"system:nodes"}, false},
			{"", []string{"system:nodes"}, false},
			{"system:node:worker-1", []string{"system:nodes:extra"}, false},
			{"system:node:worker-1", []string{"system:masters", "system:authenticated"}, false},
			{"system:node:worker-1", nil, false}, // no error either, which would refuse the write
		} {
			by := &user.DefaultInfo{Name: c.name, Groups: c.groups}
			if got := matches(t, w, pods.attributes(&corev1.Pod{}, by), &corev1.Pod{}); got != c.want {
				t.Errorf("%s: user %q of the groups %v is sent: %v", form, c.name, c.groups, got)
			}
		}
	}
}

// Pods without extended resources, including the server's own, must be created while the
// server is down.
func TestOnlyPodsWithExtendedResourcesAreSentForTolerations(t *testing.T) {
	requests := func(name corev1.ResourceName) corev1.Container {
		return corev1.Container{
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse("1"), name: resource.MustParse("1")},
			},
		}
	}
	pods := request{schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "", admission.Create}
	for name, c := range map[string]struct {
		spec corev1.PodSpec
		want bool
	}{
		"no containers": {corev1.PodSpec{Containers: []corev1.Container{}}, false},
		"no requests":   {corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}}, false},
		"memory": {
			corev1.PodSpec{
				Containers:     []corev1.Container{requests("memory")},
				InitContainers: []corev1.Container{requests("hugepages-2Mi")},
			},
			false,
		},
		"a device": {corev1.PodSpec{Containers: []corev1.Container{{}, requests("example.com/gpu")}}, true},
		"a device of an init": {
			corev1.PodSpec{Containers: []corev1.Container{{}}, InitContainers: []corev1.Container{requests("example.com/gpu")}},
			true,
		},
	} {
		for _, form := range forms {
			_, tolerations := webhooks(t, form)
			pod := &corev1.Pod{Spec: c.spec}
			if got := matches(t, webhook.NewMutatingWebhookAccessor("", "", tolerations), pods.attributes(pod, &user.DefaultInfo{}),
				pod); got != c.want {
				t.Errorf("%s: a pod with %s is sent: %v", form, name, got)
			}
		}
	}
}

// The two forms, and the chart, differ only in the address of the server.
func TestFormsAgree(t *testing.T) {
	same := func(a, b any) bool { return reflect.DeepEqual(a, b) }
	restriction, tolerations := webhooks(t, forms[0])
	for _, w := range []*admissionregistrationv1.WebhookClientConfig{&restriction.ClientConfig, &tolerations.ClientConfig} {
		if w.URL == nil || !strings.HasPrefix(*w.URL, "https://127.0.0.1:") {
			t.Errorf("%s reaches the server through %s", forms[0], fmt.Sprint(w))
		}
		w.URL = nil
	}
	r, o := webhooks(t, forms[1])
	for _, w := range []*admissionregistrationv1.WebhookClientConfig{&r.ClientConfig, &o.ClientConfig} {
		if w.Service == nil {
			t.Errorf("%s does not reach the server through its service", forms[1])
		}
		w.Service = nil
	}
	if !same(restriction, r) || !same(tolerations, o) {
		t.Error("the webhooks differ in more than the address")
	}
}
