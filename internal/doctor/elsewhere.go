package doctor

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/finding"
)

// forgotten is how long after an edit of aws-auth no token and no cached answer is
// left from before: tokens live for a quarter of an hour, answers less.
const forgotten = time.Hour

// unlessMappedElsewhere takes the alarm out of a finding about nodes without an entry,
// if all of them are Ready long after aws-auth was written: then something that is not
// to be seen here maps them, as access entries of EKS do.
func (e *examination) unlessMappedElsewhere(nodes []string, f finding.Finding) finding.Finding {
	if !e.settled() || !e.allReady(nodes) {
		return f
	}
	f.Severity = finding.Info
	f.Message += "; still " + plural(len(nodes), "the node is", "the nodes are") + " Ready"
	f.Consequence = "none, as something else maps " + plural(len(nodes), "it", "them") + ": an EKS access entry, or a client certificate"
	f.Remedy = "nothing, if that is meant; otherwise " + f.Remedy
	return f
}

// settled reports whether what nodes do now is what the mappings that were read make
// of them. In files one may be older than the other.
func (e *examination) settled() bool {
	m := e.cluster.AWSAuth
	return e.cluster.Live && m != nil && !m.Changed.IsZero() && e.options.Now.Sub(m.Changed) > forgotten &&
		len(e.cluster.IdentityMappings) == 0
}

func (e *examination) allReady(nodes []string) bool {
	ready := map[string]bool{}
	for i := range e.cluster.Nodes {
		ready[e.cluster.Nodes[i].Name] = e.cluster.Nodes[i].Ready == corev1.ConditionTrue
	}
	for _, name := range nodes {
		if !ready[name] {
			return false
		}
	}
	return len(nodes) > 0
}

// names are those of the cluster's nodes of AWS.
func (f *rolePredictor) names() []string {
	names := make([]string, len(f.nodes))
	for i := range f.nodes {
		names[i] = f.nodes[i].name
	}
	return names
}

// lastWritten is when an API server last took a write of a ConfigMap; zero if it does
// not say.
func lastWritten(m *corev1.ConfigMap) time.Time {
	var last time.Time
	for _, entry := range m.ManagedFields {
		if entry.Time != nil && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	return last
}
