package observe_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/internal/join/approve"
	"github.com/node-authorizer/node-authorizer/internal/join/bootstrap"
	"github.com/node-authorizer/node-authorizer/internal/join/controller"
	"github.com/node-authorizer/node-authorizer/internal/server/observe"
	"github.com/node-authorizer/node-authorizer/internal/staleness"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// scrape returns the lines of a scrape, sorted, without comments and without the metrics of
// the Go runtime.
func scrape(t *testing.T, m *observe.Metrics) []string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	var lines []string
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "node_authorizer_") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	slices.Sort(lines)
	return lines
}

// want checks that a scrape contains the lines.
func want(t *testing.T, m *observe.Metrics, lines ...string) {
	t.Helper()
	got := scrape(t, m)
	for _, line := range lines {
		if !slices.Contains(got, line) {
			t.Errorf("no line %s in\n%s", line, strings.Join(got, "\n"))
		}
	}
}

// says returns an evaluator that always gives the same opinion.
func says(opinion decision.Opinion, err error) decision.Authorize {
	return func(context.Context, *access.Request) (decision.Opinion, error) { return opinion, err }
}

// answers returns an evaluator of writes that always gives the same answer.
func answers(answer noderestriction.Answer) decision.Admit {
	return func(context.Context, *noderestriction.Request) noderestriction.Answer { return answer }
}

func secret() *access.Request {
	return &access.Request{
		User: "system:node:worker-1", Groups: []string{"system:nodes"}, Verb: "get", Resource: "secrets",
		Namespace: "shop", Name: "db", ResourceRequest: true,
	}
}

func TestDecisionsAreCounted(t *testing.T) {
	for _, tc := range []struct {
		rule    string
		opinion decision.Opinion
		err     error
		req     *access.Request
		want    string
	}{
		{
			"an allow",
			decision.Opinion{Decision: verdict.Allow, Code: nodeauthz.PathToObject},
			nil, secret(),
			`{code="PathToObject",decision="allow",resource="secrets",type="authorize"}`,
		},
		{
			"no opinion",
			decision.Opinion{Decision: verdict.NoOpinion, Code: nodeauthz.NoPathToObject},
			nil, secret(),
			`{code="NoPathToObject",decision="no_opinion",resource="secrets",type="authorize"}`,
		},
		{
			"a denial",
			decision.Opinion{Decision: verdict.Deny, Code: "AlwaysDeny"},
			nil, secret(),
			`{code="AlwaysDeny",decision="deny",resource="secrets",type="authorize"}`,
		},
		{
			"an error, even with an opinion",
			decision.Opinion{Decision: verdict.Allow, Code: "NotSynced"},
			errors.New("not yet"), secret(),
			`{code="NotSynced",decision="error",resource="secrets",type="authorize"}`,
		},
		{
			"a resource with a group",
			decision.Opinion{Decision: verdict.Allow, Code: nodeauthz.OwnName},
			nil,
			&access.Request{Group: "coordination.k8s.io", Resource: "leases", ResourceRequest: true},
			`{code="OwnName",decision="allow",resource="leases.coordination.k8s.io",type="authorize"}`,
		},
		{
			"made-up resources share one label",
			decision.Opinion{Decision: verdict.NoOpinion, Code: nodeauthz.NoRuleForResource},
			nil,
			&access.Request{Group: "made.up", Resource: "secrets", ResourceRequest: true},
			`{code="NoRuleForResource",decision="no_opinion",resource="other",type="authorize"}`,
		},
		{
			"a path",
			decision.Opinion{Decision: verdict.NoOpinion, Code: nodeauthz.NoRuleForResource},
			nil, &access.Request{Path: "/metrics"},
			`{code="NoRuleForResource",decision="no_opinion",resource="non_resource",type="authorize"}`,
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			m := observe.NewMetrics()
			opinion, err := m.Authorize(says(tc.opinion, tc.err))(t.Context(), tc.req)
			if opinion.Code != tc.opinion.Code || !errors.Is(err, tc.err) {
				t.Errorf("the answer is changed to %+v, %v", opinion, err)
			}
			want(t, m, "node_authorizer_decisions_total"+tc.want+" 1")
		})
	}
}

