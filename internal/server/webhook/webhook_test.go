package webhook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/internal/server/webhook"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// document reads a file of testdata.
func document(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// post sends a document as an API server does and returns the answer.
func post(t testing.TB, handler http.Handler, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

// answered decodes an answer with status 200.
func answered[D any](t testing.TB, w *httptest.ResponseRecorder) D {
	t.Helper()
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("status %d, headers %v: %s", w.Code, w.Header(), w.Body)
	}
	var d D
	if err := json.Unmarshal(w.Body.Bytes(), &d); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	return d
}

// readsAll requests that every object is decoded.
func readsAll(*noderestriction.Request) (object, oldObject bool) { return true, true }

func TestAuthorizeAnswersInTheVersionAsked(t *testing.T) {
	refused := decision.Opinion{
		Decision: verdict.NoOpinion, Code: nodeauthz.NoPathToObject,
		Reason: "NoPathToObject: no relationship found between this node and this object",
	}
	for _, tc := range []struct {
		rule    string
		file    string
		opinion decision.Opinion
		err     error
		want    authorizationv1.SubjectAccessReviewStatus
		version string
	}{
		{
			"an allow", "access.json",
			decision.Opinion{Decision: verdict.Allow},
			nil,
			authorizationv1.SubjectAccessReviewStatus{Allowed: true},
			"v1",
		},
		{
			"no opinion is neither allowed nor denied", "access.json", refused, nil,
			authorizationv1.SubjectAccessReviewStatus{Reason: refused.Reason},
			"v1",
		},
		{
			"a denial is denied", "access.json",
			decision.Opinion{Decision: verdict.Deny, Reason: "no"},
			nil,
			authorizationv1.SubjectAccessReviewStatus{Denied: true, Reason: "no"},
			"v1",
		},
		{
			"an error allows nothing, even with an opinion", "access.json",
			decision.Opinion{Decision: verdict.Allow},
			nodeauthz.ErrNotSynced,
			authorizationv1.SubjectAccessReviewStatus{EvaluationError: nodeauthz.ErrNotSynced.Error()},
			"v1",
		},
		{
			"v1beta1", "access-v1beta1.json", refused, nil,
			authorizationv1.SubjectAccessReviewStatus{Reason: refused.Reason},
			"v1beta1",
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			var asked access.Request
			handler := webhook.Authorize(func(_ context.Context, req *access.Request) (decision.Opinion, error) {
				asked = *req
				return tc.opinion, tc.err
			}, webhook.Options{Rejected: func(reason string) { t.Errorf("rejected: %s", reason) }})
			got := answered[authorizationv1.SubjectAccessReview](t, post(t, handler, document(t, tc.file)))
			if got.Status != tc.want || got.Kind != "SubjectAccessReview" || got.APIVersion != "authorization.k8s.io/"+tc.version {
				t.Errorf("answer is %+v, want status %+v", got, tc.want)
			}
			if asked.User != "system:node:worker-1" || len(asked.Groups) != 2 || asked.Verb != "get" ||
				asked.Resource != "secrets" || asked.Namespace != "shop" || asked.Name != "db" || !asked.ResourceRequest {
				t.Errorf("asked %+v", asked)
			}
		})
	}
}

