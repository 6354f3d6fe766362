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
	"github.com/node-authorizer/node-authorizer/internal/freshness"
	"github.com/node-authorizer/node-authorizer/internal/observe"
	"github.com/node-authorizer/node-authorizer/internal/webhook"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// shop is a graph in which pods of worker-1 and worker-2 use different secrets.
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

// decides is the evaluator of the Node authorizer alone.
func decides(node *nodeauthz.Authorizer) decision.Authorize {
	return func(_ context.Context, req *access.Request) (decision.Opinion, error) {
		answer := node.Decide(req)
		return decision.Opinion{Decision: answer.Decision, Code: answer.Code, Node: answer.Node, Reason: string(answer.Code)}, nil
	}
}

// constant answers the same to everything that can be decoded.
func constant(context.Context, *access.Request) (decision.Opinion, error) {
	return decision.Opinion{Decision: verdict.Allow, Code: nodeauthz.PathToObject, Reason: string(nodeauthz.PathToObject)}, nil
}

// BenchmarkAuthorize compares what is served, with everything that is wrapped
// around the evaluator, with a handler that answers a constant after decoding.
// Both take turns, so that "ratio", the part of the constant's throughput that
// is left, holds on a busy machine.
func BenchmarkAuthorize(b *testing.B) {
	node := nodeauthz.New(shop(), kubeversion.For(kubeversion.Latest))
	allowed := document(b, "access.json")
	refused := strings.Replace(allowed, `"db"`, `"secret-2"`, 1)
	floor := webhook.Authorize(constant, webhook.Options{})
	for name, text := range map[string]string{"allowed": allowed, "refused": refused} {
		b.Run(name, func(b *testing.B) { takeTurns(b, authorizeStack(node), floor, text) })
	}
}

// BenchmarkAdmit does so for the write that nodes send most but leases.
func BenchmarkAdmit(b *testing.B) {
	restriction := noderestriction.New(nothing{}, nil, kubeversion.For(kubeversion.Latest))
	metrics := observe.NewMetrics()
	same := func(context.Context, *noderestriction.Request) noderestriction.Answer {
		return noderestriction.Answer{Decision: verdict.Allow, Code: noderestriction.RestrictionsMet, Node: "worker-1", Status: 200}
	}
	served := metrics.HTTP("admit", webhook.Admit(metrics.Admit(restriction.Decide), restriction.Reads, webhook.Options{}))
	floor := webhook.Admit(same, restriction.Reads, webhook.Options{})
	takeTurns(b, served, floor, document(b, "node-status.json"))
}

// authorizeStack is what a server puts together, without waits.
func authorizeStack(node *nodeauthz.Authorizer) http.Handler {
	metrics := observe.NewMetrics()
	refusals := observe.NewRefusals(logr.Discard(), observe.RefusalOptions{})
	related := func(req *access.Request) bool { return node.Decide(req).Decision == verdict.Allow }
	waiter := freshness.New(newsless{}, freshness.Options{Waited: metrics.Waited})
	evaluate := refusals.Authorize(metrics.Authorize(waiter.Authorize(0, decides(node), related)))
	return metrics.HTTP("authorize", webhook.Authorize(evaluate, webhook.Options{}))
}

// newsless is a cluster in which nothing happens.
type newsless struct{}

func (newsless) OnChange(func(string)) func() { return func() {} }
func (newsless) KnowsNode(string) bool        { return true }

// takeTurns puts the same document to both handlers, without a network.
func takeTurns(b *testing.B, served, floor http.Handler, text string) {
	const turn = 50
	var took [2]time.Duration
	ask := asker(b, text)
	for b.Loop() {
		for i, handler := range []http.Handler{served, floor} {
			begin := time.Now()
			for range turn {
				ask(handler)
			}
			took[i] += time.Since(begin)
		}
	}
	requests := float64(b.N * turn)
	b.ReportMetric(0, "ns/op") // of two handlers, which means nothing
	b.ReportMetric(float64(took[0].Nanoseconds())/requests, "ns/request")
	b.ReportMetric(float64(took[1].Nanoseconds())/requests, "floor-ns/request")
	b.ReportMetric(float64(took[1])/float64(took[0]), "ratio")
}

// asker sends a document to handlers.
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

// discard is a writer of answers that nobody reads.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(status int)      { d.status = status }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
