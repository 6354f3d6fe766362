package snapshot

import (
	"encoding/binary"
	"errors"
	"strings"
)

var errShort = errors.New("ends early")

// cursor reads numbers and texts of a decompressed frame. After the first error it returns zero values.
type cursor struct {
	rest []byte
	err  error
}

func (c *cursor) fail(err error) {
	if c.err == nil && err != nil {
		c.err, c.rest = err, nil
	}
}

// number reads a number of at most limit.
func (c *cursor) number(limit uint64) int {
	if len(c.rest) > 0 && c.rest[0] < 0x80 && uint64(c.rest[0]) <= limit {
		n := int(c.rest[0]) // the usual case
		c.rest = c.rest[1:]
		return n
	}
	n, size := binary.Uvarint(c.rest)
	switch {
	case size <= 0:
		c.fail(errShort)
		return 0
	case n > limit:
		c.fail(errors.New("has a number that is too large"))
		return 0
	}
	c.rest = c.rest[size:]
	return int(n)
}

// bytes reads that many bytes.
func (c *cursor) bytes(n int) []byte {
	if n > len(c.rest) {
		c.fail(errShort)
		return nil
	}
	taken := c.rest[:n:n]
	c.rest = c.rest[n:]
	return taken
}

// sized reads a length and that many bytes.
func (c *cursor) sized() []byte { return c.bytes(c.number(uint64(len(c.rest)))) }

// end returns the first error. What is left over is an error too.
func (c *cursor) end() error {
	if c.err == nil && len(c.rest) > 0 {
		return errors.New("has data after its end")
	}
	return c.err
}

func appendNumber(to []byte, n int) []byte { return binary.AppendUvarint(to, uint64(n)) }

func appendSized(to, value []byte) []byte { return append(appendNumber(to, len(value)), value...) }

// appendText appends a text without what it shares with the one before.
func appendText(to []byte, before, text string) []byte {
	shared := 0
	for shared < min(len(before), len(text)) && before[shared] == text[shared] {
		shared++
	}
	to = appendNumber(to, shared)
	to = appendNumber(to, len(text)-shared)
	return append(to, text[shared:]...)
}

// texts appends n texts, which are not longer than limit together. They share memory.
func (c *cursor) texts(n, limit int, into []string) []string {
	ahead := *c
	total := ahead.lengthOf(n, limit)
	if c.fail(ahead.err); c.err != nil {
		return into
	}
	var all strings.Builder
	all.Grow(total)
	before := ""
	for range n {
		shared, start := c.number(uint64(len(before))), all.Len()
		all.WriteString(before[:shared])
		all.Write(c.sized())
		before = all.String()[start:]
		into = append(into, before)
	}
	return into
}

// lengthOf reads n texts and returns their length.
func (c *cursor) lengthOf(n, limit int) int {
	total, before := 0, 0
	for range n {
		before = c.number(uint64(before)) + len(c.sized())
		if total += before; total > limit {
			c.fail(errTooLarge)
		}
		if c.err != nil {
			return 0
		}
	}
	return total
}
