package deploy

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	admissionmetrics "k8s.io/apiserver/pkg/admission/metrics"
	webhookmetrics "k8s.io/apiserver/plugin/pkg/authorizer/webhook/metrics"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/node-authorizer/node-authorizer/access"
	ledgerv1alpha1 "github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/internal/join/approve"
	"github.com/node-authorizer/node-authorizer/internal/join/bootstrap"
	"github.com/node-authorizer/node-authorizer/internal/join/controller"
	"github.com/node-authorizer/node-authorizer/internal/scope/containment"
	"github.com/node-authorizer/node-authorizer/internal/server/observe"
	"github.com/node-authorizer/node-authorizer/internal/staleness"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/nodescope"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// family is the type of a metric, such as "counter", and the names of its labels.
type family struct {
	kind   string
	labels []string
}

// families returns the metrics by name.
func families(all []*dto.MetricFamily) map[string]family {
	found := map[string]family{}
	for _, f := range all {
		kind := strings.ToLower(f.GetType().String())
		var labels []string
		for _, pair := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, pair.GetName())
		}
		slices.Sort(labels)
		found[f.GetName()] = family{kind, labels}
	}
	return found
}

// served returns the metrics of a server that has recorded each of them.
func served(t *testing.T) map[string]family {
	t.Helper()
	m := observe.NewMetrics()
	m.Build(observe.Build{Version: "v1", Commit: "abc", KubernetesVersion: "1.37"})
	m.Waited("authorize", "arrived", time.Millisecond)
	m.BodyError("admit")("malformed")
	m.Mutated(true)
	m.AccessReviewFailed()
	m.TooOld("authorize")
	m.RefusalsNotLogged(1)
	m.CertificateExpires("/tls.crt", time.Now())
	m.CertificateReloadFailed()
	_, _ = m.Authorize(func(context.Context, *access.Request) (decision.Opinion, error) {
		return decision.Opinion{}, errors.New("not synced")
	})(t.Context(), &access.Request{})
	m.Admit(func(context.Context, *noderestriction.Request) noderestriction.Answer {
		return noderestriction.Answer{Decision: verdict.Allow, Status: http.StatusOK}
	})(t.Context(), &noderestriction.Request{Resource: "pods"})
	observe.NewAgreement(m, observe.NewRefusals(logr.Discard(), observe.RefusalOptions{})).Admit(
		func(context.Context, *noderestriction.Request) noderestriction.Answer {
			return noderestriction.Answer{Decision: verdict.Deny, Status: http.StatusForbidden}
		})(t.Context(), &noderestriction.Request{Resource: "pods"})
	m.Attested(&bootstrap.Event{Attestor: "aws", Outcome: bootstrap.Refused, Code: "WrongVPC"})
	m.Decided(&controller.Event{Kind: approve.Client, Outcome: approve.Deny, Code: "TokenExpired"})
	_, _ = m.Authenticate(func(context.Context, string) (*iam.User, error) {
		return nil, iam.Refuse(iam.NotMapped, "nothing maps it")
	})(t.Context(), "token")
	m.TokenCache(false)
	m.STSRequest("answered", http.StatusOK, time.Millisecond)
	m.EC2Request("EC2", "answered")
	m.WatchMappings(func() []observe.MappingSource {
		return []observe.MappingSource{{Name: "ConfigMap", Findings: []finding.Finding{{Code: iam.MappingSyntax, Severity: finding.Error}}}}
	})
	m.HasApprover()
	m.WatchLedger(func() []*ledgerv1alpha1.NodeAttestation { return nil })
	age := staleness.New("nodes", time.Minute, nil)
	age.MarkCurrent()
	m.WatchAges([]staleness.Aged{age})
	m.TooOld(observe.EndpointApprover)
	m.ScopeRefused(&decision.ScopeRefusal{Code: "ScopeNoRule"})
	m.WatchContainment(containmentStats{})
	m.HTTP("authorize", http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(),
		httptest.NewRequest(http.MethodPost, "/authorize", http.NoBody))

	live, err := source.Watch(t.Context(),
		&rest.Config{Host: newEmptyCluster(t).URL, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}},
		source.LiveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(live.Stop)
	if err := live.WaitSynced(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.Watch(live)

	page := httptest.NewRecorder()
	m.Handler().ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	parser := expfmt.NewTextParser(model.LegacyValidation)
	parsed, err := parser.TextToMetricFamilies(page.Body)
	if err != nil {
		t.Fatal(err)
	}
	return families(slices.Collect(maps.Values(parsed)))
}

// ofAPIServers returns kube-apiserver's metrics of webhooks.
func ofAPIServers(t *testing.T) map[string]family {
	t.Helper()
	authorization := webhookmetrics.NewWebhookMetrics()
	authorization.RecordWebhookEvaluation(t.Context(), "node-authorizer", "error")
	authorization.RecordWebhookDuration(t.Context(), "node-authorizer", "success", 0.001)
	authorization.RecordWebhookFailOpen(t.Context(), "node-authorizer", "timeout")
	write := admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{}, "", "", schema.GroupVersionResource{}, "", admission.Create,
		nil, false, nil)
	admissionmetrics.Metrics.ObserveWebhook(t.Context(), "noderestriction.node-authorizer.io", time.Millisecond, false, write, "admit",
		http.StatusOK)
	admissionmetrics.Metrics.ObserveWebhookRejection(t.Context(), "noderestriction.node-authorizer.io", "admit", "CREATE",
		admissionmetrics.WebhookRejectionCallingWebhookError, 0)
	all, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := families(all)
	maps.DeleteFunc(found, func(name string, _ family) bool { return !strings.HasPrefix(name, "apiserver_") })
	return found
}

// containmentStats says what follows NodeScopes.
type containmentStats struct{}

func (containmentStats) Stats() []containment.Stats {
	return []containment.Stats{{Resource: "nodescopes", LastChange: time.Now()}}
}

func (containmentStats) QuarantinedNodes() int { return 0 }

func (containmentStats) Policy() *atomic.Pointer[nodescope.Policy] {
	return new(atomic.Pointer[nodescope.Policy])
}
