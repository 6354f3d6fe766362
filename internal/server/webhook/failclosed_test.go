package webhook_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/internal/server/webhook"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// TestWhatMustNotBeDecidedLaterIsAnHTTPError: with an answer without opinion, the next authorizer would
// decide. A time for a retry would make kube-apiserver wait.
func TestWhatMustNotBeDecidedLaterIsAnHTTPError(t *testing.T) {
	const review = `{"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
		"spec": {"user": "system:serviceaccount:kube-system:agent", "nonResourceAttributes": {"verb": "get", "path": "/"}}}`
	for closed, want := range map[bool]int{false: http.StatusOK, true: http.StatusServiceUnavailable} {
		rejected := 0
		got := post(t, webhook.Authorize(func(context.Context, *access.Request) (decision.Opinion, error) {
			return decision.Opinion{Decision: verdict.NoOpinion, FailClosed: closed}, errors.New("secret detail")
		}, webhook.Options{Rejected: func(string) { rejected++ }}), review)
		if got.Code != want || got.Header().Get("Retry-After") != "" || rejected > 0 {
			t.Errorf("fail closed %v: got %d %v %s", closed, got.Code, got.Header(), got.Body)
		}
		if closed && strings.Contains(got.Body.String(), "secret detail") {
			t.Errorf("the answer is %s", got.Body)
		}
		if !closed && answered[authorizationv1.SubjectAccessReview](t, got).Status.EvaluationError != "secret detail" {
			t.Errorf("the answer is %s", got.Body)
		}
	}
}
