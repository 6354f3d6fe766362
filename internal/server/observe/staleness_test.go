package observe_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/join/bootstrap"
	"github.com/node-authorizer/node-authorizer/internal/server/observe"
	"github.com/node-authorizer/node-authorizer/internal/staleness"
)

func TestAgesOfSources(t *testing.T) {
	m := observe.NewMetrics()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	old, young := staleness.New("old", time.Minute, clock), staleness.New("young", time.Hour, clock)
	never := staleness.New("never", time.Minute, clock)
	old.MarkCurrent()
	young.MarkCurrent()
	m.WatchAges([]staleness.Aged{old, young, never})
	now = now.Add(61 * time.Second)
	want(t, m,
		`node_authorizer_source_age_seconds{source="old"} 61`,
		`node_authorizer_source_age_seconds{source="young"} 61`,
		`node_authorizer_source_stale{source="old"} 1`,
		`node_authorizer_source_stale{source="young"} 0`,
	)
	for _, line := range scrape(t, m) {
		if line == `node_authorizer_source_age_seconds{source="never"} 0` {
			t.Errorf("a source that was never read has an age: %s", line)
		}
	}
}

// Only errors that are caused by stale copies are counted.
func TestAnswersFromOldCopiesAreCounted(t *testing.T) {
	m := observe.NewMetrics()
	tooOld := fmt.Errorf("not decided: %w", &staleness.Error{
		Source: "ConfigMap kube-system/aws-auth", Age: 3 * time.Minute, Max: 2 * time.Minute,
	})
	for _, err := range []error{tooOld, fmt.Errorf("another: %w", fmt.Errorf("error")), nil} {
		_, _ = m.Authenticate(always(nil, err))(t.Context(), secretToken)
		m.Attested(&bootstrap.Event{Attestor: "aws", Outcome: bootstrap.Failed, Err: err})
	}
	m.TooOld(observe.EndpointApprover)
	want(t, m,
		`node_authorizer_stale_answers_total{endpoint="authenticate"} 1`,
		`node_authorizer_stale_answers_total{endpoint="bootstrap"} 1`,
		`node_authorizer_stale_answers_total{endpoint="approver"} 1`,
	)
}
