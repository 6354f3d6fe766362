package observe

import (
	"errors"
	"sync"
	"sync/atomic"

	"k8s.io/component-base/metrics"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/internal/scope/containment"
	"github.com/node-authorizer/node-authorizer/internal/staleness"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/nodescope"
)

// Cluster is a state that is kept up to date, such as the live state of package source.
type Cluster interface {
	State() *source.State
	Resources() []source.Watched
	// Resets is how often the state was dropped and read again.
	Resets() uint64
}

// Watch exports the current size of a state and the condition of its watches at each
// scrape. It must not be called twice.
func (m *Metrics) Watch(cluster Cluster) {
	objects := scrapedGauge("graph_objects", "Objects in the graph by kind, without nodes.", "kind")
	nodes := scrapedGauge("graph_nodes", "Nodes to which an object in the graph is related.")
	references := scrapedGauge("graph_references", "References between objects and nodes in the graph.")
	synced := scrapedGauge("watch_synced", "1 if all objects of the resource have been read and its watch works.", "resource")
	lastEvent := scrapedGauge("watch_last_event_timestamp_seconds",
		"When the API server last sent an object or a bookmark, in seconds since 1970.", "resource")
	failed := scrapedCounter("watch_errors_total", "Requests and watches that failed and were retried.", "resource")
	unreadable := scrapedGauge("missing_rights",
		"1 if the server may not read the resource, so that answers may be incomplete.", "resource")
	age := scrapedGauge("watch_age_seconds", "Time since the API server last confirmed the state of the resource.", "resource")
	stale := scrapedGauge("watch_stale",
		"1 if the resource is older than cluster.maxStaleness or is read again, so that answers that depend on it are errors.", "resource")
	differences := scrapedCounter("watch_differences_total",
		"Objects that differ between a list and the state, and for which the watch sent no event.", "resource")
	resets := scrapedCounter("state_resets_total",
		"How often the state was dropped and read again, because the API server has another history.")
	m.scrape(func(send sendFunc) {
		size := cluster.State().Graph.Stats()
		for _, kind := range graph.Kinds() {
			if kind != graph.Node {
				send(objects, float64(size.Vertices[kind]), kind.String())
			}
		}
		send(nodes, float64(size.Vertices[graph.Node]))
		send(references, float64(size.Links))
		send(resets, float64(cluster.Resets()))
		for _, w := range cluster.Resources() {
			resource := w.Resource.String()
			if w.Following == source.NotServed {
				continue // the API server has no such objects
			}
			send(synced, one(w.Following == source.Followed), resource)
			send(unreadable, one(w.Following == source.Unreadable), resource)
			send(failed, float64(w.Errors), resource)
			send(stale, one(w.Stale), resource)
			send(differences, float64(w.Differences), resource)
			if w.Age > 0 {
				send(age, w.Age.Seconds(), resource)
			}
			if !w.LastEvent.IsZero() {
				send(lastEvent, seconds(w.LastEvent), resource)
			}
		}
	}, objects, nodes, references, synced, lastEvent, failed, unreadable, age, stale, differences, resets)
}

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

// WatchAges exports the current ages of the copies of sources at each scrape. A source that was never read has no
// age. It must not be called twice.
func (m *Metrics) WatchAges(ages []staleness.Aged) {
	current := scrapedGauge("source_age_seconds",
		"Time since a source of mappings or joins, or of NodeScopes and Quarantines, last confirmed its copy.", "source")
	stale := scrapedGauge("source_stale",
		"1 if that is longer than cluster.maxStaleness, so that answers that depend on the source are errors.", "source")
	m.scrape(func(send sendFunc) {
		for _, a := range ages {
			if age, ever := a.Value(); ever {
				send(current, age.Seconds(), a.Source())
				send(stale, one(a.Check() != nil), a.Source())
			}
		}
	}, current, stale)
}

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
	objects := scrapedGauge("containment_objects",
		"NodeScopes and Quarantines by outcome: Accepted means that they are in use.", "resource", "code")
	changes := scrapedCounter("containment_changes_total", "NodeScopes and Quarantines that appeared, disappeared or changed.", "resource")
	last := scrapedGauge("containment_last_change_timestamp_seconds",
		"When one of them last appeared, disappeared or changed, in seconds since 1970.", "resource")
	nodes := scrapedGauge("quarantined_nodes", "Nodes that are quarantined.")
	m.scrape(func(send sendFunc) {
		for _, s := range of.Stats() {
			for _, code := range containment.Codes() {
				send(objects, float64(s.Objects[code]), s.Resource, string(code))
			}
			send(changes, float64(s.Changes), s.Resource)
			if !s.LastChange.IsZero() {
				send(last, seconds(s.LastChange), s.Resource)
			}
		}
		send(nodes, float64(of.QuarantinedNodes()))
	}, objects, changes, last, nodes)
}
