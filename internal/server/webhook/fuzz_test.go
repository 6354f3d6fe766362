package webhook_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	authorizationv1beta1 "k8s.io/api/authorization/v1beta1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/internal/server/webhook"
	"github.com/node-authorizer/node-authorizer/internal/testing/oddjson"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// seeds adds documents, and each review with odd values at each of its places.
func seeds(f *testing.F, reviews map[string]any) {
	for name, review := range reviews {
		for odd := range oddjson.Seeds(document(f, name), oddjson.Places(review)) {
			f.Add(odd)
		}
	}
	for _, name := range []string{"access.json", "access-v1beta1.json", "node-status.json", "pod-create.json"} {
		f.Add([]byte(document(f, name)))
	}
	f.Add([]byte("null"))
	f.Add([]byte(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"\ud800"}}`))
}

// checkAnswer checks that a body gets an answer, or a status that says what is wrong with it.
func checkAnswer(t *testing.T, handler http.Handler, body []byte, answered func([]byte)) {
	w := post(t, handler, string(body))
	switch w.Code {
	case http.StatusOK:
		answered(w.Body.Bytes())
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		if status := rejected(t, w); status.Message == "" {
			t.Errorf("no message: %s", w.Body)
		}
	default:
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
}

// FuzzAuthorize: no body is allowed unless the evaluator returns Allow.
func FuzzAuthorize(f *testing.F) {
	seeds(f, map[string]any{
		"access.json": authorizationv1.SubjectAccessReview{}, "access-v1beta1.json": authorizationv1beta1.SubjectAccessReview{},
	})
	handler := webhook.Authorize(func(_ context.Context, req *access.Request) (decision.Opinion, error) {
		return decision.Opinion{Decision: verdict.NoOpinion, Reason: req.Name + req.User}, nil
	}, webhook.Options{})
	f.Fuzz(func(t *testing.T, body []byte) {
		checkAnswer(t, handler, body, func(text []byte) {
			var answer authorizationv1.SubjectAccessReview
			if err := json.Unmarshal(text, &answer); err != nil || answer.Kind != "SubjectAccessReview" || answer.Status.Allowed {
				t.Errorf("%v: %s", err, text)
			}
		})
	})
}

// FuzzAdmit sends decoded requests to NodeRestriction itself.
func FuzzAdmit(f *testing.F) {
	seeds(f, map[string]any{"node-status.json": admissionv1.AdmissionReview{}})
	restriction := noderestriction.New(nothing{}, nil, kubeversion.For(kubeversion.Latest))
	handler := webhook.Admit(restriction.Decide, restriction.Reads, webhook.Options{})
	f.Fuzz(func(t *testing.T, body []byte) {
		checkAnswer(t, handler, body, func(text []byte) {
			var answer admissionv1.AdmissionReview
			if err := json.Unmarshal(text, &answer); err != nil || answer.Response == nil || answer.Response.Result == nil ||
				answer.Response.Allowed != (answer.Response.Result.Code == http.StatusOK) {
				t.Errorf("%v: %s", err, text)
			}
		})
	})
}

// FuzzMutate: every write is allowed, and a patch changes only tolerations.
func FuzzMutate(f *testing.F) {
	seeds(f, map[string]any{"pod-create.json": admissionv1.AdmissionReview{}})
	pod := oddjson.Below(oddjson.Places(corev1.Pod{}), "request", "object")
	for odd := range oddjson.Seeds(document(f, "pod-create.json"), pod) {
		f.Add(odd)
	}
	handler := webhook.Mutate(webhook.Options{})
	f.Fuzz(func(t *testing.T, body []byte) {
		checkAnswer(t, handler, body, func(text []byte) {
			var answer admissionv1.AdmissionReview
			if err := json.Unmarshal(text, &answer); err != nil || answer.Response == nil || !answer.Response.Allowed {
				t.Fatalf("%v: %s", err, text)
			}
			if answer.Response.Patch == nil {
				return
			}
			var steps []struct{ Op, Path string }
			if err := json.Unmarshal(answer.Response.Patch, &steps); err != nil || len(steps) == 0 {
				t.Fatalf("%v: %s", err, answer.Response.Patch)
			}
			for _, s := range steps {
				if len(s.Path) < len("/spec/tolerations") || s.Path[:len("/spec/tolerations")] != "/spec/tolerations" {
					t.Errorf("changes %s", s.Path)
				}
			}
		})
	})
}

// nothing is the state of an empty cluster.
type nothing struct{}

func (nothing) Pod(string, string) (*corev1.Pod, bool)                       { return nil, false }
func (nothing) Node(string) (*corev1.Node, bool)                             { return nil, false }
func (nothing) ServiceAccount(string, string) (*corev1.ServiceAccount, bool) { return nil, false }
func (nothing) PersistentVolume(string) (*corev1.PersistentVolume, bool)     { return nil, false }
func (nothing) CSIDriver(string) (*storagev1.CSIDriver, bool)                { return nil, false }
func (nothing) PersistentVolumeClaim(string, string) (*corev1.PersistentVolumeClaim, bool) {
	return nil, false
}
