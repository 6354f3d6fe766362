package replay

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"

	"github.com/node-authorizer/node-authorizer/internal/audit/auditlog"
)

const (
	// maxOpen is the number of requests with one missing stage that are remembered at
	// least. At most twice as many are remembered.
	maxOpen = 1 << 18
	// maxOpenDetailed is the same for requests that a report lists, which need more memory.
	maxOpenDetailed = 1 << 14
)

// stageKey is the same for the stages of one request.
type stageKey [16]byte

// hashed returns the hash of texts that clients choose, so it must not have collisions that they can find.
func hashed(parts ...string) stageKey {
	var text []byte
	for _, part := range parts {
		text = binary.AppendUvarint(text, uint64(len(part)))
		text = append(text, part...)
	}
	sum := sha256.Sum256(text)
	return stageKey(sum[:16])
}

// stages joins the two stages of long-running requests that have a response. A request counts
// with its start. An end without a start is pending: E is what it adds to the report, unless
// its start is read later. Files may come in any order.
//
// If too many requests lack a stage, the oldest ends are counted, and the oldest starts are
// forgotten. Their other stage may then count too.
type stages[E any] struct {
	recent, older generation[E]
	// most and mostDetailed are the bounds of a generation.
	most, mostDetailed int
	// count counts an end that is no longer pending.
	count func(E)
	// detailed reports whether an end needs much memory; nil for never.
	detailed func(E) bool
	// forgotStarts and forgotEnds are how many starts and ends were forgotten.
	forgotStarts, forgotEnds int
	// doubtful is the number of requests that may have been counted twice.
	doubtful int
}

// generation is the requests that were read in one stretch of the log. Several requests may
// have the same key, because clients may choose the audit id.
type generation[E any] struct {
	starts   map[stageKey]int
	ends     map[stageKey][]E
	size     int
	detailed int
}

func newGeneration[E any]() generation[E] {
	return generation[E]{starts: map[stageKey]int{}, ends: map[stageKey][]E{}}
}

func newStages[E any](count func(E), detailed func(E) bool) *stages[E] {
	return &stages[E]{
		recent: newGeneration[E](), older: newGeneration[E](), count: count, detailed: detailed,
		most: maxOpen, mostDetailed: maxOpenDetailed,
	}
}

// start records the first stage of a request. If its end is pending, that is dropped.
func (s *stages[E]) start(key stageKey) {
	if s.recent.dropEnd(key) || s.older.dropEnd(key) {
		return
	}
	if s.forgotEnds > 0 {
		s.doubtful++
	}
	s.makeRoom()
	s.recent.starts[key]++
	s.recent.size++
}

// end records the last stage of a request.
func (s *stages[E]) end(key stageKey, e E) {
	if s.recent.dropStart(key) || s.older.dropStart(key) {
		return
	}
	if s.forgotStarts > 0 {
		s.doubtful++
	}
	s.makeRoom()
	g := &s.recent
	g.ends[key] = append(g.ends[key], e)
	g.size++
	if s.detailed != nil && s.detailed(e) {
		g.detailed++
	}
}

func (s *stages[E]) makeRoom() {
	if s.recent.size < s.most && s.recent.detailed < s.mostDetailed {
		return
	}
	for _, n := range s.older.starts {
		s.forgotStarts += n
	}
	s.older.eachEnd(func(e E) {
		s.forgotEnds++
		s.count(e)
	})
	s.recent, s.older = newGeneration[E](), s.recent
}

// eachEnd calls f for every pending end.
func (s *stages[E]) eachEnd(f func(E)) {
	s.older.eachEnd(f)
	s.recent.eachEnd(f)
}

// unmatched returns how many stages were read without the other stage of their request. They were counted, or will be.
func (s *stages[E]) unmatched() (u Unmatched) {
	u = Unmatched{Starts: s.forgotStarts, Ends: s.forgotEnds}
	for _, g := range []generation[E]{s.older, s.recent} {
		for _, n := range g.starts {
			u.Starts += n
		}
	}
	s.eachEnd(func(E) { u.Ends++ })
	return u
}

func (g *generation[E]) eachEnd(f func(E)) {
	for _, ends := range g.ends {
		for _, e := range ends {
			f(e)
		}
	}
}

func (g *generation[E]) dropStart(key stageKey) bool {
	n := g.starts[key]
	switch n {
	case 0:
		return false
	case 1:
		delete(g.starts, key)
	default:
		g.starts[key] = n - 1
	}
	g.size--
	return true
}

func (g *generation[E]) dropEnd(key stageKey) bool {
	ends := g.ends[key]
	switch len(ends) {
	case 0:
		return false
	case 1:
		delete(g.ends, key)
	default:
		g.ends[key] = ends[:len(ends)-1]
	}
	g.size--
	return true
}

// takesLong reports whether kube-apiserver logs two stages with a response for a request.
// Requests of other kinds have one, which is ResponseStarted if authentication failed.
func takesLong(e *auditlog.Event) bool {
	switch e.Verb {
	case "watch", "proxy":
		return true
	}
	if e.Object == nil {
		return strings.HasPrefix(e.RequestURI, "/debug/pprof/")
	}
	switch e.Object.Subresource {
	case "attach", "exec", "proxy", "log", "portforward":
		return true
	}
	return false
}
