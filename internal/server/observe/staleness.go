package observe

import (
	"errors"

	"k8s.io/component-base/metrics"

	"github.com/node-authorizer/node-authorizer/internal/staleness"
)

// Endpoints other than the webhooks for nodes whose answers may be errors because of stale
// copies.
const (
	EndpointAuthenticate = "authenticate"
	EndpointBootstrap    = "bootstrap"
	EndpointApprover     = "approver"
)

// staleAnswer counts an answer if it is an error because a copy is too old.
func (m *Metrics) staleAnswer(endpoint string, err error) {
	if _, old := errors.AsType[*staleness.Error](err); old {
		m.TooOld(endpoint)
	}
}

// WatchAges exports the current ages of the copies of sources at each scrape. It must not be
// called twice.
func (m *Metrics) WatchAges(ages []staleness.Aged) {
	desc := func(name, help string) *metrics.Desc {
		return metrics.NewDesc(prefix+name, help, []string{"source"}, nil, metrics.ALPHA, "")
	}
	m.registry.CustomMustRegister(&ageCollector{
		ages: ages,
		age: desc("source_age_seconds",
			"Time since a source of mappings or joins, or of NodeScopes and Quarantines, last confirmed its copy."),
		stale: desc("source_stale",
			"1 if that is longer than cluster.maxStaleness, so that answers that depend on the source are errors."),
	})
}

type ageCollector struct {
	metrics.BaseStableCollector
	ages       []staleness.Aged
	age, stale *metrics.Desc
}

// DescribeWithStability implements metrics.StableCollector.
func (c *ageCollector) DescribeWithStability(ch chan<- *metrics.Desc) {
	ch <- c.age
	ch <- c.stale
}

// CollectWithStability implements metrics.StableCollector. A source that was never read has
// no age.
func (c *ageCollector) CollectWithStability(ch chan<- metrics.Metric) {
	for _, a := range c.ages {
		if age, ever := a.Value(); ever {
			ch <- metrics.NewLazyConstMetric(c.age, metrics.GaugeValue, age.Seconds(), a.Source())
			ch <- metrics.NewLazyConstMetric(c.stale, metrics.GaugeValue, one(a.Check() != nil), a.Source())
		}
	}
}
