package review

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// MaxDocument is the maximum size of a document in bytes. An AdmissionReview may hold the old
// and the new object, each from a request of at most 3 MiB, the limit of kube-apiserver,
// which encodes each '<', '>' and '&' with six bytes.
const MaxDocument = 40 << 20

// MaxDepth is the maximum nesting depth of objects and lists. API objects that nodes write
// are nested less than 20 deep.
const MaxDepth = 256

// span is the position of a document in a buffer.
type span struct{ start, end int }

// framer finds the ends of concatenated JSON objects without decoding them. It
// keeps its state across calls, so that a document may arrive in pieces.
type framer struct {
	open    []byte // expected closing brackets
	quoted  bool
	escaped bool
	start   int // of the current document
}

var (
	errNotObject  = errors.New("want a JSON object")
	errIncomplete = errors.New("the input ends within the document")
	errTooLarge   = fmt.Errorf("larger than %d bytes", MaxDocument)
	errTooDeep    = fmt.Errorf("nested more than %d deep", MaxDepth)
)

// checkLimits refuses documents that are too large or nested too deep.
func checkLimits(document []byte) error {
	if len(document) > MaxDocument {
		return errTooLarge
	}
	if bytes.Count(document, []byte{'{'})+bytes.Count(document, []byte{'['}) <= MaxDepth {
		return nil
	}
	// The decoder reports all other errors.
	if _, err := new(framer).scan(document, 0, nil); errors.Is(err, errTooDeep) {
		return err
	}
	return nil
}

// scan appends the documents that end in b[from:] to spans. An error is about the document
// that begins at f.start.
func (f *framer) scan(b []byte, from int, spans []span) ([]span, error) {
	for i := from; i < len(b); i++ {
		switch {
		case f.escaped:
			f.escaped = false
			continue
		case f.quoted:
			i = skip(b, i, inString)
		case len(f.open) > 0:
			i = skip(b, i, inObject)
		default:
			if i = skip(b, i, outside); i < len(b) {
				if f.start = i; b[i] != '{' {
					return spans, errNotObject
				}
			}
		}
		if i == len(b) {
			break
		}
		ended, err := f.step(b[i])
		if err != nil {
			return spans, err
		}
		if ended {
			if i+1-f.start > MaxDocument {
				return spans, errTooLarge
			}
			spans = append(spans, span{f.start, i + 1})
		}
	}
	if len(f.open) > 0 && len(b)-f.start > MaxDocument {
		return spans, errTooLarge
	}
	return spans, nil
}

// step processes a significant byte and reports whether it ends a document.
func (f *framer) step(c byte) (ended bool, err error) {
	switch c {
	case '"':
		f.quoted = !f.quoted
	case '\\':
		f.escaped = true
	case '\n':
		return false, errors.New("line break within a string")
	case '{', '[':
		if len(f.open) == MaxDepth {
			return false, errTooDeep
		}
		f.open = append(f.open, c+2) // '{'+2 is '}', '['+2 is ']'
	case '}', ']':
		last := len(f.open) - 1
		if f.open[last] != c {
			return false, fmt.Errorf("unexpected %q, want %q", c, f.open[last])
		}
		f.open = f.open[:last]
		return last == 0, nil
	}
	return false, nil
}

// place is the set of insignificant bytes at a position.
type place [256]bool

var (
	outside  = meaningless(func(c byte) bool { return strings.IndexByte(" \t\r\n", c) >= 0 })
	inObject = meaningless(func(c byte) bool { return strings.IndexByte(`{}[]"`, c) < 0 })
	inString = meaningless(func(c byte) bool { return strings.IndexByte("\"\\\n", c) < 0 })
)

func meaningless(is func(byte) bool) *place {
	var p place
	for c := range p {
		p[c] = is(byte(c))
	}
	return &p
}

// skip returns the index of the first significant byte from i on.
func skip(b []byte, i int, p *place) int {
	for i < len(b) && p[b[i]] {
		i++
	}
	return i
}

// finish returns the error of an input of n bytes that ends with readErr.
func (f *framer) finish(n int, readErr error) error {
	inside := len(f.open) > 0
	if !inside {
		f.start = n
	}
	switch {
	case !errors.Is(readErr, io.EOF):
		return readErr
	case inside:
		return errIncomplete
	}
	return nil
}

// lines counts the line breaks in b.
func lines(b []byte) int { return bytes.Count(b, []byte{'\n'}) }
