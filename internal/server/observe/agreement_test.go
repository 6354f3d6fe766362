package observe_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/internal/server/observe"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

func TestObservedAuthorization(t *testing.T) {
	allow := decision.Opinion{Decision: verdict.Allow, Code: nodeauthz.PathToObject, Node: "worker-1"}
	for _, tc := range []struct {
		rule   string
		ours   decision.Opinion
		err    error
		behind int // how often the API server asks behind its Node authorizer
		want   []string
	}{
		{"both allow", allow, nil, 0, nil},
		{"both refuse", noPath(), nil, 1, nil},
		{"a cache of the API server asks behind once for two requests", noPath(), nil, 1, nil},
		{"the Node authorizer allows what the server refuses", noPath(), nil, 0, []string{"stricter"}},
		{"the server allows what the Node authorizer does not", allow, nil, 1, []string{"broader"}},
		{"the server cannot decide", decision.Opinion{}, errors.New("too old"), 0, []string{"undecided"}},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log, metrics := &journal{}, observe.NewMetrics()
				agreement := observe.NewAgreement(metrics, observe.NewRefusals(log.logger(0), plenty()))
				next := func(context.Context, *access.Request) (decision.Opinion, error) { return tc.ours, tc.err }
				req := &access.Request{User: "system:node:worker-1", Verb: "get", ResourceRequest: true, Resource: "secrets", Name: "db"}
				ask := func(evaluate decision.Authorize) {
					t.Helper()
					got, err := evaluate(t.Context(), req)
					if err != nil || got.Decision != verdict.NoOpinion || got.Reason != "" {
						t.Errorf("the API server gets %+v, %v", got, err)
					}
				}
				ask(agreement.Before(next))
				ask(agreement.Before(next))
				for range tc.behind {
					ask(agreement.Behind(next))
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				for _, name := range []string{"stricter", "broader", "undecided"} {
					found := strings.Contains(exposed(metrics), `observed_differences_total{difference="`+name+`",type="authorize"}`)
					wanted := slices.Contains(tc.want, name)
					if found != wanted {
						t.Errorf("%s is counted: %t", name, found)
					}
				}
				logged := strings.Join(log.drain(), "\n")
				if differs := strings.Contains(logged, "differs from the in-tree decision"); differs != (tc.want != nil && tc.err == nil) {
					t.Errorf("the log has %s", logged)
				}
				if tc.err != nil && !strings.Contains(logged, "request could not be decided") {
					t.Errorf("the log does not say why there is nothing to compare: %s", logged)
				}
			})
		})
	}
}

// A request that the API server ended is not asked about behind the Node authorizer.
func TestEndedRequestsAreNotCompared(t *testing.T) {
	metrics := observe.NewMetrics()
	agreement := observe.NewAgreement(metrics, observe.NewRefusals((&journal{}).logger(0), plenty()))
	ctx, end := context.WithCancel(t.Context())
	end()
	refuse := func(context.Context, *access.Request) (decision.Opinion, error) { return noPath(), nil }
	_, _ = agreement.Before(refuse)(ctx, &access.Request{})
	if text := exposed(metrics); strings.Contains(text, "observed_requests_total{") {
		t.Error(text)
	}
}

func TestObservedWritesPass(t *testing.T) {
	for _, tc := range []struct {
		rule   string
		answer noderestriction.Answer
		want   string
	}{
		{"a write that the server allows", noderestriction.Answer{Decision: verdict.Allow, Status: 200}, ""},
		{"a write that the server refuses", noderestriction.Answer{Decision: verdict.Deny, Status: 403, Node: "worker-1"}, "stricter"},
		{"a write that it cannot decide about", noderestriction.Answer{Decision: verdict.Deny, Status: 503}, "undecided"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			metrics := observe.NewMetrics()
			agreement := observe.NewAgreement(metrics, observe.NewRefusals((&journal{}).logger(0), plenty()))
			next := func(context.Context, *noderestriction.Request) noderestriction.Answer { return tc.answer }
			if got := agreement.Admit(next)(t.Context(), &noderestriction.Request{}); got.Decision != verdict.Allow || got.Status != 200 {
				t.Errorf("the API server gets %+v", got)
			}
			text := exposed(metrics)
			if found := strings.Contains(text, `observed_differences_total{difference="`); found != (tc.want != "") ||
				!strings.Contains(text, tc.want) {
				t.Error(text)
			}
		})
	}
}

// exposed returns the metrics in Prometheus' text form.
func exposed(metrics *observe.Metrics) string {
	recorder := httptest.NewRecorder()
	metrics.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return recorder.Body.String()
}
