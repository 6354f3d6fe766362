package identitydocument

import (
	"crypto/x509"
	"math/big"
	"testing"
)

// Parts are the parts of a message.
type Parts struct{ Content, Attributes, Signature []byte }

// PartsOf splits a message without checking its signature.
func PartsOf(tb testing.TB, text []byte) Parts {
	tb.Helper()
	m, err := parseMessage(text)
	if err != nil {
		tb.Fatal(err)
	}
	return Parts{m.content, m.attributes, m.signature}
}

// DSANumbers reads a DSA signature.
func DSANumbers(signature []byte) (r, s *big.Int) {
	r, s, _ = dsaSignature(signature)
	return r, s
}

// Pinned is a certificate of AWS with its regions.
type Pinned struct {
	Regions     []string
	Certificate *x509.Certificate
}

// PinnedCertificates returns the certificates of a file of this package: dsa, rsa
// or rsa2048.
func PinnedCertificates(file string) []Pinned {
	text, err := pinned.ReadFile("certificates/" + file + ".pem")
	if err != nil {
		panic(err)
	}
	known, err := parsePinned(text)
	if err != nil {
		panic(err)
	}
	var all []Pinned
	for _, one := range known {
		all = append(all, Pinned{one.regions, one.certificate})
	}
	return all
}

// ParsePinned parses certificate files.
func ParsePinned(text []byte) (int, error) {
	known, err := parsePinned(text)
	return len(known), err
}

// ReadValue reads the first value of BER, and returns all of it and its content.
func ReadValue(data []byte) (all, content, rest []byte, err error) {
	e := elements{rest: data}
	value, err := e.next()
	return value.all, value.content, e.rest, err
}

// VerifierOfRegion has one certificate, for one region only.
func VerifierOfRegion(region string, x *x509.Certificate) *Verifier {
	v := &Verifier{messages: map[string][]*certificate{}, signatures: map[string][]*certificate{}}
	v.pin(regionCertificate{[]string{region}, x}, false)
	v.pin(regionCertificate{[]string{region}, x}, true)
	return v
}
