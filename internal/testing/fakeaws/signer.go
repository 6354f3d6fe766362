package fakeaws

import (
	"crypto"
	"crypto/dsa" //lint:ignore SA1019 AWS signs one of the three forms with DSA
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"fmt"
	"math/big"
	"strings"
	"time"
)

// Signer signs identity documents like AWS in one region: each form with a key of its
// own.
type Signer struct {
	dsa     *dsa.PrivateKey
	rsa1024 *rsa.PrivateKey
	rsa2048 *rsa.PrivateKey

	dsaCertificate, rsa1024Certificate, rsa2048Certificate *x509.Certificate
}

// The DSA domain parameters. They are constant because generating them takes long, and
// they are not secret.
const (
	dsaP = "826e4092056ade6e48b83bf87703a4ff65032a793304923ccb782dde41aae62d7f0fbb0a953bf8ff66f78023aa6ec6a6" +
		"f408a97c26ceb0c0593d4fd5c8b05a56b53a109804ec953fad41702bb00dae5b50b4798ae4ed7dfa9379eb89b4e1b37f" +
		"b9ef3863af5a64fe4ac9fd070272ffb9f5606deb6c0523f6368a6e53d3bd5995"
	dsaQ = "948276d78b7360694d26b8e05478ed674a2e76c1"
	dsaG = "5a7d0e139eb1107142a99deaf61b8fc432c089c5b1364b5b6e2412c0d0876f7a35bd6820a0c8e4dea8f61b1f4d4b4cd4" +
		"71cd41f93018a7537f5e42d365389473359690b147ef9ce26f6cbea1382f9cd0208153039dba64d91b5c65993f3855ca" +
		"926e25820d2f54f125437e2d6ed0f3ca3bc0ce3a02eded03286b47d4ba88c6ac"
)

// NewSigner makes keys and their self-signed certificates, with the name in AWS's own.
func NewSigner() (*Signer, error) {
	s := &Signer{dsa: &dsa.PrivateKey{}}
	s.dsa.P, s.dsa.Q, s.dsa.G = hexInt(dsaP), hexInt(dsaQ), hexInt(dsaG)
	err := dsa.GenerateKey(s.dsa, rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a DSA key: %w", err)
	}
	if s.rsa1024, err = rsa.GenerateKey(rand.Reader, 1024); err != nil {
		return nil, fmt.Errorf("make an RSA-1024 key: %w", err)
	}
	if s.rsa2048, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		return nil, fmt.Errorf("make an RSA-2048 key: %w", err)
	}
	if s.dsaCertificate, err = s.certifyDSA(); err != nil {
		return nil, err
	}
	if s.rsa1024Certificate, err = certifyRSA(s.rsa1024); err != nil {
		return nil, err
	}
	s.rsa2048Certificate, err = certifyRSA(s.rsa2048)
	return s, err
}

// Certificates returns the certificates of the DSA, the RSA-1024 and the RSA-2048 key.
func (s *Signer) Certificates() []*x509.Certificate {
	return []*x509.Certificate{s.dsaCertificate, s.rsa1024Certificate, s.rsa2048Certificate}
}

// PKCS7 returns /latest/dynamic/instance-identity/pkcs7 for a document: signed with DSA
// and SHA-1.
func (s *Signer) PKCS7(document []byte, signed time.Time) string {
	return base64Lines(s.PKCS7DER(document, signed))
}

// RSA2048 returns /latest/dynamic/instance-identity/rsa2048 for a document: signed with
// RSA and SHA-256.
func (s *Signer) RSA2048(document []byte, signed time.Time) string {
	return base64Lines(s.RSA2048DER(document, signed))
}

// Signature returns /latest/dynamic/instance-identity/signature for a document: its bare
// signature with RSA-1024 and SHA-256.
func (s *Signer) Signature(document []byte) string {
	hash := sha256.Sum256(document)
	signature, err := rsa.SignPKCS1v15(rand.Reader, s.rsa1024, crypto.SHA256, hash[:])
	if err != nil {
		panic(err)
	}
	return base64Lines(signature)
}

// PKCS7DER returns [Signer.PKCS7] without base64.
func (s *Signer) PKCS7DER(document []byte, signed time.Time) []byte {
	digest := sha1.Sum(document)
	sha1Identifier := der(tagSequence, oid(oidSHA1), der(tagNull))
	protection := der(tagSequence, sha1Identifier, der(tagContext1, oid(oidDSAWithSHA1)))
	attributes := [][]byte{
		attribute(oidContentType, oid(oidData)),
		attribute(oidSigningTime, utcTime(signed)),
		attribute(oidMessageDigest, der(tagOctetString, digest[:])),
		attribute(oidAlgorithmProtection, protection),
	}
	return signedData(document, signerInfo{
		certificate: s.dsaCertificate, digest: sha1Identifier, attributes: attributes,
		algorithm: der(tagSequence, oid(oidDSAWithSHA1)), signature: s.signDSA(setOf(attributes)),
	})
}

