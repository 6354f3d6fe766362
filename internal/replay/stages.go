package replay

// maxOpen is how many requests that take long are remembered at least, and half of how
// many at most.
const maxOpen = 1 << 18

// stages remembers requests of which the first of two answers has been counted, so
// that the second is not. When they are too many, the oldest are forgotten, and count
// twice.
type stages struct{ recent, older map[uint64]struct{} }

func newStages() *stages { return &stages{recent: map[uint64]struct{}{}} }

// counted reports whether the request was counted before, and notes that it is now.
func (s *stages) counted(key uint64, last bool) bool {
	for _, open := range []map[uint64]struct{}{s.recent, s.older} {
		if _, found := open[key]; found {
			if last {
				delete(open, key)
			}
			return true
		}
	}
	if last {
		return false
	}
	if len(s.recent) >= maxOpen {
		s.recent, s.older = map[uint64]struct{}{}, s.recent
	}
	s.recent[key] = struct{}{}
	return false
}
