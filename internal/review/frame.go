package review

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// MaxDocument is the size in bytes beyond which a document is refused. An
// AdmissionReview may hold an object twice, as it was and as it will be, each
// from a request of up to 3 MiB, the limit of kube-apiserver, in which it writes
// every '<', '>' and '&' with six bytes.
const MaxDocument = 40 << 20

// MaxDepth is how deep objects and lists may lie in one another. Objects of the
// API that nodes write lie less than 20 deep.
const MaxDepth = 256

// span is where one document stands in a buffer.
type span struct{ start, end int }

// framer finds the ends of concatenated JSON objects without decoding them. It
// keeps its state across calls, so that a document may arrive in pieces.
type framer struct {
	open    []byte // closing brackets that are still due
	quoted  bool
	escaped bool
	start   int // of the document that has begun, or that is broken
}

var (
	errNotObject  = errors.New("want a JSON object")
	errIncomplete = errors.New("the input ends within the document")
	errTooLarge   = fmt.Errorf("larger than %d bytes", MaxDocument)
	errTooDeep    = fmt.Errorf("nested more than %d deep", MaxDepth)
)

// checkLimits refuses what is too large, and what is nested too deep.
func checkLimits(document []byte) error {
	if len(document) > MaxDocument {
		return errTooLarge
	}
	if bytes.Count(document, []byte{'{'})+bytes.Count(document, []byte{'['}) <= MaxDepth {
		return nil
	}
	// What else is wrong with the document is for its decoder to say.
	if _, err := new(framer).scan(document, 0, nil); errors.Is(err, errTooDeep) {
		return err
	}
	return nil
}

// scan appends to spans the documents that end in b[from:]. An error stands for
// the document that begins at f.start.
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

// step takes a byte that means something and reports whether it ends a
// document.
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

// place is a set of bytes that mean nothing where they stand.
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

// skip returns the index of the first byte from i on that means something.
func skip(b []byte, i int, p *place) int {
	for i < len(b) && p[b[i]] {
		i++
	}
	return i
}

// finish says what is wrong when the input of n bytes ends with readErr.
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
