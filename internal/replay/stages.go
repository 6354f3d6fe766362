package replay

import (
	"strings"

	"github.com/node-authorizer/node-authorizer/internal/auditlog"
)

// maxOpen is how many requests of which one answer is missing are remembered at least,
// and half of how many at most.
const maxOpen = 1 << 18

// stages remembers requests of which one of two answers has been counted, so that the
// other is not, whichever of them is read first: files may come in any order. When they
// are too many, the oldest are forgotten, and may count twice.
type stages struct {
	recent, older map[uint64]balance
	// forgotStart and forgotEnd are true once a request was forgotten whose end, or
	// whose start, may still be read.
	forgotStart, forgotEnd bool
	// doubtful is how many requests were counted that may have been counted before.
	doubtful int
}

// balance is how many more starts than ends of requests were read. Clients may choose
// the ids of their requests, so that several go by one key.
type balance int32

func newStages() *stages { return &stages{recent: map[uint64]balance{}} }

// counted reports whether the request was counted before, and notes that it is now.
// Requests that take long have two answers, of which last is the second.
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

// takesLong reports whether kube-apiserver notes the beginning of the answer to a
// request (ResponseStarted) beside its end.
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
