package instances

import (
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
)

// memory is an LRU cache of answers, each with an expiry.
type memory[V any] struct {
	now     func() time.Time
	answers *cache.LRUExpireCache
}

func newMemory[V any](size int, now func() time.Time) *memory[V] {
	return &memory[V]{now, cache.NewLRUExpireCacheWithClock(size, clock(now))}
}

// clock adapts a function to cache.Clock.
type clock func() time.Time

// Now implements cache.Clock.
func (c clock) Now() time.Time { return c() }

func (m *memory[V]) get(key string) (V, bool) {
	value, ok := m.answers.Get(key)
	if !ok {
		return *new(V), false
	}
	return value.(V), true
}

func (m *memory[V]) keep(key string, value V, until time.Time) {
	if left := until.Sub(m.now()); left > 0 {
		m.answers.Add(key, value, left)
	}
}