func TestAdmitAnswersWithStatusAndAnnotations(t *testing.T) {
	for _, tc := range []struct {
		rule   string
		answer noderestriction.Answer
		want   admissionv1.AdmissionResponse
	}{
		{
			"an allowed write names its rule",
			noderestriction.Answer{
				Decision: verdict.Allow, Code: noderestriction.RestrictionsMet, Node: "worker-1", Rule: "update nodes/status", Status: 200,
			},
			admissionv1.AdmissionResponse{
				Allowed: true, Result: &metav1.Status{Code: 200},
				AuditAnnotations: map[string]string{
					"code": "RestrictionsMet", "node": "worker-1", "rule": "update nodes/status",
				},
			},
		},
		{
			"a refusal has its reason",
			noderestriction.Answer{
				Decision: verdict.Deny, Code: noderestriction.TaintsChanged, Node: "worker-1",
				Rule:   "update nodes/status: taints do not change",
				Status: 403, StatusReason: metav1.StatusReasonForbidden,
				Reason: verdict.Reason{Code: noderestriction.TaintsChanged, Message: "node worker-1 may not change its taints"},
			},
			admissionv1.AdmissionResponse{
				Result: &metav1.Status{
					Code: 403, Reason: metav1.StatusReasonForbidden, Message: "node worker-1 may not change its taints",
				},
				AuditAnnotations: map[string]string{
					"code": "TaintsChanged", "node": "worker-1", "rule": "update nodes/status: taints do not change",
				},
			},
		},
		{
			"an undecided write gets status 500, so that clients try again",
			noderestriction.Answer{Decision: verdict.Deny, Code: "NotSynced", Node: "worker-1", Status: 500},
			admissionv1.AdmissionResponse{
				Result: &metav1.Status{Code: 500}, AuditAnnotations: map[string]string{"code": "NotSynced", "node": "worker-1"},
			},
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			handler := webhook.Admit(func(_ context.Context, req *noderestriction.Request) noderestriction.Answer {
				if req.Resource != "nodes" || req.Subresource != "status" || req.Object == nil || req.OldObject == nil {
					t.Errorf("asked %+v", req)
				}
				return tc.answer
			}, readsAll, webhook.Options{})
			got := answered[admissionv1.AdmissionReview](t, post(t, handler, document(t, "node-status.json")))
			tc.want.UID = "705ab4f5-6393-11e8-b7cc-42010a800002"
			if got.Kind != "AdmissionReview" || got.APIVersion != "admission.k8s.io/v1" || !reflect.DeepEqual(got.Response, &tc.want) {
				t.Errorf("answer is %+v\nwant %+v", got.Response, tc.want)
			}
		})
	}
}

// The context of a request reaches the evaluator, so that its work ends when the client is
// gone.
func TestTheRequestContextReachesTheEvaluator(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	handler := webhook.Authorize(func(ctx context.Context, _ *access.Request) (decision.Opinion, error) {
		if !errors.Is(context.Cause(ctx), gone) {
			t.Errorf("context has not ended: %v", ctx)
		}
		return decision.Opinion{}, nil
	}, webhook.Options{})
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(document(t, "access.json"))).WithContext(ctx)
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	answered[authorizationv1.SubjectAccessReview](t, w)
}

// Requests of all kinds share the pooled buffers. Each gets the answer to its own question.
func TestConcurrentRequests(t *testing.T) {
	evaluate := decides(nodeauthz.New(shop(), kubeversion.For(kubeversion.Latest)))
	handler := webhook.Authorize(evaluate, webhook.Options{})
	template := document(t, "access.json")
	var running sync.WaitGroup
	for i := range 8 {
		running.Go(func() {
			for j := range 200 {
				name := fmt.Sprintf("secret-%d", (i*200+j)%1000)
				node := fmt.Sprintf("worker-%d", j%100)
				body := bytes.ReplaceAll([]byte(template), []byte(`"name": "db"`), []byte(`"name": "`+name+`"`))
				body = bytes.ReplaceAll(body, []byte("system:node:worker-1"), []byte("system:node:"+node))
				got := post(t, handler, string(body)).Body.String()
				want, err := evaluate(t.Context(), &access.Request{
					User: "system:node:" + node, Groups: []string{"system:nodes"}, Verb: "get", Resource: "secrets",
					Namespace: "shop", Name: name, ResourceRequest: true,
				})
				if err != nil || !bytes.Contains([]byte(got), []byte(fmt.Sprintf(`"allowed":%v`, want.Decision == verdict.Allow))) {
					t.Errorf("%s for %s: %s, want %v", name, node, got, want.Decision)
				}
			}
		})
	}
	running.Wait()
}