func TestWritesAreCounted(t *testing.T) {
	m := observe.NewMetrics()
	nodeStatus := &noderestriction.Request{Resource: "nodes", Subresource: "status"}
	for _, answer := range []noderestriction.Answer{
		{Decision: verdict.Allow, Code: noderestriction.RestrictionsMet, Status: 200},
		{Decision: verdict.Deny, Code: noderestriction.TaintsChanged, Status: 403},
		{Decision: verdict.Deny, Code: noderestriction.PodNotFound, Status: 404},
		{Decision: verdict.Deny, Code: "NotSynced", Status: 500},
	} {
		m.Admit(answers(answer))(t.Context(), nodeStatus)
	}
	m.Mutated(true)
	m.Mutated(false)
	want(t, m,
		`node_authorizer_decisions_total{code="RestrictionsMet",decision="allow",resource="nodes",type="admit"} 1`,
		`node_authorizer_decisions_total{code="TaintsChanged",decision="deny",resource="nodes",type="admit"} 1`,
		`node_authorizer_decisions_total{code="PodNotFound",decision="deny",resource="nodes",type="admit"} 1`,
		`node_authorizer_decisions_total{code="NotSynced",decision="error",resource="nodes",type="admit"} 1`,
		`node_authorizer_decisions_total{code="Patched",decision="allow",resource="pods",type="mutate"} 1`,
		`node_authorizer_decisions_total{code="Unchanged",decision="allow",resource="pods",type="mutate"} 1`,
	)
}

func TestRequestsAreCountedAndTimed(t *testing.T) {
	m := observe.NewMetrics()
	handler := m.HTTP("authorize", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		want(t, m, `node_authorizer_requests_in_flight{endpoint="authorize"} 1`)
		switch r.URL.Path {
		case "/bad":
			w.WriteHeader(http.StatusBadRequest)
			w.WriteHeader(http.StatusOK) // too late
		case "/panic":
			panic(http.ErrAbortHandler)
		default:
			_, _ = w.Write(nil)
		}
	}))
	for _, path := range []string{"/", "/", "/bad", "/panic"} {
		func() {
			defer func() { _ = recover() }()
			handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, path, nil))
		}()
	}
	want(t, m,
		`node_authorizer_requests_total{endpoint="authorize",status="200"} 2`,
		`node_authorizer_requests_total{endpoint="authorize",status="400"} 1`,
		`node_authorizer_requests_total{endpoint="authorize",status="none"} 1`,
		`node_authorizer_requests_in_flight{endpoint="authorize"} 0`,
		`node_authorizer_request_duration_seconds_count{endpoint="authorize"} 4`,
	)
}

// http.ResponseController reaches the wrapped writer.
func TestResponseControllersWork(t *testing.T) {
	m := observe.NewMetrics()
	handler := m.HTTP("authorize", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
	}))
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", nil))
}

// cluster is a state that was read from a file, with the given watches.
type cluster struct {
	state    *source.State
	resource []source.Watched
}

func (c cluster) State() *source.State        { return c.state }
func (c cluster) Resources() []source.Watched { return c.resource }
func (c cluster) Resets() uint64              { return 3 }

