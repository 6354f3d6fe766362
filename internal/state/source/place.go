package source

import "github.com/node-authorizer/node-authorizer/verdict"

// place is where an object is in a file.
type place struct {
	file string
	line int
}

func (s *State) notePlace(o verdict.Object, file string, line int) {
	if s.places == nil {
		s.places = map[verdict.Object]place{}
	}
	s.places[o] = place{file, line}
}

// Place returns where an object is in the manifests that the state was read from; empty if it is in none,
// or if places were not asked for.
func (s *State) Place(o verdict.Object) (file string, line int) {
	p := s.places[o]
	return p.file, p.line
}
