package evaluate_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/internal/server/webhook"
	"github.com/node-authorizer/node-authorizer/kubeversion"
)

// The same request of a node, and of an account with a token of the node.
const (
	benchRequest = `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{},"spec":{"resourceAttributes":` +
		`{"namespace":"shop","verb":"get","version":"v1","resource":"secrets","name":"db"},%s},"status":{"allowed":false}}`
	benchNode    = `"user":"system:node:a","groups":["system:nodes","system:authenticated"]`
	benchAccount = `"user":"system:serviceaccount:kube-system:agent",` +
		`"groups":["system:serviceaccounts","system:serviceaccounts:kube-system","system:authenticated"],` +
		`"extra":{"authentication.kubernetes.io/credential-id":["JTI=8b7c2a4e-1f35-4d9b-8a77-%012d"],` +
		`"authentication.kubernetes.io/node-name":["a"],` +
		`"authentication.kubernetes.io/node-uid":["b9b0c6d0-77a5-4c8a-9a0f-3f0c5a1b2c3d"],` +
		`"authentication.kubernetes.io/pod-name":["agent-x7k2p"],` +
		`"authentication.kubernetes.io/pod-uid":["0d9e8f7a-6b5c-4d3e-8f2a-1b0c9d8e7f6a"]},"uid":"1c7b8c3a-2f0e-4c55-9d6f-1a2b3c4d5e6f"`
)

// BenchmarkScopedAccount compares a node without NodeScopes with an account that has one, in the handler without a
// network. Both are measured alternately in short rounds, of which the median counts, so that "ratio", the
// account's share of the node's throughput, is valid on a busy machine. Of 200 tokens each is used in turn.
func BenchmarkScopedAccount(b *testing.B) {
	scoped := newContained(b, v1alpha1.Enforce, "")
	today, err := evaluate.New(b.Context(), scoped.State, evaluate.Options{
		Features: kubeversion.For(kubeversion.Latest), Ages: scoped,
	})
	if err != nil {
		b.Fatal(err)
	}
	const round = 200
	var node, account [][]byte
	for i := range round {
		node = append(node, fmt.Appendf(nil, benchRequest, benchNode))
		account = append(account, fmt.Appendf(nil, benchRequest, fmt.Sprintf(benchAccount, i)))
	}
	handler := func(e *evaluate.Evaluator) http.Handler {
		return webhook.Authorize(decision.Authorize(e.AuthorizeNode), webhook.Options{})
	}
	sides := []struct {
		handler http.Handler
		bodies  [][]byte
		took    []time.Duration
	}{{handler: handler(today), bodies: node}, {handler: handler(scoped.Evaluator), bodies: account}}
	for b.Loop() {
		for i := range sides {
			s := &sides[i]
			begin := time.Now()
			for _, body := range s.bodies {
				answer(b, s.handler, body)
			}
			s.took = append(s.took, time.Since(begin)/round)
		}
	}
	medians := make([]float64, len(sides))
	for i := range sides {
		slices.Sort(sides[i].took)
		medians[i] = float64(sides[i].took[len(sides[i].took)/2].Nanoseconds())
	}
	b.ReportMetric(0, "ns/op") // it mixes both
	b.ReportMetric(medians[0], "node-ns/request")
	b.ReportMetric(medians[1], "account-ns/request")
	b.ReportMetric(medians[0]/medians[1], "ratio")
}

func answer(b *testing.B, handler http.Handler, body []byte) {
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.Header.Set("Content-Type", "application/json")
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	w := httptest.NewRecorder()
	if handler.ServeHTTP(w, r); w.Code != http.StatusOK {
		b.Fatalf("status %d: %s", w.Code, w.Body)
	}
}
