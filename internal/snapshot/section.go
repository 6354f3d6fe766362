package snapshot

import (
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Section has the objects of one kind, by namespace and name.
type Section struct {
	Kind    string
	Objects int

	file   *File
	names  frame
	shapes []counted
	blocks []blockPlace

	mu sync.Mutex
	// known are the decompressed names; nil until they are needed.
	known []string
	// open are the shapes of some frames, by their position.
	open map[int][][]byte
}

// openFrames is how many frames of shapes are kept. Objects that are next to each other have few shapes.
const openFrames = 4

// Names returns the namespaces and nodes of the section. Rows refer to them by their position.
func (s *Section) Names() ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known != nil {
		return s.known, nil
	}
	raw, err := s.file.decompress(s.names, nil)
	if err != nil {
		return nil, s.damaged("names", err)
	}
	c := &cursor{rest: raw}
	n := c.number(min(maxNames, uint64(len(raw))))
	names := c.texts(n, freeExpansion, make([]string, 0, n))
	if err := c.end(); err != nil {
		return nil, s.damaged("names", err)
	}
	s.known = names
	return names, nil
}

func (s *Section) damaged(place string, err error) error {
	return damaged(fmt.Sprintf("%s of kind %s", place, s.Kind), "%v", err)
}

// shape returns the text of a shape.
func (s *Section) shape(n int) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := 0
	for at, f := range s.shapes {
		if n < first+f.n {
			texts, err := s.openShapes(at)
			if err != nil {
				return nil, err
			}
			return texts[n-first], nil
		}
		first += f.n
	}
	return nil, s.damaged("a block", errors.New("has an object of an unknown shape"))
}

// openShapes returns the shapes of a frame.
func (s *Section) openShapes(at int) ([][]byte, error) {
	if texts, ok := s.open[at]; ok {
		return texts, nil
	}
	raw, err := s.file.decompress(s.shapes[at].frame, nil)
	if err != nil {
		return nil, s.damaged("shapes", err)
	}
	c := &cursor{rest: raw}
	if s.shapes[at].n > len(raw) {
		return nil, s.damaged("shapes", errShort)
	}
	texts := make([][]byte, s.shapes[at].n)
	for i := range texts {
		texts[i] = c.sized()
	}
	if err := c.end(); err != nil {
		return nil, s.damaged("shapes", err)
	}
	if len(s.open) >= openFrames {
		for other := range s.open {
			delete(s.open, other)
			break
		}
	}
	if s.open == nil {
		s.open = map[int][][]byte{}
	}
	s.open[at] = texts
	return texts, nil
}

// Selection selects objects. An empty field stands for all of them.
type Selection struct{ Namespace, Name, Node string }

// blocksOf returns the positions of the blocks that may have objects of the selection.
func (s *Section) blocksOf(want Selection) []int {
	var at []int
	for i, b := range s.blocks {
		if b.mayHold(want) {
			at = append(at, i)
		}
	}
	return at
}

func (b *blockPlace) mayHold(want Selection) bool {
	switch {
	case want.Name == "":
		return want.Namespace == "" || b.first.namespace <= want.Namespace && want.Namespace <= b.last.namespace
	case want.Namespace == "" && b.first.namespace != b.last.namespace:
		return true // the name may be in any namespace
	case want.Namespace == "":
		return b.first.name <= want.Name && want.Name <= b.last.name
	}
	wanted := key{want.Namespace, want.Name}
	return b.first.compare(wanted) <= 0 && wanted.compare(b.last) <= 0
}

// Scan calls a function with each object of the selection, in their order, until it returns an error. A
// row is valid during the call only.
func (s *Section) Scan(want Selection, visit func(*Row) error) error {
	names, err := s.Names()
	if err != nil {
		return err
	}
	node := -1
	if want.Node != "" {
		if node = slices.Index(names, want.Node); node < 0 {
			return nil
		}
	}
	at := s.blocksOf(want)
	decoded, stop := make(chan *block, 1), make(chan struct{})
	spent := make(chan *block, 2)
	defer close(stop)
	spent <- newBlock(s, names)
	spent <- newBlock(s, names)
	go func() {
		defer close(decoded)
		for _, i := range at {
			var b *block
			select {
			case b = <-spent:
			case <-stop:
				return
			}
			b.decode(i, node)
			select {
			case decoded <- b:
			case <-stop:
				return
			}
		}
	}()
	for b := range decoded {
		if b.err != nil {
			return b.err
		}
		for i := range b.rows {
			if r := &b.rows[i]; r.in(want) {
				if err := visit(r); err != nil {
					return err
				}
			}
		}
		spent <- b
	}
	return nil
}
