package doctor

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/finding"
	"github.com/node-authorizer/node-authorizer/internal/render"
)

// forgotten is the time after an edit of aws-auth when all older tokens and cached answers have
// expired: tokens are valid for a quarter of an hour, answers are cached for less.
const forgotten = time.Hour

// unlessMappedElsewhere lowers the severity of a finding about nodes without an entry if all of
// them are Ready long after aws-auth was written. Something else maps them then, such as EKS
// access entries.
func (e *examination) unlessMappedElsewhere(nodes []string, f finding.Finding) finding.Finding {
	if !e.settled() || !e.allReady(nodes) {
		return f
	}
	f.Severity = finding.Info
	f.Message += "; still " + render.Plural(len(nodes), "the node is", "the nodes are") + " Ready"
	f.Consequence = "none, as something else maps " + render.Plural(len(nodes), "it", "them") +
		": an EKS access entry, or a client certificate"
	f.Remedy = "nothing, if that is meant; otherwise " + f.Remedy
	return f
}

// settled reports whether the state of the nodes is the effect of the current mappings. In files,
// the nodes may be older than the mappings.
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

// names returns the names of the cluster's AWS nodes.
func (f *rolePredictor) names() []string {
	names := make([]string, len(f.nodes))
	for i := range f.nodes {
		names[i] = f.nodes[i].name
	}
	return names
}
