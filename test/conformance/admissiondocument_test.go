package conformance

import (
	"context"
	"encoding/json"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/node-authorizer/node-authorizer/internal/review"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/test/conformance/generate"
	"github.com/node-authorizer/node-authorizer/test/conformance/intree"
)

// asDocument sends the write to us like an API server to a webhook.
func (tr *writeTrial) asDocument(t *testing.T, w *generate.Write, ours noderestriction.Answer, theirs intree.Admitted) int {
	t.Helper()
	in, err := review.DecodeAdmission(documentOf(t, w), tr.ours.Reads)
	if err != nil {
		// Objects that the rules cannot read are refused in-tree too.
		if theirs.Status != 200 {
			return 0
		}
		t.Errorf("seed %d: %s is allowed, but its document is refused: %v", tr.seed, w, err)
		return 1
	}
	var out admissionv1.AdmissionReview
	if err := json.Unmarshal(in.Respond(tr.ours.Decide(context.Background(), in.Request())), &out); err != nil {
		t.Fatal(err)
	}
	r := out.Response
	if r != nil && r.UID == types.UID("uid-of-"+w.Name) && r.Allowed == (ours.Status == 200) && r.Result != nil &&
		int(r.Result.Code) == ours.Status && r.Result.Reason == ours.StatusReason {
		return 0
	}
	t.Errorf("seed %d: %s\n  as a document: %s\n  as a function: %d %s %s", tr.seed, w, text(r), ours.Status, ours.StatusReason,
		ours.Reason.Message)
	return 1
}

func documentOf(t *testing.T, w *generate.Write) []byte {
	t.Helper()
	kind := metav1.GroupVersionKind(intree.KindOf(w))
	resource := metav1.GroupVersionResource{Group: w.Group, Version: w.Version, Resource: w.Resource}
	request := &admissionv1.AdmissionRequest{
		UID: types.UID("uid-of-" + w.Name), Kind: kind, RequestKind: &kind, Resource: resource, RequestResource: &resource,
		SubResource: w.Subresource, RequestSubResource: w.Subresource, Name: w.Name, Namespace: w.Namespace,
		Operation: admissionv1.Operation(w.Operation), Options: runtime.RawExtension{
			Raw: []byte(`{"apiVersion":"meta.k8s.io/v1","kind":"CreateOptions"}`),
		},
		UserInfo: authenticationv1.UserInfo{
			Username: w.User, UID: w.UID, Groups: w.Groups, Extra: make(map[string]authenticationv1.ExtraValue),
		},
		Object: rawObject(t, intree.WithDefaults(w, w.Object)), OldObject: rawObject(t, intree.WithDefaults(w, w.OldObject)),
	}
	for key, values := range w.Extra {
		request.UserInfo.Extra[key] = values
	}
	document, err := json.Marshal(&admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request,
	})
	if err != nil {
		t.Fatal(err)
	}
	return document
}

// rawObject renders an object with its kind, like API servers. It sets the kind of the
// given object, if it has none.
func rawObject(t *testing.T, o runtime.Object) runtime.RawExtension {
	t.Helper()
	if o == nil {
		return runtime.RawExtension{}
	}
	if kind := o.GetObjectKind(); kind.GroupVersionKind().Empty() {
		kind.SetGroupVersionKind(intree.KindOf(&generate.Write{Object: o}))
	}
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: raw}
}
