package identitydocument

import (
	"bytes"
	//lint:ignore SA1019 One of the three forms in which AWS signs is DSA.
	"crypto/dsa"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"fmt"
)

// message is a PKCS #7 message of type signed data with its content and one signer (RFC
// 2315, sections 7 and 9), in AWS's format: the content is data, and the signer signs
// attributes, including the digest of the content.
type message struct {
	content []byte
	// issuer and serial identify the certificate of the signer. Issuer is in DER, serial
	// is the content of its DER.
	issuer, serial []byte
	// attributes are the signed attributes: a SET in DER.
	attributes []byte
	// digest is the digest of the content in the attributes: an octet string in DER.
	digest    []byte
	algorithm *algorithm
	signature []byte
	// sum is the calculated digest of the content. It is nil before it is needed.
	sum []byte
}

// algorithm is the digest and signature algorithm of a form. Other pairs are refused.
type algorithm struct {
	form   Form
	digest []byte // the identifier of the digest
	// signatures are the identifiers of the signature. The identifier of the key alone
	// has the same meaning (RFC 3370, section 3).
	signatures [][]byte
	// sum returns the digest of bytes.
	sum func([]byte) []byte
	// fits reports whether a public key has the right type.
	fits func(key any) bool
}

// The two algorithms of messages.
var algorithms = []algorithm{
	{
		form: RSA2048,
		// 2.16.840.1.101.3.4.2.1, RFC 5754
		digest: []byte("\x60\x86\x48\x01\x65\x03\x04\x02\x01"),
		// 1.2.840.113549.1.1.11 and .1
		signatures: [][]byte{[]byte("\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b"), []byte("\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01")},
		sum:        func(data []byte) []byte { s := sha256.Sum256(data); return s[:] },
		fits:       func(key any) bool { _, ok := key.(*rsa.PublicKey); return ok },
	},
	{
		form:       PKCS7,
		digest:     []byte("\x2b\x0e\x03\x02\x1a"),                                                           // 1.3.14.3.2.26, RFC 3370
		signatures: [][]byte{[]byte("\x2a\x86\x48\xce\x38\x04\x03"), []byte("\x2a\x86\x48\xce\x38\x04\x01")}, // 1.2.840.10040.4.3 and .1
		sum:        func(data []byte) []byte { s := sha1.Sum(data); return s[:] },
		fits:       func(key any) bool { _, ok := key.(*dsa.PublicKey); return ok },
	},
}

// Object identifiers, with tag and length (RFC 2315, RFC 2985).
var (
	oidSignedData    = []byte("\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02")
	oidData          = []byte("\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x01")
	oidContentType   = []byte("\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x09\x03")
	oidMessageDigest = []byte("\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x09\x04")
	versionOne       = []byte{tagInteger, 1, 1}
)

func (m *message) form() Form { return m.algorithm.form }

// sha256 returns the SHA-256 of the content, calculated once.
func (m *message) sha256() [sha256.Size]byte {
	if len(m.sum) == sha256.Size {
		return [sha256.Size]byte(m.sum)
	}
	return sha256.Sum256(m.content)
}

// parseMessage reads the text of a message. It ignores certificates and everything else
// in it that says whom to trust.
func parseMessage(text []byte) (*message, error) {
	der, err := decodeText(text)
	if err != nil {
		return nil, err
	}
	m := &message{}
	if err := m.readContentInfo(der); err != nil {
		return nil, malformed("the PKCS #7 message: %v", err)
	}
	return m, nil
}

func (m *message) readContentInfo(der []byte) error {
	outer := elements{rest: der}
	info, err := outer.only(tagSequence)
	if err != nil {
		return err
	}
	if err := info.literal(oidSignedData); err != nil {
		return fmt.Errorf("the type is not signed data: %w", err)
	}
	wrapped, err := info.only(tagContext0)
	if err != nil {
		return err
	}
	signed, err := wrapped.only(tagSequence)
	if err != nil {
		return err
	}
	return m.readSignedData(signed)
}

func (m *message) readSignedData(signed elements) error {
	if err := signed.literal(versionOne); err != nil {
		return fmt.Errorf("the version of the signed data is not 1: %w", err)
	}
	digests, err := signed.into(tagSet)
	if err != nil {
		return fmt.Errorf("the set of digests: %w", err)
	}
	inner, err := signed.into(tagSequence)
	if err != nil {
		return err
	}
	if m.content, err = readContent(inner); err != nil {
		return fmt.Errorf("the content: %w", err)
	}
	if err := signed.skip(tagContext0); err != nil {
		return fmt.Errorf("the certificates: %w", err)
	}
	signers, err := signed.only(tagSet)
	if err != nil {
		return fmt.Errorf("the set of signers: %w", err)
	}
	signers.definite = true
	if signers.empty() {
		return fmt.Errorf("it has no signer")
	}
	signer, err := signers.into(tagSequence)
	if err != nil {
		return fmt.Errorf("the signer: %w", err)
	}
	if !signers.empty() {
		return fmt.Errorf("it has more than one signer")
	}
	if err := m.readSigner(signer); err != nil {
		return fmt.Errorf("the signer: %w", err)
	}
	digest, err := readAlgorithm(&digests)
	if err != nil || !digests.empty() || !bytes.Equal(digest, m.algorithm.digest) {
		return fmt.Errorf("the set of digests is not the signer's")
	}
	return nil
}

