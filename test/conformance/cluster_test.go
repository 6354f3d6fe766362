package conformance

import (
	"math/rand/v2"
	"testing"

	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/test/conformance/generate"
	"github.com/node-authorizer/node-authorizer/test/conformance/intree"
	"github.com/node-authorizer/node-authorizer/test/conformance/minors/protocol"
)

// TestRandomClusters puts the same questions about the same clusters, under random
// feature gates, to the newest in-tree authorizer and to ours.
func TestRandomClusters(t *testing.T) {
	b := readBudget(t)
	counts, divergences := make(shares), 0
	for _, seed := range b.seeds(b.clusters) {
		divergences += latestTrial(t, seed).run(t, b.requests, counts)
		if divergences > maxDivergences {
			break
		}
	}
	counts.check(t, int(kubeversion.Latest))
	t.Logf("%d questions over %d clusters: %d divergences", counts.total(), b.clusters, divergences)
}

// latestTrial prepares the cluster of a seed, with gates drawn from the seed.
// The process has these gates until the next trial.
func latestTrial(t *testing.T, seed uint64) *trial {
	t.Helper()
	features, gates := randomFeatures(t, rand.New(rand.NewPCG(seed, 1)), kubeversion.Latest)
	return latestTrialWith(t, seed, features, gates)
}

func latestTrialWith(t *testing.T, seed uint64, features kubeversion.Features, gates map[string]bool) *trial {
	t.Helper()
	if err := intree.SetGates(gates); err != nil {
		t.Fatal(err)
	}
	c := generate.New(seed, generate.RandomOptions(seed))
	return newLatestTrial("cluster", seed, features, gates, c, nodeauthz.New(graphOf(c), features))
}

// newLatestTrial gives ours the whole cluster, as in a snapshot with other gates, and
// theirs the objects that reach the graph of an API server.
func newLatestTrial(name string, seed uint64, features kubeversion.Features, gates map[string]bool,
	c *generate.Cluster, ours *nodeauthz.Authorizer,
) *trial {
	theirs := intree.New(intree.Graph(served(c, features)))
	return &trial{
		name: name, seed: seed, features: features, gates: gates, cluster: c, ours: ours,
		theirs: func(_ *testing.T, requests []generate.Request) []protocol.Decision {
			decisions := make([]protocol.Decision, len(requests))
			for i := range requests {
				d, _, err := intree.Decide(theirs, &requests[i])
				decisions[i] = theirDecision(d, err)
			}
			return decisions
		},
		rebuild: func(_ *testing.T, c *generate.Cluster, r generate.Request) (ours, theirs protocol.Decision) {
			answer := nodeauthz.New(graphOf(c), features).Decide(requestOf(&r))
			d, _, err := intree.Decide(intree.New(intree.Graph(served(c, features))), &r)
			return ourDecision(answer.Decision), theirDecision(d, err)
		},
	}
}