// RSA2048DER returns [Signer.RSA2048] without base64.
func (s *Signer) RSA2048DER(document []byte, signed time.Time) []byte {
	digest := sha256.Sum256(document)
	// AWS has no parameters here; it had NULL in documents of 2021.
	sha256Identifier := der(tagSequence, oid(oidSHA256))
	protection := der(tagSequence, sha256Identifier, der(tagContext1, oid(oidSHA256WithRSA), der(tagNull)))
	attributes := [][]byte{
		attribute(oidContentType, oid(oidData)),
		attribute(oidSigningTime, utcTime(signed)),
		attribute(oidAlgorithmProtection, protection),
		attribute(oidMessageDigest, der(tagOctetString, digest[:])),
	}
	hash := sha256.Sum256(setOf(attributes))
	signature, err := rsa.SignPKCS1v15(rand.Reader, s.rsa2048, crypto.SHA256, hash[:])
	if err != nil {
		panic(err)
	}
	return signedData(document, signerInfo{
		certificate: s.rsa2048Certificate, digest: sha256Identifier, attributes: attributes,
		algorithm: der(tagSequence, oid(oidSHA256WithRSA), der(tagNull)), signature: signature,
	})
}

// signDSA signs with DSA and SHA-1. The signature is in DER.
func (s *Signer) signDSA(message []byte) []byte {
	hash := sha1.Sum(message)
	r, z, err := dsa.Sign(rand.Reader, s.dsa, hash[:])
	if err != nil {
		panic(err)
	}
	return marshal(struct{ R, S *big.Int }{r, z})
}

// certifyDSA makes a certificate of version 1, like AWS's DSA certificates. The standard
// library makes none for DSA keys.
func (s *Signer) certifyDSA() (*x509.Certificate, error) {
	from, until := validity()
	name := amazonName()
	key := der(tagSequence,
		der(tagSequence, oid(oidDSA), marshal(struct{ P, Q, G *big.Int }{s.dsa.P, s.dsa.Q, s.dsa.G})),
		der(tagBitString, []byte{0}, marshal(s.dsa.Y)))
	algorithm := der(tagSequence, oid(oidDSAWithSHA1))
	body := der(tagSequence,
		marshal(serialNumber()), algorithm, name, der(tagSequence, utcTime(from), utcTime(until)), name, key)
	certificate, err := x509.ParseCertificate(der(tagSequence, body, algorithm, der(tagBitString, []byte{0}, s.signDSA(body))))
	if err != nil {
		return nil, fmt.Errorf("make a DSA certificate: %w", err)
	}
	return certificate, nil
}

func certifyRSA(key *rsa.PrivateKey) (*x509.Certificate, error) {
	from, until := validity()
	template := &x509.Certificate{
		SerialNumber: serialNumber(), RawSubject: amazonName(), NotBefore: from, NotAfter: until,
		SignatureAlgorithm: x509.SHA256WithRSA, IsCA: true, BasicConstraintsValid: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make an RSA certificate: %w", err)
	}
	return x509.ParseCertificate(raw)
}

func validity() (from, until time.Time) {
	now := time.Now().UTC().Truncate(time.Second)
	return now.AddDate(-1, 0, 0), now.AddDate(20, 0, 0)
}

func serialNumber() *big.Int {
	serial := make([]byte, 8)
	if _, err := rand.Read(serial); err != nil {
		panic(err)
	}
	serial[0] |= 0x80 // As AWS's serial numbers, nine bytes in DER.
	return new(big.Int).SetBytes(serial)
}

// amazonName returns the subject and issuer of all certificates of AWS for identity
// documents.
func amazonName() []byte {
	var relative [][]byte
	for _, part := range []struct {
		attribute asn1.ObjectIdentifier
		value     string
	}{
		{asn1.ObjectIdentifier{2, 5, 4, 6}, "US"},
		{asn1.ObjectIdentifier{2, 5, 4, 8}, "Washington State"},
		{asn1.ObjectIdentifier{2, 5, 4, 7}, "Seattle"},
		{asn1.ObjectIdentifier{2, 5, 4, 10}, "Amazon Web Services LLC"},
	} {
		relative = append(relative,
			der(tagSet, der(tagSequence, oid(part.attribute), der(tagPrintableString, []byte(part.value)))))
	}
	return der(tagSequence, relative...)
}

func hexInt(digits string) *big.Int {
	n, ok := new(big.Int).SetString(digits, 16)
	if !ok {
		panic("fakeaws: not a hexadecimal number")
	}
	return n
}

// base64Lines returns base64 in lines of 76 characters without a final line end, like the
// metadata service.
func base64Lines(data []byte) string {
	text := base64.StdEncoding.EncodeToString(data)
	var lines []string
	for len(text) > 76 {
		lines = append(lines, text[:76])
		text = text[76:]
	}
	return strings.Join(append(lines, text), "\n")
}
