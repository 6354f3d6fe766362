package replay

import (
	"bytes"
	"container/heap"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// rank is the hash of a key. It decides which keys a full set keeps.
type rank [16]byte

// rankOf returns the rank of a key with the given parts. Clients choose what is hashed, so
// the hash must not have collisions that they can find.
func rankOf(parts ...string) rank {
	var text []byte
	for _, part := range parts {
		text = binary.AppendUvarint(text, uint64(len(part)))
		text = append(text, part...)
	}
	sum := sha256.Sum256(text)
	return rank(sum[:16])
}

// MarshalText returns the rank in hexadecimal digits.
func (r rank) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, r[:]), nil }

// UnmarshalText reads what MarshalText returns.
func (r *rank) UnmarshalText(text []byte) error {
	decoded, err := hex.DecodeString(string(text))
	if err != nil || len(decoded) != len(r) {
		return fmt.Errorf("want %d hexadecimal digits, got %q", 2*len(r), text)
	}
	copy(r[:], decoded)
	return nil
}

// smallest is a bounded map that keeps the keys of the lowest ranks. Which keys it keeps
// does not depend on their order. A key that is dropped is never kept again, so that the
// value of a kept key has everything that was added for it, also in a union of several sets.
type smallest[K comparable, V any] struct {
	most int
	rank func(K) rank
	kept map[K]*V
	// heap has the keys with the highest rank at the top. It is made when the map is full.
	heap rankedKeys[K]
	// dropped, if set, is called for a key that makes room for another one.
	dropped func(K, *V)
}

func newSmallest[K comparable, V any](most int, rank func(K) rank, dropped func(K, *V)) *smallest[K, V] {
	return &smallest[K, V]{most: most, rank: rank, kept: map[K]*V{}, dropped: dropped}
}

// find returns the value of a key; nil if it is not kept.
func (s *smallest[K, V]) find(key K) *V { return s.kept[key] }

// accepts reports whether a new key would be kept.
func (s *smallest[K, V]) accepts(key K) bool {
	if len(s.kept) < s.most {
		return true
	}
	s.fill()
	r := s.rank(key)
	return bytes.Compare(r[:], s.heap[0].rank[:]) < 0
}

// get returns the value of a key, new if necessary; nil if the key is not kept.
func (s *smallest[K, V]) get(key K) *V {
	if v := s.kept[key]; v != nil {
		return v
	}
	if !s.accepts(key) {
		return nil
	}
	if len(s.kept) >= s.most {
		last := s.heap[0].key
		value := s.kept[last]
		delete(s.kept, last)
		s.heap[0] = rankedKey[K]{key, s.rank(key)}
		heap.Fix(&s.heap, 0)
		if s.dropped != nil {
			s.dropped(last, value)
		}
	}
	v := new(V)
	s.kept[key] = v
	return v
}

// fill makes the heap of a full map.
func (s *smallest[K, V]) fill() {
	if s.heap != nil {
		return
	}
	s.heap = make(rankedKeys[K], 0, len(s.kept))
	for key := range s.kept {
		s.heap = append(s.heap, rankedKey[K]{key, s.rank(key)})
	}
	heap.Init(&s.heap)
}

type rankedKey[K comparable] struct {
	key  K
	rank rank
}

// rankedKeys is a heap of keys.
type rankedKeys[K comparable] []rankedKey[K]

func (h rankedKeys[K]) Len() int           { return len(h) }
func (h rankedKeys[K]) Less(i, j int) bool { return bytes.Compare(h[i].rank[:], h[j].rank[:]) > 0 }
func (h rankedKeys[K]) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push is never called: the length of the heap does not change.
func (h *rankedKeys[K]) Push(key any) { *h = append(*h, key.(rankedKey[K])) }

// Pop is never called either.
func (h *rankedKeys[K]) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
