package review

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
)

// readExtra reads the extra values of a user. It fails if one of them contains what ends an object. What begins with an
// object that is known is that object, whatever follows.
func readExtra(p *plainText, known *extraCache) map[string][]string {
	_, rest, found := strings.Cut(p.rest, "]}")
	text := p.rest[:len(p.rest)-len(rest)]
	if p.rest = rest; !found {
		p.must(false)
		return nil
	}
	if values := known.get(text); values != nil {
		return values
	}
	text = strings.Clone(text) // it may be kept for longer than the review
	values := splitExtra(text)
	p.must(values != nil)
	known.put(text, values)
	return values
}

// splitExtra returns the parts of a text; nil for one that is not plain. Lists share memory: API servers send
// five or six names with one value each.
func splitExtra(text string) map[string][]string {
	p, values, all := plainText{rest: text}, map[string][]string{}, make([]string, 0, 6)
	p.object(func(name string) {
		from := len(all)
		all = p.texts(all)
		values[name] = all[from:len(all):len(all)]
	})
	if p.failed || p.rest != "" {
		return nil
	}
	return values
}

// extraCache keeps extra values that were decoded, by their text. A user sends the same ones with each request, as
// long as a token is valid. To decode them takes as long as to decode the rest of a review.
//
// Each text belongs in one slot, and replaces the text that is there. So reading takes no lock, nothing expires, and
// no text keeps others out for long. Whoever finds values has sent the text that they were decoded from.
type extraCache struct {
	seed  maphash.Seed
	slots [extraSlots]atomic.Pointer[keptExtra]
}

// keptExtra is never changed.
type keptExtra struct {
	text   string
	values map[string][]string
}

const (
	// extraSlots is the number of tokens that are kept at most. Each takes about a kilobyte, and never more than three.
	extraSlots = 8192
	// maxKeptExtra is the maximum size of a text that is kept, in bytes, and maxKeptStrings the maximum number of its
	// names and values.
	maxKeptExtra   = 1 << 10
	maxKeptStrings = 16
)

func newExtraCache() *extraCache { return &extraCache{seed: maphash.MakeSeed()} }

// get returns nil for values that are not kept. A nil cache keeps none.
func (c *extraCache) get(text string) map[string][]string {
	if c == nil || len(text) > maxKeptExtra {
		return nil
	}
	if kept := c.slot(text).Load(); kept != nil && kept.text == text {
		return kept.values
	}
	return nil
}

// put keeps the values of a text, unless they are larger than those that API servers send.
func (c *extraCache) put(text string, values map[string][]string) {
	if c != nil && values != nil && len(text) <= maxKeptExtra && strings.Count(text, `"`) <= 2*maxKeptStrings {
		c.slot(text).Store(&keptExtra{text, values})
	}
}

func (c *extraCache) slot(text string) *atomic.Pointer[keptExtra] {
	return &c.slots[maphash.String(c.seed, text)%extraSlots]
}
