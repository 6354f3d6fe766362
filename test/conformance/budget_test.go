package conformance

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// fixedSeeds are always run, before the fresh seed.
var fixedSeeds = []uint64{1, 2, 3, 5, 8, 13, 21, 34, 55, 89}

// Sizes of a run: the number of clusters, of questions about each, and of writes to each
// of as many states.
const (
	shortClusters, shortRequests, shortWrites = 60, 2000, 1000
	fullClusters, fullRequests, fullWrites    = 200, 5000, 3000
)

// versionsDocument is the file with the differences that a run with all minors writes.
const versionsDocument = "../../docs/evidence/kubernetes-versions.md"

// mode is "" for the short run, "full", or "minors" for a full run that
// includes the older minors.
func mode(t *testing.T) string {
	t.Helper()
	m := os.Getenv("CONFORMANCE")
	if m != "" && m != "full" && m != "minors" {
		t.Fatalf("CONFORMANCE=%q: want full or minors", m)
	}
	return m
}

// budget is the size of a run.
type budget struct {
	clusters, requests, writes int
	fresh                      uint64
}

// readBudget reads the size of the run from the environment and prints the
// fresh seed.
func readBudget(t *testing.T) budget {
	t.Helper()
	clusters, requests, writes := shortClusters, shortRequests, shortWrites
	if mode(t) != "" {
		clusters, requests, writes = fullClusters, fullRequests, fullWrites
	}
	b := budget{
		clusters: intFromEnv(t, "CONFORMANCE_CLUSTERS", clusters),
		requests: intFromEnv(t, "CONFORMANCE_REQUESTS", requests),
		writes:   intFromEnv(t, "CONFORMANCE_WRITES", writes),
		fresh:    rand.Uint64(),
	}
	if text := os.Getenv("CONFORMANCE_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("CONFORMANCE_SEED: %v", err)
		}
		b.fresh = seed
	}
	t.Logf("CONFORMANCE_SEED=%d", b.fresh)
	return b
}

func intFromEnv(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q is not a positive number", name, text)
	}
	return n
}

// seeds returns one seed for each of n clusters: the fixed ones, then ones
// drawn from the fresh seed.
func (b budget) seeds(n int) []uint64 {
	r := rand.New(rand.NewPCG(b.fresh, 0))
	seeds := make([]uint64, n)
	for i := range seeds {
		if i < len(fixedSeeds) && i < (n+1)/2 {
			seeds[i] = fixedSeeds[i]
			continue
		}
		seeds[i] = r.Uint64()
	}
	return seeds
}