// readContent reads the content, which must be of type data.
func readContent(info elements) ([]byte, error) {
	if err := info.literal(oidData); err != nil {
		return nil, fmt.Errorf("the type is not data: %w", err)
	}
	if info.empty() {
		return nil, fmt.Errorf("it is missing")
	}
	wrapped, err := info.only(tagContext0)
	if err != nil {
		return nil, err
	}
	content, err := wrapped.octets()
	if err == nil && !wrapped.empty() {
		err = errTrailing
	}
	return content, err
}

func (m *message) readSigner(signer elements) error {
	if err := signer.literal(versionOne); err != nil {
		return fmt.Errorf("the version is not 1: %w", err)
	}
	name, err := signer.into(tagSequence)
	if err != nil {
		return fmt.Errorf("the name: %w", err)
	}
	issuer, err := name.want(tagSequence)
	if err != nil {
		return fmt.Errorf("the issuer: %w", err)
	}
	serial, err := name.only(tagInteger)
	if err != nil {
		return fmt.Errorf("the serial number: %w", err)
	}
	m.issuer, m.serial = issuer.all, serial.rest
	digest, err := readAlgorithm(&signer)
	if err != nil {
		return fmt.Errorf("the digest algorithm: %w", err)
	}
	if signer.empty() || signer.rest[0] != tagContext0 {
		return fmt.Errorf("it signs no attributes")
	}
	attributes, err := signer.want(tagContext0)
	if err != nil {
		return fmt.Errorf("the signed attributes: %w", err)
	}
	signature, err := readAlgorithm(&signer)
	if err != nil {
		return fmt.Errorf("the signature algorithm: %w", err)
	}
	if m.algorithm, err = algorithmOf(digest, signature); err != nil {
		return err
	}
	if m.signature, err = signer.octets(); err != nil {
		return fmt.Errorf("the signature: %w", err)
	}
	if !signer.empty() {
		return errTrailing
	}
	return m.readAttributes(attributes)
}

// readAlgorithm reads the identifier of an algorithm without parameters or with NULL.
func readAlgorithm(in *elements) ([]byte, error) {
	sequence, err := in.into(tagSequence)
	if err != nil {
		return nil, err
	}
	sequence.definite = true
	id, err := sequence.want(tagOID)
	if err != nil {
		return nil, err
	}
	if sequence.empty() {
		return id.content, nil
	}
	parameters, err := sequence.only(tagNull)
	if err == nil && !parameters.empty() {
		err = errUnexpected
	}
	return id.content, err
}

func algorithmOf(digest, signature []byte) (*algorithm, error) {
	for i := range algorithms {
		a := &algorithms[i]
		if !bytes.Equal(a.digest, digest) {
			continue
		}
		for _, id := range a.signatures {
			if bytes.Equal(id, signature) {
				return a, nil
			}
		}
	}
	return nil, fmt.Errorf("it is signed neither with RSA and SHA-256 nor with DSA and SHA-1")
}

// readAttributes reads the signed attributes. Two digests, or two values of one, would be
// ambiguous.
func (m *message) readAttributes(attributes element) error {
	var contentType []byte
	for list := (elements{rest: attributes.content, definite: true}); !list.empty(); {
		attribute, err := list.into(tagSequence)
		if err != nil {
			return fmt.Errorf("the signed attributes: %w", err)
		}
		var into *[]byte
		switch {
		case attribute.literal(oidContentType) == nil:
			into = &contentType
		case attribute.literal(oidMessageDigest) == nil:
			into = &m.digest
		default:
			continue
		}
		values, err := attribute.only(tagSet)
		if err != nil {
			return fmt.Errorf("the signed attributes: %w", err)
		}
		if *into != nil || values.empty() {
			return fmt.Errorf("the signed attributes: one is repeated or has no value")
		}
		*into = values.rest
	}
	if !bytes.Equal(contentType, oidData) {
		return fmt.Errorf("the signed attributes: the content type is not data")
	}
	if m.digest == nil {
		return fmt.Errorf("the signed attributes: there is no digest of the content")
	}
	// The attributes are signed as a SET (RFC 2315, section 9.3), not under their tag in
	// the message.
	m.attributes = append([]byte{tagSet}, attributes.all[1:]...)
	return nil
}
