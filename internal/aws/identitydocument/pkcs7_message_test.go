package identitydocument_test

import (
	"crypto"
	//lint:ignore SA1019 One of the three forms in which AWS signs is DSA.
	"crypto/dsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"math/big"
	"slices"
	"sync"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/aws/identitydocument"
)

// Object identifiers and algorithms, encoded.
var (
	oidSignedData    = []byte("\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02")
	oidData          = []byte("\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x01")
	oidContentType   = []byte("\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x09\x03")
	oidMessageDigest = []byte("\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x09\x04")
	oidSigningTime   = []byte("\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x09\x05")
	sha256Identifier = []byte("\x30\x0b\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01")
	sha1Identifier   = []byte("\x30\x09\x06\x05\x2b\x0e\x03\x02\x1a\x05\x00")
	sha256WithRSA    = []byte("\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b\x05\x00")
	dsaWithSHA1      = []byte("\x30\x09\x06\x07\x2a\x86\x48\xce\x38\x04\x03")
	one              = []byte{2, 1, 1}
	issuer           = der(0x30, der(0x31, der(0x30, []byte("\x06\x03\x55\x04\x03"), der(0x13, []byte("Test")))))
)

// der encodes a value of definite length, indefinite one of indefinite length.
func der(tag byte, parts ...[]byte) []byte {
	content := slices.Concat(parts...)
	switch n := len(content); {
	case n < 0x80:
		return slices.Concat([]byte{tag, byte(n)}, content)
	case n < 0x100:
		return slices.Concat([]byte{tag, 0x81, byte(n)}, content)
	default:
		return slices.Concat([]byte{tag, 0x82, byte(n >> 8), byte(n)}, content)
	}
}

func indefinite(tag byte, parts ...[]byte) []byte {
	return slices.Concat([]byte{tag, 0x80}, slices.Concat(parts...), []byte{0, 0})
}

// signer is a key that signs messages, with the serial number of its certificate.
type signer struct {
	key    crypto.PrivateKey
	serial int64
}

// Generating keys takes long, and all tests can share them.
var (
	rsaSigner     = sync.OnceValue(func() signer { return signer{newRSA(), 1000} })
	thief         = sync.OnceValue(func() signer { return signer{newRSA(), 1000} })
	unknownSigner = sync.OnceValue(func() signer { return signer{newRSA(), 2000} })
	dsaSigner     = sync.OnceValue(func() signer {
		key := &dsa.PrivateKey{}
		key.Parameters = pinnedKey[*dsa.PublicKey]("dsa").Parameters
		if err := dsa.GenerateKey(key, rand.Reader); err != nil {
			panic(err)
		}
		return signer{key, 3000}
	})
)

func newRSA() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
}

func (s signer) certificate() *x509.Certificate {
	c := &x509.Certificate{RawIssuer: issuer, SerialNumber: big.NewInt(s.serial)}
	switch key := s.key.(type) {
	case *rsa.PrivateKey:
		c.PublicKey = &key.PublicKey
	case *dsa.PrivateKey:
		c.PublicKey = &key.PublicKey
	}
	return c
}

func (s signer) isDSA() bool { _, ok := s.key.(*dsa.PrivateKey); return ok }

func (s signer) sum(data []byte) []byte {
	if s.isDSA() {
		sum := sha1.Sum(data)
		return sum[:]
	}
	sum := sha256.Sum256(data)
	return sum[:]
}

// sign signs bytes, with RSA or DSA.
func (s signer) sign(data []byte) []byte {
	switch key := s.key.(type) {
	case *rsa.PrivateKey:
		signature, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, s.sum(data))
		if err != nil {
			panic(err)
		}
		return signature
	case *dsa.PrivateKey:
		r, z, err := dsa.Sign(rand.Reader, key, s.sum(data))
		if err != nil {
			panic(err)
		}
		return dsaNumbers(r, z)
	}
	panic("no key")
}

func dsaNumbers(r, s *big.Int) []byte {
	encoded, err := asn1.Marshal(struct{ R, S *big.Int }{r, s})
	if err != nil {
		panic(err)
	}
	return encoded
}

// signerParts are the parts of a signer in a message, encoded.
type signerParts struct {
	version, name, digest []byte
	// attributes are the attributes under their tag. They can be nil.
	attributes           []byte
	algorithm, signature []byte
	// rest follows the other parts.
	rest []byte
}

// info makes the signer of a content. Changes by prepare are signed, changes by change
// are not.
func (s signer) info(content []byte, prepare func(*[][]byte), change func(*signerParts)) []byte {
	attributes := [][]byte{
		der(0x30, oidContentType, der(0x31, oidData)),
		der(0x30, oidSigningTime, der(0x31, der(0x17, []byte("260216003828Z")))),
		der(0x30, oidMessageDigest, der(0x31, der(0x04, s.sum(content)))),
	}
	if prepare != nil {
		prepare(&attributes)
	}
	serial, err := asn1.Marshal(big.NewInt(s.serial))
	if err != nil {
		panic(err)
	}
	p := &signerParts{
		version: one, name: der(0x30, issuer, serial), digest: sha256Identifier,
		attributes: der(0xa0, attributes...), algorithm: sha256WithRSA, signature: der(0x04, s.sign(der(0x31, attributes...))),
	}
	if s.isDSA() {
		p.digest, p.algorithm = sha1Identifier, dsaWithSHA1
	}
	if change != nil {
		change(p)
	}
	return der(0x30, p.version, p.name, p.digest, p.attributes, p.algorithm, p.signature, p.rest)
}

// messageParts are the parts of a message, encoded.
type messageParts struct {
	version, digests, content, certificates, signers []byte
	// after follows everything else.
	after []byte
}

// message makes a message in AWS's format.
func (s signer) message(content []byte, change func(*messageParts)) []byte {
	p := &messageParts{
		version: one, digests: der(0x31, sha256Identifier), signers: der(0x31, s.info(content, nil, nil)),
		content: indefinite(0x30, oidData, indefinite(0xa0, indefinite(0x24, der(0x04, content)))),
	}
	if s.isDSA() {
		p.digests = der(0x31, sha1Identifier)
	}
	if change != nil {
		change(p)
	}
	encoded := indefinite(0x30, oidSignedData,
		indefinite(0xa0, indefinite(0x30, p.version, p.digests, p.content, p.certificates, p.signers)))
	return text(append(encoded, p.after...))
}

func text(der []byte) []byte { return []byte(base64.StdEncoding.EncodeToString(der)) }

func raw(tb testing.TB, text []byte) []byte {
	tb.Helper()
	decoded, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil {
		tb.Fatal(err)
	}
	return decoded
}

// verifier has AWS's certificates and the certificates of two signers of this test.
func verifier() *identitydocument.Verifier {
	return identitydocument.NewVerifier([]*x509.Certificate{rsaSigner().certificate(), dsaSigner().certificate()})
}
