package conformance

import (
	"fmt"
	"testing"

	"github.com/node-authorizer/node-authorizer/kubeversion"
)

// position is a feature gate that is set, with the resulting gates.
type position struct {
	name     string
	features kubeversion.Features
	gates    map[string]bool
}

// positions returns the defaults of a minor, and each settable gate in both positions,
// with all others at their defaults.
func positions(t *testing.T, m kubeversion.Minor) []position {
	t.Helper()
	defaults := kubeversion.For(m)
	all := []position{{"defaults", defaults, settings(defaults)}}
	for _, gate := range kubeversion.Gates() {
		if !defaults.Settable(gate) {
			continue
		}
		for _, on := range []bool{false, true} {
			features, err := defaults.With(gate, on)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, position{fmt.Sprintf("%s=%t", gate, on), features, settings(features)})
		}
	}
	return all
}

// gateMinors returns the newest minor, and those that the run is for.
func gateMinors(t *testing.T) []kubeversion.Minor {
	t.Helper()
	if mode(t) == "minors" || minorsGiven() {
		return selectedMinors(t)
	}
	return []kubeversion.Minor{kubeversion.Latest}
}

// gateBudget is the number of clusters or states for each position of each gate: a
// twentieth of the number for a run, because there are up to twenty positions.
func (b budget) gateBudget() int { return max(b.clusters/20, 2) }

// TestEveryGateInBothPositions puts the same questions to ours and to the in-tree
// authorizer of each minor, once for each position of each gate.
func TestEveryGateInBothPositions(t *testing.T) {
	b := readBudget(t)
	for _, m := range gateMinors(t) {
		t.Run(m.String(), func(t *testing.T) {
			o := startOracle(t, m)
			for _, p := range positions(t, m) {
				t.Run(p.name, func(t *testing.T) {
					counts, divergences := make(shares), 0
					for _, seed := range b.seeds(b.gateBudget()) {
						divergences += positionTrial(t, o, seed, p).run(t, b.requests, counts)
					}
					t.Logf("%d questions, %d divergences", counts.total(), divergences)
				})
			}
		})
	}
}

func positionTrial(t *testing.T, o oracle, seed uint64, p position) *trial {
	t.Helper()
	if p.features.Minor() == kubeversion.Latest {
		return latestTrialWith(t, seed, p.features, p.gates)
	}
	return minorTrialWith(t, o, seed, p.features, p.gates)
}

// TestWritesWithEveryGateInBothPositions does the same with writes and the in-tree
// NodeRestriction.
func TestWritesWithEveryGateInBothPositions(t *testing.T) {
	b := readBudget(t)
	for _, m := range gateMinors(t) {
		t.Run(m.String(), func(t *testing.T) {
			o := startOracle(t, m)
			for _, p := range positions(t, m) {
				t.Run(p.name, func(t *testing.T) {
					writes := max(b.writes/4, 1)
					if m == kubeversion.Latest {
						covered := newWriteCoverage()
						for _, seed := range b.seeds(b.gateBudget()) {
							latestWritesWith(t, seed, p.features, p.gates).run(t, writes, covered)
						}
						t.Logf("%d writes, %d divergences", covered.total, covered.divergences)
						return
					}
					covered := newMinorCoverage()
					for _, seed := range b.seeds(b.gateBudget()) {
						newMinorWritesWith(t, o.(*process), seed, p.features, p.gates).run(t, writes, covered)
					}
					t.Logf("%d writes, %d divergences", covered.total, covered.divergences)
				})
			}
		})
	}
}
