package fakeaws

import (
	"crypto/x509"
	"encoding/asn1"
	"slices"
	"time"
)

// The ASN.1 tags of signed data (X.690).
const (
	tagInteger         = 0x02
	tagBitString       = 0x03
	tagOctetString     = 0x04
	tagNull            = 0x05
	tagPrintableString = 0x13
	tagOctetStringOf   = 0x24 // an octet string in parts
	tagSequence        = 0x30
	tagSet             = 0x31
	tagContext0        = 0xa0
	tagContext1        = 0xa1
)

// Object identifiers of PKCS #7 (RFC 2315), PKCS #9 (RFC 2985), RFC 6211 and of
// algorithms (RFC 3279, RFC 4055).
var (
	oidData                = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 1}
	oidSignedData          = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 2}
	oidContentType         = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 3}
	oidMessageDigest       = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 4}
	oidSigningTime         = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 5}
	oidAlgorithmProtection = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 52}
	oidSHA1                = asn1.ObjectIdentifier{1, 3, 14, 3, 2, 26}
	oidSHA256              = asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 2, 1}
	oidSHA256WithRSA       = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 11}
	oidDSA                 = asn1.ObjectIdentifier{1, 2, 840, 10040, 4, 1}
	oidDSAWithSHA1         = asn1.ObjectIdentifier{1, 2, 840, 10040, 4, 3}
)

// signerInfo is the part of one signer in signed data, encoded.
type signerInfo struct {
	certificate       *x509.Certificate
	digest, algorithm []byte
	attributes        [][]byte
	signature         []byte
}

// signedData returns a PKCS #7 message with its content, without certificates. As in
// AWS's messages, the content is in values of indefinite length and the signer is in DER.
func signedData(content []byte, signer signerInfo) []byte {
	serial := marshal(signer.certificate.SerialNumber)
	info := der(tagSequence,
		der(tagInteger, []byte{1}),
		der(tagSequence, signer.certificate.RawIssuer, serial),
		signer.digest,
		der(tagContext0, signer.attributes...),
		signer.algorithm,
		der(tagOctetString, signer.signature))
	return indefinite(tagSequence, oid(oidSignedData), indefinite(tagContext0, indefinite(tagSequence,
		der(tagInteger, []byte{1}),
		der(tagSet, signer.digest),
		indefinite(tagSequence, oid(oidData),
			indefinite(tagContext0, indefinite(tagOctetStringOf, der(tagOctetString, content)))),
		der(tagSet, info))))
}

func attribute(kind asn1.ObjectIdentifier, value []byte) []byte {
	return der(tagSequence, oid(kind), der(tagSet, value))
}

// setOf returns the bytes that are signed of attributes: their DER as a SET (RFC 2315,
// 9.3). AWS's attributes are already in its order.
func setOf(attributes [][]byte) []byte { return der(tagSet, attributes...) }

// der encodes an element of definite length.
func der(tag byte, parts ...[]byte) []byte {
	content := slices.Concat(parts...)
	head := []byte{tag}
	switch n := len(content); {
	case n < 0x80:
		head = append(head, byte(n))
	case n < 0x100:
		head = append(head, 0x81, byte(n))
	default:
		head = append(head, 0x82, byte(n>>8), byte(n))
	}
	return append(head, content...)
}

// indefinite encodes an element of indefinite length, which two zero bytes end.
func indefinite(tag byte, parts ...[]byte) []byte {
	return slices.Concat([]byte{tag, 0x80}, slices.Concat(parts...), []byte{0, 0})
}

func oid(id asn1.ObjectIdentifier) []byte { return marshal(id) }

func utcTime(t time.Time) []byte { return marshal(t.UTC().Truncate(time.Second)) }

func marshal(value any) []byte {
	encoded, err := asn1.Marshal(value)
	if err != nil {
		panic(err)
	}
	return encoded
}
