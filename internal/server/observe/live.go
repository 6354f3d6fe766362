package observe

import (
	"time"

	"k8s.io/component-base/metrics"

	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
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
	m.registry.CustomMustRegister(newLiveCollector(cluster))
}

type liveCollector struct {
	metrics.BaseStableCollector
	cluster Cluster

	objects, nodes, references            *metrics.Desc
	synced, lastEvent, errors, unreadable *metrics.Desc
	age, stale, differences, resets       *metrics.Desc
}

func newLiveCollector(cluster Cluster) *liveCollector {
	desc := func(name, help string, labels ...string) *metrics.Desc {
		return metrics.NewDesc(prefix+name, help, labels, nil, metrics.ALPHA, "")
	}
	return &liveCollector{
		cluster:    cluster,
		objects:    desc("graph_objects", "Objects in the graph by kind, without nodes.", "kind"),
		nodes:      desc("graph_nodes", "Nodes to which an object in the graph is related."),
		references: desc("graph_references", "References between objects and nodes in the graph."),
		synced:     desc("watch_synced", "1 if all objects of the resource have been read and its watch works.", "resource"),
		lastEvent: desc("watch_last_event_timestamp_seconds",
			"When the API server last sent an object or a bookmark, in seconds since 1970.", "resource"),
		errors: desc("watch_errors_total", "Requests and watches that failed and were retried.", "resource"),
		unreadable: desc("missing_rights",
			"1 if the server may not read the resource, so that answers may be incomplete.", "resource"),
		age: desc("watch_age_seconds", "Time since the API server last confirmed the state of the resource.", "resource"),
		stale: desc("watch_stale",
			"1 if the resource is older than cluster.maxStaleness or is read again, so that answers that depend on it are errors.",
			"resource"),
		differences: desc("watch_differences_total",
			"Objects that differ between a list and the state, and for which the watch sent no event.", "resource"),
		resets: desc("state_resets_total",
			"How often the state was dropped and read again, because the API server has another history."),
	}
}

// DescribeWithStability implements metrics.StableCollector.
func (c *liveCollector) DescribeWithStability(ch chan<- *metrics.Desc) {
	for _, d := range []*metrics.Desc{
		c.objects, c.nodes, c.references, c.synced, c.lastEvent, c.errors, c.unreadable, c.age, c.stale, c.differences, c.resets,
	} {
		ch <- d
	}
}

// CollectWithStability implements metrics.StableCollector.
func (c *liveCollector) CollectWithStability(ch chan<- metrics.Metric) {
	gauge := func(d *metrics.Desc, value float64, labels ...string) {
		ch <- metrics.NewLazyConstMetric(d, metrics.GaugeValue, value, labels...)
	}
	size := c.cluster.State().Graph.Stats()
	for _, kind := range graph.Kinds() {
		if kind != graph.Node {
			gauge(c.objects, float64(size.Vertices[kind]), kind.String())
		}
	}
	gauge(c.nodes, float64(size.Vertices[graph.Node]))
	gauge(c.references, float64(size.Links))
	ch <- metrics.NewLazyConstMetric(c.resets, metrics.CounterValue, float64(c.cluster.Resets()))
	for _, w := range c.cluster.Resources() {
		resource := w.Resource.String()
		if w.Following == source.NotServed {
			continue // the API server has no such objects
		}
		gauge(c.synced, one(w.Following == source.Followed), resource)
		gauge(c.unreadable, one(w.Following == source.Unreadable), resource)
		ch <- metrics.NewLazyConstMetric(c.errors, metrics.CounterValue, float64(w.Errors), resource)
		gauge(c.stale, one(w.Stale), resource)
		ch <- metrics.NewLazyConstMetric(c.differences, metrics.CounterValue, float64(w.Differences), resource)
		if w.Age > 0 {
			gauge(c.age, w.Age.Seconds(), resource)
		}
		if !w.LastEvent.IsZero() {
			gauge(c.lastEvent, float64(w.LastEvent.UnixNano())/float64(time.Second), resource)
		}
	}
}

func one(condition bool) float64 {
	if condition {
		return 1
	}
	return 0
}
