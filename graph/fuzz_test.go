package graph_test

import (
	"math/rand/v2"
	"testing"
)

// FuzzEvents applies sequences of changes to a graph and to a naive model and
// compares every answer.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("a graph of pods, claims, volumes and secrets"))
	f.Add([]byte{0, 0, 1, 2, 0, 0, 3, 1, 1, 2, 2, 1, 1, 4, 0, 1, 0, 1, 1, 0, 1, 1, 3, 0, 1})
	f.Fuzz(func(t *testing.T, data []byte) { run(t, data[:min(len(data), 1<<12)]) })
}

// TestHistoriesLeadToTheirState does the same with random sequences and fixed seeds.
func TestHistoriesLeadToTheirState(t *testing.T) {
	histories := uint64(300)
	if testing.Short() {
		histories = 30
	}
	for seed := range histories {
		random := rand.New(rand.NewPCG(seed, 1))
		data := make([]byte, 100+random.IntN(1500))
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		run(t, data)
	}
}
