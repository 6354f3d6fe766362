package review

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// plainText is what is left to read of a JSON text that is written as API servers write most: in ASCII, without
// escapes in strings and without spaces between tokens. So a string is the text between two quotes. Reading
// anything else fails; the default decoder must decode such a text. After a failure, results mean nothing.
type plainText struct {
	rest   string
	failed bool
}

// isPlain reports whether a text is ASCII without escapes and control characters.
func isPlain(text []byte) bool {
	if bytes.IndexByte(text, '\\') >= 0 {
		return false
	}
	const word, high, spaces = 8, 0x8080808080808080, 0x2020202020202020
	for ; len(text) >= word; text = text[word:] {
		w := binary.LittleEndian.Uint64(text)
		// A byte below the space borrows, and sets its highest bit.
		if (w|(w-spaces))&high != 0 {
			return false
		}
	}
	for _, b := range text {
		if b < ' ' || b >= 0x80 {
			return false
		}
	}
	return true
}

// must fails unless a condition holds.
func (p *plainText) must(hold bool) { p.failed = p.failed || !hold }

// next reads a token if it comes next.
func (p *plainText) next(token string) bool {
	rest, found := strings.CutPrefix(p.rest, token)
	p.rest = rest
	return found
}

// expect fails unless one of the tokens comes next.
func (p *plainText) expect(tokens ...string) {
	for _, token := range tokens {
		if p.next(token) {
			return
		}
	}
	p.must(false)
}

func (p *plainText) text() string {
	p.expect(`"`)
	value, rest, found := strings.Cut(p.rest, `"`)
	p.must(found)
	p.rest = rest
	return value
}

// texts appends the strings of a list.
func (p *plainText) texts(to []string) []string {
	p.list(func() { to = append(to, p.text()) })
	return to
}

// list calls entry for each entry of a list, to read it.
func (p *plainText) list(entry func()) { p.each("[", "]", entry) }

// object calls value for each name in an object, to read the value.
func (p *plainText) object(value func(name string)) {
	p.each("{", "}", func() {
		name := p.text()
		p.expect(":")
		if !p.failed {
			value(name)
		}
	})
}

func (p *plainText) each(begin, end string, read func()) {
	p.expect(begin)
	if p.failed || p.next(end) {
		return
	}
	for read(); !p.failed && !p.next(end); read() {
		p.expect(",")
	}
}
