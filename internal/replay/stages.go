package replay

import (
	"strings"

	"github.com/node-authorizer/node-authorizer/internal/auditlog"
)

// maxOpen is the number of requests with one missing stage that are remembered at least. At
// most twice as many are remembered.
const maxOpen = 1 << 18

// stages remembers requests of which one of two stages was counted, so that the other stage
// is not counted too. Either stage may be read first, because files may come in any order.
// If there are too many, the oldest requests are forgotten and may be counted twice.
type stages struct {
	recent, older map[uint64]balance
	// forgotStart and forgotEnd are true after a request was forgotten whose end, or
	// whose start, may still be read.
	forgotStart, forgotEnd bool
	// doubtful is the number of requests that may have been counted twice.
	doubtful int
}

// balance is the number of starts minus the number of ends that were read. Several requests
// may have the same key, because clients may choose the audit id.
type balance int32

func newStages() *stages { return &stages{recent: map[uint64]balance{}} }

// counted reports whether the request was counted before, and records that it is counted
// now. Long-running requests have two stages with a response; last marks the second.
func (s *stages) counted(key uint64, last, long bool) bool {
	step := balance(1)
	if last {
		step = -1
	}
	for _, open := range []map[uint64]balance{s.recent, s.older} {
		was, found := open[key]
		if !found {
			continue
		}
		matches := was > 0 == last
		if !matches && last && !long {
			return false
		}
		if open[key] = was + step; was+step == 0 {
			delete(open, key)
		}
		return matches
	}
	if last && !long {
		return false
	}
	if last && s.forgotStart || !last && s.forgotEnd {
		s.doubtful++
	}
	if len(s.recent) >= maxOpen {
		s.forget()
	}
	s.recent[key] = step
	return false
}

// forget drops the older half.
func (s *stages) forget() {
	for _, open := range s.older {
		s.forgotStart = s.forgotStart || open > 0
		s.forgotEnd = s.forgotEnd || open < 0
	}
	s.recent, s.older = map[uint64]balance{}, s.recent
}

// takesLong reports whether kube-apiserver logs the stage ResponseStarted for a request.
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
