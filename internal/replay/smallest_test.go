package replay

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
)

// counts is a bounded count of keys; what is dropped is counted too.
type counts struct {
	*smallest[string, int]
	dropped int
}

func newCounts(most int) *counts {
	c := &counts{}
	c.smallest = newSmallest(most, func(key string) rank { return rankOf(key) }, func(_ string, n *int) { c.dropped += *n })
	return c
}

func (c *counts) add(key string, n int) {
	if v := c.get(key); v != nil {
		*v += n
		return
	}
	c.dropped += n
}

func (c *counts) values() map[string]int {
	all := map[string]int{}
	for key, n := range c.kept {
		all[key] = *n
	}
	return all
}

func TestFullSetsOfPartsAddUpToThatOfTheWhole(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 3))
		most := 1 + random.IntN(20)
		whole, parts := newCounts(most), []*counts{newCounts(most), newCounts(most), newCounts(most)}
		for range random.IntN(300) {
			key := fmt.Sprint(random.IntN(40))
			whole.add(key, 1)
			parts[random.IntN(len(parts))].add(key, 1)
		}
		merged := newCounts(most)
		for _, p := range parts {
			for key, n := range p.values() {
				merged.add(key, n)
			}
			merged.dropped += p.dropped
		}
		if len(merged.kept) > most || !maps.Equal(merged.values(), whole.values()) || merged.dropped != whole.dropped {
			t.Fatalf("seed %d: got %v and %d dropped, want %v and %d",
				seed, merged.values(), merged.dropped, whole.values(), whole.dropped)
		}
	}
}

func TestRefusalsWithoutACaveatAreKeptFirst(t *testing.T) {
	keep := newSmallest[listedKey, Listed](2, listedKey.rank, nil)
	for i := range 50 {
		d := distinct{name: fmt.Sprint(i)}
		if i%25 != 0 {
			d.caveat = ObjectNotInState
		}
		if l := keep.get(listedKey{request: d.hash()}); l != nil {
			l.Refusal.Caveat = d.caveat
		}
	}
	for _, l := range keep.kept {
		if l.Refusal.Caveat != "" {
			t.Error("a refusal with a caveat replaced one without")
		}
	}
}
