package observe

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/component-base/metrics"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/internal/scope/containment"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/nodescope"
)

// maxAccounts is the maximum number of accounts, and namespaces, with a metric of their own.
const maxAccounts = 200

// otherAccounts stands for all further accounts.
const otherAccounts = "other"

// scopeRefusals counts what NodeScopes refuse or, in the mode Observe, would refuse.
type scopeRefusals struct {
	counts *metrics.CounterVec

	// policy has the NodeScopes that are enforced; nil without any.
	policy *atomic.Pointer[nodescope.Policy]

	mu       sync.Mutex
	accounts map[string]bool
}

func newScopeRefusals() *scopeRefusals {
	return &scopeRefusals{
		counts: counters("nodescope_refusals_total",
			"Requests of service accounts that a NodeScope refused or, in the mode Observe, would have refused.",
			"account", "code", "mode"),
		accounts: map[string]bool{},
	}
}

// ScopeRefused counts a request that a NodeScope refuses or would refuse.
func (m *Metrics) ScopeRefused(r *decision.ScopeRefusal) {
	mode := v1alpha1.Observe
	if r.Enforced {
		mode = v1alpha1.Enforce
	}
	m.scopes.counts.WithLabelValues(m.scopes.account(r.Account), string(r.Code), string(mode)).Inc()
}

// account returns the label of an account: NAMESPACE/NAME if a NodeScope names it, or NAMESPACE/* if one is
// about its namespace. Users who may create SubjectAccessReviews can ask for accounts that do not exist.
func (s *scopeRefusals) account(user string) string {
	namespace, name, ok := nodeidentity.ServiceAccount(user)
	if !ok || s.policy == nil {
		return otherAccounts
	}
	account := namespace + "/" + name
	switch named, all := s.policy.Load().About(user); {
	case named:
	case all:
		account = namespace + "/*"
	default: // the NodeScope has changed since
		return otherAccounts
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.accounts[account]:
	case len(s.accounts) >= maxAccounts:
		return otherAccounts
	default:
		s.accounts[account] = true
	}
	return account
}

// Containment is what follows NodeScopes and Quarantines.
type Containment interface {
	Stats() []containment.Stats
	QuarantinedNodes() int
	// Policy has the NodeScopes that are enforced.
	Policy() *atomic.Pointer[nodescope.Policy]
}

// WatchContainment exports the numbers of NodeScopes and Quarantines at each scrape. It must be called before
// requests are counted, and not twice.
func (m *Metrics) WatchContainment(of Containment) {
	m.scopes.policy = of.Policy()
	desc := func(name, help string, labels ...string) *metrics.Desc {
		return metrics.NewDesc(prefix+name, help, labels, nil, metrics.ALPHA, "")
	}
	m.registry.CustomMustRegister(&containmentCollector{
		of: of,
		objects: desc("containment_objects",
			"NodeScopes and Quarantines by outcome: Accepted means that they are in use.", "resource", "code"),
		changes: desc("containment_changes_total", "NodeScopes and Quarantines that appeared, disappeared or changed.", "resource"),
		last: desc("containment_last_change_timestamp_seconds",
			"When one of them last appeared, disappeared or changed, in seconds since 1970.", "resource"),
		nodes: desc("quarantined_nodes", "Nodes that are quarantined."),
	})
}

type containmentCollector struct {
	metrics.BaseStableCollector
	of                            Containment
	objects, changes, last, nodes *metrics.Desc
}

// DescribeWithStability implements metrics.StableCollector.
func (c *containmentCollector) DescribeWithStability(ch chan<- *metrics.Desc) {
	for _, d := range []*metrics.Desc{c.objects, c.changes, c.last, c.nodes} {
		ch <- d
	}
}

// CollectWithStability implements metrics.StableCollector.
func (c *containmentCollector) CollectWithStability(ch chan<- metrics.Metric) {
	for _, s := range c.of.Stats() {
		for _, code := range containment.Codes() {
			ch <- metrics.NewLazyConstMetric(c.objects, metrics.GaugeValue, float64(s.Objects[code]), s.Resource, string(code))
		}
		ch <- metrics.NewLazyConstMetric(c.changes, metrics.CounterValue, float64(s.Changes), s.Resource)
		if !s.LastChange.IsZero() {
			ch <- metrics.NewLazyConstMetric(c.last, metrics.GaugeValue,
				float64(s.LastChange.UnixNano())/float64(time.Second), s.Resource)
		}
	}
	ch <- metrics.NewLazyConstMetric(c.nodes, metrics.GaugeValue, float64(c.of.QuarantinedNodes()))
}
