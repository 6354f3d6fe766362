package noderestriction_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/noderestriction"
)

// attributesOf says the same as a request, for kinds of the core group.
func attributesOf(req *noderestriction.Request, kind string) admission.Attributes {
	return admission.NewAttributesRecord(
		req.Object, req.OldObject, schema.GroupVersionKind{Version: "v1", Kind: kind}, req.Namespace, req.Name,
		schema.GroupVersionResource{Group: req.Group, Version: req.Version, Resource: req.Resource}, req.Subresource,
		admission.Operation(req.Operation), nil, false,
		&user.DefaultInfo{Name: req.User, UID: req.UID, Groups: req.Groups, Extra: req.Extra},
	)
}

func TestHandles(t *testing.T) {
	r := noderestriction.New(shop(), nil, kubeversion.For(kubeversion.Latest))
	for operation, want := range map[admission.Operation]bool{
		admission.Create: true, admission.Update: true, admission.Delete: true, admission.Connect: false,
	} {
		if got := noderestriction.Plugin(r).Handles(operation); got != want {
			t.Errorf("plugin, %s: got %v, want %v", operation, got, want)
		}
		if got := r.Handles(operation); got != want {
			t.Errorf("%s: got %v, want %v", operation, got, want)
		}
	}
}

func TestValidate(t *testing.T) {
	r := noderestriction.New(shop(), nil, kubeversion.For(kubeversion.Latest))
	for _, tc := range []struct {
		rule    string
		request *noderestriction.Request
		kind    string
		status  int32 // 0: allowed; 500: an error without status
		text    string
	}{
		{"what is allowed is no error", podOperation(noderestriction.Delete, "", "web"), "Pod", 0, ""},
		{
			"what is forbidden names the object and the code", podOperation(noderestriction.Delete, "", "db"), "Pod", 403,
			`pods "db" is forbidden: PodNotOnNode: `,
		},
		{"what is not found", podOperation(noderestriction.Delete, "", "gone"), "Pod", 404, "PodNotFound: "},
		{
			"what should be tried again", podCertificate("shop", certificateVersions()["v1"](certificateSpec(withPod("gone")))),
			"PodCertificateRequest", 500, "PodNotFound: ",
		},
		{"objects are read", updateNode("", func(n *corev1.Node) { n.Spec.Taints = nil }), "Node", 403, "TaintsChanged: "},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			checkError(t, r.Validate(t.Context(), attributesOf(tc.request, tc.kind), nil), tc.status, tc.text)
			checkError(t, noderestriction.Plugin(r).Admit(t.Context(), attributesOf(tc.request, tc.kind), nil), tc.status, tc.text)
		})
	}
}

func checkError(t *testing.T, err error, want int32, text string) {
	t.Helper()
	var status apierrors.APIStatus
	switch got := errors.As(err, &status); {
	case (err == nil) != (want == 0):
		t.Fatalf("got the error %v, want status %d", err, want)
	case got && status.Status().Code != want, !got && want != 0 && want != 500:
		t.Errorf("got the error %v, want status %d", err, want)
	}
	if err != nil && !strings.Contains(err.Error(), text) {
		t.Errorf("got the error %v, want %q in it", err, text)
	}
}

// internalPod is a pod in an API server's internal version.
type internalPod struct {
	corev1.Pod
}

func (p *internalPod) DeepCopyObject() runtime.Object { return &internalPod{*p.DeepCopy()} }

// converter converts internal pods to pods, in version v1 only.
type converter struct{ runtime.ObjectConvertor }

func (converter) ConvertToVersion(in runtime.Object, out runtime.GroupVersioner) (runtime.Object, error) {
	if internal, ok := in.(*internalPod); ok && out == schema.GroupVersion(corev1.SchemeGroupVersion) {
		return &internal.Pod, nil
	}
	return nil, errors.New("no such version")
}

type interfaces struct{ admission.ObjectInterfaces }

func (interfaces) GetObjectConvertor() runtime.ObjectConvertor { return converter{} }

