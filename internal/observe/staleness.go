package observe

import (
	"errors"

	"k8s.io/component-base/metrics"

	"github.com/node-authorizer/node-authorizer/internal/staleness"
)

// Endpoints whose answers may be errors because of old copies, beside those of the
// webhooks about nodes.
const (
	EndpointAuthenticate = "authenticate"
	EndpointBootstrap    = "bootstrap"
	EndpointApprover     = "approver"
)

// staleAnswer counts an answer that was an error because a copy is too old.
func (m *Metrics) staleAnswer(endpoint string, err error) {
	if _, old := errors.AsType[*staleness.Error](err); old {
		m.TooOld(endpoint)
	}
}

// WatchAges exports how old the copies of sources are, as they are when metrics are
// asked for. It may be called once.
func (m *Metrics) WatchAges(ages []staleness.Aged) {
	desc := func(name, help string) *metrics.Desc {
		return metrics.NewDesc(prefix+name, help, []string{"source"}, nil, metrics.ALPHA, "")
	}
	m.registry.CustomMustRegister(&ageCollector{
		ages:  ages,
		age:   desc("source_age_seconds", "Time since a source of mappings or of what lets machines join was last heard from."),
		stale: desc("source_stale", "1 when that is longer than cluster.maxStaleness: what depends on it is an error."),
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

// CollectWithStability implements metrics.StableCollector. A source that was never
// read has no age.
func (c *ageCollector) CollectWithStability(ch chan<- metrics.Metric) {
	for _, a := range c.ages {
		if age, ever := a.Value(); ever {
			ch <- metrics.NewLazyConstMetric(c.age, metrics.GaugeValue, age.Seconds(), a.Source())
			ch <- metrics.NewLazyConstMetric(c.stale, metrics.GaugeValue, one(a.Check() != nil), a.Source())
		}
	}
}