func watchedCluster(t *testing.T) cluster {
	t.Helper()
	state, err := source.LoadFiles(t.Context(), []string{"-"}, source.FileOptions{Stdin: strings.NewReader(`{
		"kind": "Pod", "apiVersion": "v1", "metadata": {"namespace": "shop", "name": "api"},
		"spec": {
			"nodeName": "worker-1", "serviceAccountName": "api",
			"containers": [{"name": "api", "envFrom": [{"secretRef": {"name": "db"}}]}]
		}
	}`)})
	if err != nil {
		t.Fatal(err)
	}
	return cluster{state, []source.Watched{
		{
			Resource: schema.GroupResource{Resource: "pods"}, Following: source.Followed, LastEvent: time.Unix(1700000000, 5e8),
			Age: 90 * time.Second, Stale: true, Differences: 4, Errors: 2,
		},
		{Resource: schema.GroupResource{Resource: "nodes"}, Following: source.Reading},
		{Resource: schema.GroupResource{Resource: "persistentvolumes"}, Following: source.Unreadable, Errors: 1},
		{Resource: schema.GroupResource{Group: "resource.k8s.io", Resource: "resourceslices"}, Following: source.NotServed},
	}}
}

func TestScrapesShowTheCurrentSizeAndLag(t *testing.T) {
	m := observe.NewMetrics()
	m.Watch(watchedCluster(t))
	want(t, m,
		`node_authorizer_graph_objects{kind="Pod"} 1`,
		`node_authorizer_graph_objects{kind="Secret"} 1`,
		`node_authorizer_graph_objects{kind="ConfigMap"} 0`,
		`node_authorizer_graph_nodes 1`,
		`node_authorizer_graph_references 3`,
		`node_authorizer_watch_synced{resource="pods"} 1`,
		`node_authorizer_watch_synced{resource="nodes"} 0`,
		`node_authorizer_watch_synced{resource="persistentvolumes"} 0`,
		`node_authorizer_missing_rights{resource="pods"} 0`,
		`node_authorizer_missing_rights{resource="persistentvolumes"} 1`,
		`node_authorizer_watch_errors_total{resource="pods"} 2`,
		`node_authorizer_watch_last_event_timestamp_seconds{resource="pods"} 1.7000000005e+09`,
		`node_authorizer_watch_age_seconds{resource="pods"} 90`,
		`node_authorizer_watch_stale{resource="pods"} 1`,
		`node_authorizer_watch_stale{resource="nodes"} 0`,
		`node_authorizer_watch_differences_total{resource="pods"} 4`,
		`node_authorizer_state_resets_total 3`,
	)
	for _, line := range scrape(t, m) {
		if strings.Contains(line, "resourceslices") || strings.Contains(line, `last_event_timestamp_seconds{resource="nodes"}`) ||
			strings.Contains(line, `age_seconds{resource="nodes"}`) ||
			strings.Contains(line, `kind="Node"`) {
			t.Errorf("unexpected %s", line)
		}
	}
}

// everything returns metrics in which every metric has a value.
func everything(t *testing.T) *observe.Metrics {
	t.Helper()
	m := observe.NewMetrics()
	m.Watch(watchedCluster(t))
	m.Build(observe.Build{Version: "v0.2.0", Commit: "c152962", KubernetesVersion: "1.37"})
	m.Build(observe.Build{Version: "v0.2.0", Commit: "c152962", KubernetesVersion: "1.36"})
	m.Waited("authorize", "arrived", 30*time.Millisecond)
	m.BodyError("admit")("too_large")
	m.AccessReviewFailed()
	m.TooOld("authorize")
	m.RefusalsNotLogged(3)
	m.CertificateExpires("/tls/tls.crt", time.Unix(1900000000, 0))
	m.CertificateReloadFailed()
	m.Mutated(true)
	m.Attested(attestation(bootstrap.Issued, "TokenIssued"))
	m.Decided(&controller.Event{Kind: approve.Client, Outcome: approve.Approve, Code: "ClientCertificateApproved"})
	_, _ = m.Authenticate(always(aNode(), nil))(t.Context(), secretToken)
	m.TokenCache(false)
	m.STSRequest("answered", http.StatusOK, time.Millisecond)
	m.EC2Request("EC2", "answered")
	m.WatchMappings(func() []observe.MappingSource {
		findings := []finding.Finding{{Code: "MappingSyntax", Severity: finding.Error}}
		return []observe.MappingSource{{Name: "File", Findings: findings}}
	})
	m.HasApprover()
	m.WatchLedger(func() []*v1alpha1.NodeAttestation { return nil })
	age := staleness.New("nodes", time.Minute, nil)
	age.MarkCurrent()
	m.WatchAges([]staleness.Aged{age})
	m.ScopeRefused(&decision.ScopeRefusal{Account: "system:serviceaccount:kube-system:cilium", Code: "ScopeNoRule"})
	m.WatchContainment(stubContainment{})
	m.TooOld(observe.EndpointApprover)
	observe.NewAgreement(m, observe.NewRefusals(logr.Discard(), observe.RefusalOptions{})).Admit(
		func(context.Context, *noderestriction.Request) noderestriction.Answer {
			return noderestriction.Answer{Decision: verdict.Deny, Status: http.StatusForbidden}
		})(t.Context(), &noderestriction.Request{Resource: "pods"})
	notFound := m.HTTP("authorize", http.NotFoundHandler())
	notFound.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", nil))
	return m
}

