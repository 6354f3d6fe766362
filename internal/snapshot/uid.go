package snapshot

import "encoding/hex"

// Packed is a uid of the form that Kubernetes generates: 16 bytes in lower-case hexadecimal, with dashes.
// The zero value is no uid.
type Packed [16]byte

// uidLength is the length of such a uid: 8-4-4-4-12 digits.
const uidLength = 36

func pack(uid []byte) (Packed, bool) {
	var p Packed
	if len(uid) != uidLength {
		return p, false
	}
	digits := make([]byte, 0, 2*len(p))
	for _, part := range [][]byte{uid[:8], uid[9:13], uid[14:18], uid[19:23], uid[24:]} {
		digits = append(digits, part...)
	}
	if _, err := hex.Decode(p[:], digits); err != nil || p.String() != string(uid) {
		return Packed{}, false
	}
	return p, true
}

// String returns the uid, empty for the zero value.
func (p Packed) String() string {
	if p == (Packed{}) {
		return ""
	}
	var text [uidLength]byte
	at := 0
	for i, b := range p {
		switch i {
		case 4, 6, 8, 10:
			text[at] = '-'
			at++
		}
		hex.Encode(text[at:at+2], []byte{b})
		at += 2
	}
	return string(text[:])
}

// The forms of a uid in its column.
const (
	uidNone = iota
	uidPacked
	uidText
)

func appendUID(to, uid []byte) []byte {
	if len(uid) == 0 {
		return append(to, uidNone)
	}
	if p, ok := pack(uid); ok {
		return append(append(to, uidPacked), p[:]...)
	}
	return appendSized(append(to, uidText), uid)
}

// uid reads a uid, which is packed or a text.
func (c *cursor) uid() (Packed, string) {
	var p Packed
	switch c.number(uidText) {
	case uidPacked:
		copy(p[:], c.bytes(len(p)))
	case uidText:
		return p, string(c.sized())
	}
	return p, ""
}
