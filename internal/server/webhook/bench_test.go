package webhook_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/internal/server/freshness"
	"github.com/node-authorizer/node-authorizer/internal/server/observe"
	"github.com/node-authorizer/node-authorizer/internal/server/webhook"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// shop returns a graph in which the pods of worker-1 and worker-2 use different secrets.
func shop() *graph.Graph {
	g := graph.New()
	for i := range 1000 {
		g.SetPod(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("pod-%d", i)},
			Spec: corev1.PodSpec{
				NodeName:         fmt.Sprintf("worker-%d", i%100),
				ImagePullSecrets: []corev1.LocalObjectReference{{Name: fmt.Sprintf("secret-%d", i)}},
			},
		})
	}
	g.SetPod(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "api"},
		Spec:       corev1.PodSpec{NodeName: "worker-1", ImagePullSecrets: []corev1.LocalObjectReference{{Name: "db"}}},
	})
	return g
}

// decides returns the evaluator of the Node authorizer alone.
func decides(node *nodeauthz.Authorizer) decision.Authorize {
	return func(_ context.Context, req *access.Request) (decision.Opinion, error) {
		answer := node.Decide(req)
		return decision.Opinion{Decision: answer.Decision, Code: answer.Code, Node: answer.Node, Reason: string(answer.Code)}, nil
	}
}

// constant gives the same answer to every request.
func constant(context.Context, *access.Request) (decision.Opinion, error) {
	return decision.Opinion{Decision: verdict.Allow, Code: nodeauthz.PathToObject, Reason: string(nodeauthz.PathToObject)}, nil
}

// BenchmarkAuthorize compares the handler as a server composes it with a handler that
// returns a constant after decoding. Both are measured alternately, so that "ratio", the
// remaining part of the constant's throughput, is valid on a busy machine.
func BenchmarkAuthorize(b *testing.B) {
	node := nodeauthz.New(shop(), kubeversion.For(kubeversion.Latest))
	allowed := document(b, "access.json")
	refused := strings.Replace(allowed, `"db"`, `"secret-2"`, 1)
	floor := webhook.Authorize(constant, webhook.Options{})
	for name, text := range map[string]string{"allowed": allowed, "refused": refused} {
		b.Run(name, func(b *testing.B) { compare(b, authorizeStack(node), floor, text) })
	}
}

// BenchmarkAdmit measures the most frequent write of nodes except leases.
func BenchmarkAdmit(b *testing.B) {
	restriction := noderestriction.New(nothing{}, nil, kubeversion.For(kubeversion.Latest))
	metrics := observe.NewMetrics()
	same := func(context.Context, *noderestriction.Request) noderestriction.Answer {
		return noderestriction.Answer{Decision: verdict.Allow, Code: noderestriction.RestrictionsMet, Node: "worker-1", Status: 200}
	}
	served := metrics.HTTP("admit", webhook.Admit(metrics.Admit(restriction.Decide), restriction.Reads, webhook.Options{}))
	floor := webhook.Admit(same, restriction.Reads, webhook.Options{})
	compare(b, served, floor, document(b, "node-status.json"))
}

// authorizeStack returns the handler as a server composes it, without waits.
func authorizeStack(node *nodeauthz.Authorizer) http.Handler {
	metrics := observe.NewMetrics()
	refusals := observe.NewRefusals(logr.Discard(), observe.RefusalOptions{})
	related := func(req *access.Request) bool { return node.Decide(req).Decision == verdict.Allow }
	waiter := freshness.New(unchanging{}, freshness.Options{Waited: metrics.Waited})
	evaluate := refusals.Authorize(metrics.Authorize(waiter.Authorize(0, decides(node), related)))
	return metrics.HTTP("authorize", webhook.Authorize(evaluate, webhook.Options{}))
}

// unchanging is a cluster that never changes.
type unchanging struct{}

func (unchanging) OnChange(func(string)) func() { return func() {} }
func (unchanging) KnowsNode(string) bool        { return true }

// compare measures both handlers alternately with the same document, without a network.
func compare(b *testing.B, served, floor http.Handler, text string) {
	const round = 50
	var took [2]time.Duration
	ask := asker(b, text)
	for b.Loop() {
		for i, handler := range []http.Handler{served, floor} {
			begin := time.Now()
			for range round {
				ask(handler)
			}
			took[i] += time.Since(begin)
		}
	}
	requests := float64(b.N * round)
	b.ReportMetric(0, "ns/op") // it mixes two handlers
	b.ReportMetric(float64(took[0].Nanoseconds())/requests, "ns/request")
	b.ReportMetric(float64(took[1].Nanoseconds())/requests, "floor-ns/request")
	b.ReportMetric(float64(took[1])/float64(took[0]), "ratio")
}

// asker returns a function that sends a document to a handler.
func asker(b *testing.B, text string) func(http.Handler) {
	body := []byte(text)
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.Header.Set("Content-Type", "application/json")
	w := &discard{header: http.Header{}}
	reader := bytes.NewReader(nil)
	return func(handler http.Handler) {
		reader.Reset(body)
		r.Body, r.ContentLength = io.NopCloser(reader), int64(len(body))
		handler.ServeHTTP(w, r)
		if w.status != http.StatusOK {
			b.Fatalf("status %d", w.status)
		}
	}
}

// discard is a response writer that drops the body.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(status int)      { d.status = status }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