func TestOtherEventsAreCounted(t *testing.T) {
	m := everything(t)
	want(t, m,
		`node_authorizer_freshness_waits_total{outcome="arrived",type="authorize"} 1`,
		`node_authorizer_freshness_wait_seconds_sum{outcome="arrived",type="authorize"} 0.03`,
		`node_authorizer_request_body_errors_total{endpoint="admit",reason="too_large"} 1`,
		`node_authorizer_access_review_errors_total 1`,
		`node_authorizer_refusals_not_logged_total 3`,
		`node_authorizer_certificate_expiration_timestamp_seconds{file="/tls/tls.crt"} 1.9e+09`,
		`node_authorizer_certificate_reload_errors_total 1`,
	)
	builds := slices.DeleteFunc(scrape(t, m), func(line string) bool {
		return !strings.HasPrefix(line, "node_authorizer_build_info")
	})
	if len(builds) != 1 || !strings.Contains(builds[0], `kubernetes_version="1.36"`) {
		t.Errorf("builds are %q, want only the last one", builds)
	}
}

// TestMetricsPageHasEveryMetric compares the exported metrics with docs/reference/metrics.md.
func TestMetricsPageHasEveryMetric(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	ours, _, _ := strings.Cut(string(page), "\n## Names in kops' node-authorizer\n")
	for _, name := range regexp.MustCompile("`(node_authorizer_[a-z_]+)").FindAllStringSubmatch(ours, -1) {
		documented[name[1]] = true
	}
	exported := map[string]bool{}
	for _, line := range scrape(t, everything(t)) {
		name := regexp.MustCompile(`^[a-z_]+`).FindString(line)
		for _, part := range []string{"_bucket", "_sum", "_count"} {
			name = strings.TrimSuffix(name, part)
		}
		exported[name] = true
	}
	for name := range exported {
		if !documented[name] {
			t.Errorf("docs/reference/metrics.md does not explain %s", name)
		}
	}
	for name := range documented {
		if !exported[name] {
			t.Errorf("docs/reference/metrics.md explains %s, which is not exported", name)
		}
	}
}

// The number of time series stays small, however many names callers make up.
func TestLabelsDoNotGrowWithRequests(t *testing.T) {
	m := observe.NewMetrics()
	evaluate := m.Authorize(says(decision.Opinion{Decision: verdict.NoOpinion, Code: nodeauthz.NoRuleForResource}, nil))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 1000 {
				req := secret()
				req.User, req.Resource = "user-"+string(rune('a'+i%26)), strings.Repeat("r", i)
				req.Group, req.Verb = "g", strings.Repeat("v", i)
				if _, err := evaluate(t.Context(), req); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	want(t, m, `node_authorizer_decisions_total{code="NoRuleForResource",decision="no_opinion",resource="other",type="authorize"} 4000`)
	if n := len(scrape(t, m)); n > 10 {
		t.Errorf("%d lines", n)
	}
}
