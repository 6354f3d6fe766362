package identitydocument

import (
	"bytes"
	"errors"
)

// The ASN.1 tags of signed data (ITU-T X.690).
const (
	tagInteger     = 0x02
	tagOctetString = 0x04
	tagNull        = 0x05
	tagOID         = 0x06
	tagSequence    = 0x30
	tagSet         = 0x31
	tagContext0    = 0xa0
	constructed    = 0x20
)

// element is one value: its tag, its content, and all of it.
type element struct {
	tag          byte
	content, all []byte
}

// elements reads consecutive values. It accepts the BER that AWS's messages need, which
// is values of indefinite length, and otherwise DER: lengths in their shortest form, no
// tags of several bytes.
type elements struct {
	rest []byte
	// definite refuses indefinite lengths.
	definite bool
}

// maxNesting is the maximum nesting of values of indefinite length.
const maxNesting = 8

var (
	errTruncated  = errors.New("it ends in the middle of a value")
	errLength     = errors.New("a value has a length that is not in its shortest form or is too large")
	errIndefinite = errors.New("a value of indefinite length that must be definite")
	errTag        = errors.New("a value has a tag of several bytes")
	errNesting    = errors.New("values are nested too deep")
	errUnexpected = errors.New("an unexpected value")
	errTrailing   = errors.New("unexpected data after the last value")
)

func (e *elements) empty() bool { return len(e.rest) == 0 }

// next reads the next value.
func (e *elements) next() (element, error) { return e.nextAt(0) }

func (e *elements) nextAt(depth int) (element, error) {
	head, length, err := header(e.rest)
	if err != nil {
		return element{}, err
	}
	data := e.rest
	if length >= 0 {
		if length > len(data)-head {
			return element{}, errTruncated
		}
		e.rest = data[head+length:]
		return element{tag: data[0], content: data[head : head+length], all: data[:head+length]}, nil
	}
	switch {
	case e.definite || data[0]&constructed == 0:
		return element{}, errIndefinite
	case depth == maxNesting:
		return element{}, errNesting
	}
	inner := elements{rest: data[head:]}
	for !endOfContents(inner.rest) {
		if _, err := inner.nextAt(depth + 1); err != nil {
			return element{}, err
		}
	}
	end := len(data) - len(inner.rest)
	e.rest = data[end+2:]
	return element{tag: data[0], content: data[head:end], all: data[:end+2]}, nil
}

// header reads tag and length. The length is -1 if it is indefinite.
func header(data []byte) (head, length int, err error) {
	switch {
	case len(data) < 2:
		return 0, 0, errTruncated
	case data[0]&0x1f == 0x1f:
		return 0, 0, errTag
	case data[0] == 0:
		return 0, 0, errUnexpected
	case data[1] < 0x80:
		return 2, int(data[1]), nil
	case data[1] == 0x80:
		return 2, -1, nil
	}
	digits := int(data[1] & 0x7f)
	if digits > 3 {
		return 0, 0, errLength
	}
	if len(data) < 2+digits {
		return 0, 0, errTruncated
	}
	for _, digit := range data[2 : 2+digits] {
		length = length<<8 | int(digit)
	}
	if data[2] == 0 || length < 0x80 {
		return 0, 0, errLength
	}
	return 2 + digits, length, nil
}

func endOfContents(data []byte) bool { return len(data) >= 2 && data[0] == 0 && data[1] == 0 }

// want reads the next value, which must have a tag.
func (e *elements) want(tag byte) (element, error) {
	value, err := e.next()
	if err == nil && value.tag != tag {
		err = errUnexpected
	}
	return value, err
}

// into reads the next value, which must have a tag, and returns its content.
func (e *elements) into(tag byte) (elements, error) {
	value, err := e.want(tag)
	return elements{rest: value.content, definite: e.definite}, err
}

// only reads the next value, which must have a tag and be the last, and returns its
// content.
func (e *elements) only(tag byte) (elements, error) {
	value, err := e.into(tag)
	if err == nil && !e.empty() {
		err = errTrailing
	}
	return value, err
}

// skip skips the next value if it has a tag.
func (e *elements) skip(tag byte) error {
	if e.empty() || e.rest[0] != tag {
		return nil
	}
	_, err := e.next()
	return err
}

// literal reads a value that must be exactly this DER.
func (e *elements) literal(der []byte) error {
	rest, ok := bytes.CutPrefix(e.rest, der)
	if !ok {
		return errUnexpected
	}
	e.rest = rest
	return nil
}

// octets reads an octet string, which in BER may consist of parts.
func (e *elements) octets() ([]byte, error) {
	value, err := e.next()
	switch {
	case err != nil:
		return nil, err
	case value.tag == tagOctetString:
		return value.content, nil
	case value.tag != tagOctetString|constructed || e.definite:
		return nil, errUnexpected
	}
	parts, whole := elements{rest: value.content}, []byte(nil)
	for first := true; !parts.empty(); first = false {
		part, err := parts.want(tagOctetString)
		if err != nil {
			return nil, err
		}
		if first {
			whole = part.content[:len(part.content):len(part.content)]
			continue
		}
		whole = append(whole, part.content...)
	}
	return whole, nil
}