func TestValidateConvertsInternalObjects(t *testing.T) {
	r := noderestriction.New(shop(), nil, kubeversion.For(kubeversion.Latest))
	req := updateStatus(pod("shop", "web", "worker-1"), func(*corev1.Pod) {})
	relabel := updateStatus(pod("shop", "web", "worker-1"), func(p *corev1.Pod) { p.Labels = nil })
	for _, r := range []*noderestriction.Request{req, relabel} {
		r.Object, r.OldObject = &internalPod{*r.Object.(*corev1.Pod)}, &internalPod{*r.OldObject.(*corev1.Pod)}
	}
	halfway := *req
	halfway.OldObject = pod("shop", "web", "worker-1")
	for _, tc := range []struct {
		rule    string
		request *noderestriction.Request
		kind    string
		objects admission.ObjectInterfaces
		status  int32
		text    string
	}{
		{"in the version of the kind", req, "Pod", interfaces{}, 0, ""},
		{"and looks into them", relabel, "Pod", interfaces{}, 403, "PodLabelsChanged: "},
		{"one of two", &halfway, "Pod", interfaces{}, 0, ""},
		{"refuses what it cannot convert", req, "Pod", nil, 403, "UnexpectedObject: "},
		{"refuses one of two", &halfway, "Pod", nil, 403, "UnexpectedObject: "},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			checkError(t, r.Validate(t.Context(), attributesOf(tc.request, tc.kind), tc.objects), tc.status, tc.text)
		})
	}
	if err := r.Validate(t.Context(), attributesOf(&noderestriction.Request{
		Operation: noderestriction.Create, Resource: "pods", Object: &internalPod{},
	}, "Pod"), nil); err != nil {
		t.Errorf("an object that no rule reads need not convert: %v", err)
	}
}

func TestValidateWithoutUser(t *testing.T) {
	r := noderestriction.New(shop(), nil, kubeversion.For(kubeversion.Latest))
	attributes := admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{}, "", "",
		schema.GroupVersionResource{Resource: "pods"}, "", admission.Create, nil, false, nil)
	if err := r.Validate(t.Context(), attributes, nil); err != nil {
		t.Errorf("a request without a user: %v", err)
	}
}

// recorder is an authorizer of k8s.io/apiserver that records requests.
type recorder struct {
	asked    authorizer.Attributes
	decision authorizer.Decision
}

func (r *recorder) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	r.asked = a
	return r.decision, "because", nil
}

func TestAskAuthorizer(t *testing.T) {
	for decision, want := range map[authorizer.Decision]bool{
		authorizer.DecisionAllow: true, authorizer.DecisionDeny: false, authorizer.DecisionNoOpinion: false,
	} {
		r := &recorder{decision: decision}
		allowed, reason, err := noderestriction.AskAuthorizer(r).Authorize(t.Context(), &access.Request{
			User: "system:node:worker-1", UID: "u", Groups: []string{"g"}, Extra: map[string][]string{"k": {"v"}},
			Verb: "verb", ResourceRequest: true, Group: "group", Version: "v1", Resource: "resource", Namespace: "shop", Name: "web",
		})
		if allowed != want || reason != "because" || err != nil {
			t.Errorf("%v: got %v, %q, %v", decision, allowed, reason, err)
		}
		a, u := r.asked, r.asked.GetUser()
		got := []string{
			u.GetName(), u.GetUID(), u.GetGroups()[0], u.GetExtra()["k"][0], a.GetVerb(), a.GetAPIGroup(), a.GetAPIVersion(),
			a.GetResource(), a.GetNamespace(), a.GetName(),
		}
		if text := strings.Join(got, " "); text != "system:node:worker-1 u g v verb group v1 resource shop web" || !a.IsResourceRequest() {
			t.Errorf("the authorizer was asked %q", text)
		}
	}
}

func TestSubmittedStatusReasons(t *testing.T) {
	r := noderestriction.New(shop(), nil, kubeversion.For(kubeversion.Latest))
	err := r.Validate(t.Context(), attributesOf(podOperation(noderestriction.Delete, "", "gone"), "Pod"), nil)
	if !apierrors.IsNotFound(err) || apierrors.ReasonForError(err) != metav1.StatusReasonNotFound {
		t.Errorf("a missing pod is the error %v", err)
	}
}
