package conformance

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/test/conformance/generate"
	"github.com/node-authorizer/node-authorizer/test/conformance/minors/protocol"
)

// TestOlderMinors compares ours with the in-tree authorizer of each older
// minor, under random settings of the gates that the minor lets one set.
func TestOlderMinors(t *testing.T) {
	b := readBudget(t)
	for _, m := range selectedMinors(t) {
		if m == kubeversion.Latest {
			continue // TestRandomClusters
		}
		t.Run(m.String(), func(t *testing.T) {
			o := startOracle(t, m)
			counts, divergences := make(shares), 0
			for _, seed := range b.seeds(b.clusters) {
				divergences += minorTrial(t, o, m, seed).run(t, b.requests, counts)
				if divergences > maxDivergences {
					break
				}
			}
			counts.check(t, int(m))
			t.Logf("Kubernetes %s: %d questions over %d clusters: %d divergences", m, counts.total(), b.clusters, divergences)
		})
	}
}

// TestGatesOfMinors compares the gates that we know of with the gates of each
// minor: their names, their defaults, and which can be set.
func TestGatesOfMinors(t *testing.T) {
	for _, m := range selectedMinors(t) {
		t.Run(m.String(), func(t *testing.T) {
			features := kubeversion.For(m)
			known := startOracle(t, m).gates(t, gateNames())
			for _, gate := range kubeversion.Gates() {
				theirs, exists := known[string(gate)]
				if settable := exists && !theirs.Locked; settable != features.Settable(gate) {
					t.Errorf("%s: settable is %t, in-tree %t", gate, features.Settable(gate), settable)
				}
				// 1.32.0 was released with this gate on; later patches of 1.32
				// have it off, and so do we.
				if m == 32 && gate == kubeversion.ServiceAccountNodeAudienceRestriction {
					continue
				}
				if exists && theirs.Enabled != features.Enabled(gate) {
					t.Errorf("%s: default is %t, in-tree %t", gate, features.Enabled(gate), theirs.Enabled)
				}
			}
		})
	}
}

func gateNames() []string {
	var names []string
	for _, gate := range kubeversion.Gates() {
		names = append(names, string(gate))
	}
	return names
}

const minorsVariable = "CONFORMANCE_MINORS"

func minorsGiven() bool { return os.Getenv(minorsVariable) != "" }

// selectedMinors returns all minors in a run with them, or the minors of
// CONFORMANCE_MINORS. Otherwise the test is skipped, as the oracles take long to
// build.
func selectedMinors(t *testing.T) []kubeversion.Minor {
	t.Helper()
	text := os.Getenv(minorsVariable)
	switch {
	case text == "" && mode(t) == "minors":
		return kubeversion.Minors()
	case text == "":
		t.Skip("CONFORMANCE is not minors, and CONFORMANCE_MINORS is not set")
	}
	var minors []kubeversion.Minor
	for _, item := range strings.Split(text, ",") {
		m, err := kubeversion.Parse(item)
		if err != nil {
			t.Fatalf("CONFORMANCE_MINORS: %v", err)
		}
		minors = append(minors, m)
	}
	return minors
}

func minorTrial(t *testing.T, o oracle, m kubeversion.Minor, seed uint64) *trial {
	t.Helper()
	features, gates := randomFeatures(t, rand.New(rand.NewPCG(seed, 1)), m)
	return minorTrialWith(t, o, seed, features, gates)
}

// minorTrialWith shows ours a cluster of the newest minor, as a snapshot may have it,
// and theirs the objects of it that reach the graph of an API server of the minor.
func minorTrialWith(t *testing.T, o oracle, seed uint64, features kubeversion.Features, gates map[string]bool) *trial {
	t.Helper()
	c := generate.New(seed, generate.RandomOptions(seed))
	o.load(t, served(c, features), gates)
	return &trial{
		name: "minor", seed: seed, features: features, gates: gates, cluster: c,
		ours:   nodeauthz.New(graphOf(c), features),
		theirs: o.decide,
		rebuild: func(t *testing.T, c *generate.Cluster, r generate.Request) (ours, theirs protocol.Decision) {
			o.load(t, served(c, features), gates)
			answer := nodeauthz.New(graphOf(c), features).Decide(requestOf(&r))
			return ourDecision(answer.Decision), o.decide(t, []generate.Request{r})[0]
		},
	}
}
