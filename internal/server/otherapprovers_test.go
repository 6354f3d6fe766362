package server

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// The server with the approver checks for other approvers. A server that only gives tokens skips the
// check if it has no right to ask.
func TestAServerWithoutAnApproverNeedsNoRightToAsk(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var asked atomic.Int32
	cluster := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) > 1 {
			cancel()
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
			Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden, Message: "no",
		})
	}))
	defer cluster.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: cluster.URL})
	if err != nil {
		t.Fatal(err)
	}
	(&join{client: client, logger: logr.Discard()}).warnOfOtherApprovers(ctx)
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}
