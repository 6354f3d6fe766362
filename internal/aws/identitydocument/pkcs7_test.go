package identitydocument_test

import (
	"bytes"
	//lint:ignore SA1019 One of the three forms in which AWS signs is DSA.
	"crypto/dsa"
	"crypto/x509"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/smallstep/pkcs7"

	"github.com/node-authorizer/node-authorizer/internal/aws/identitydocument"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// another is a document like the usual one, for another instance.
var another = strings.Replace(usual, "i-1234567890abcdef0", "i-0fedcba0987654321", 1)

func TestVariantsOfMessagesAreVerified(t *testing.T) {
	content := []byte(usual)
	for _, tc := range []struct {
		rule    string
		message []byte
	}{
		{"as AWS makes them", rsaSigner().message(content, nil)},
		{"signed with DSA", dsaSigner().message(content, nil)},
		{"with content of definite length", rsaSigner().message(content, func(p *messageParts) {
			p.content = der(0x30, oidData, der(0xa0, der(0x04, content)))
		})},
		{"with content in parts", rsaSigner().message(content, func(p *messageParts) {
			p.content = indefinite(0x30, oidData,
				indefinite(0xa0, indefinite(0x24, der(0x04, content[:100]), der(0x04), der(0x04, content[100:]))))
		})},
		{"with a certificate, which is ignored", rsaSigner().message(content, func(p *messageParts) {
			p.certificates = der(0xa0, der(0x30, []byte("not even a certificate")))
		})},
		{"with the identifier of the key for that of the signature", rsaSigner().message(content, func(p *messageParts) {
			p.signers = der(0x31, rsaSigner().info(content, nil, func(p *signerParts) {
				p.algorithm = []byte("\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\x00")
			}))
		})},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			document, err := verifier().Verify(&identitydocument.Evidence{Document: tc.message})
			if err != nil {
				t.Fatal(err)
			}
			if document.InstanceID != "i-1234567890abcdef0" {
				t.Errorf("got %s", summary(document))
			}
		})
	}
}

func TestForgedMessagesAreRefused(t *testing.T) {
	content := []byte(usual)
	// by changes the only signer.
	by := func(s signer, prepare func(*[][]byte), change func(*signerParts)) []byte {
		return s.message(content, func(p *messageParts) { p.signers = der(0x31, s.info(content, prepare, change)) })
	}
	with := func(change func(*messageParts)) []byte { return rsaSigner().message(content, change) }
	signers := func(infos ...[]byte) func(*messageParts) {
		return func(p *messageParts) { p.signers = der(0x31, infos...) }
	}
	good := rsaSigner().info(content, nil, nil)
	contentOf := func(encoded []byte) []byte {
		return with(func(p *messageParts) { p.content = encoded })
	}
	for _, tc := range []struct {
		attack  string
		message []byte
		want    verdict.Code
	}{
		{
			"another document in a signed message",
			contentOf(indefinite(0x30, oidData, indefinite(0xa0, indefinite(0x24, der(0x04, []byte(another)))))),
			identitydocument.SignatureInvalid,
		},
		{"another document in a message signed with DSA", dsaSigner().message(content, func(p *messageParts) {
			p.content = der(0x30, oidData, der(0xa0, der(0x04, []byte(another))))
		}), identitydocument.SignatureInvalid},
		{
			"another document before the signed one",
			contentOf(indefinite(0x30, oidData, indefinite(0xa0, indefinite(0x24, der(0x04, []byte(another)), der(0x04, content))))),
			identitydocument.SignatureInvalid,
		},
		{
			"another document after the signed one",
			contentOf(indefinite(0x30, oidData, indefinite(0xa0, indefinite(0x24, der(0x04, content)), der(0x04, []byte(another))))),
			identitydocument.DocumentMalformed,
		},
		{"another document and its digest, unsigned", by(rsaSigner(), nil, func(p *signerParts) {
			p.attributes = der(0xa0, der(0x30, oidContentType, der(0x31, oidData)),
				der(0x30, oidMessageDigest, der(0x31, der(0x04, rsaSigner().sum(content)))))
		}), identitydocument.SignatureInvalid},

		{"another key under the name of a known certificate", thief().message(content, nil), identitydocument.SignatureInvalid},
		{"an unknown certificate", unknownSigner().message(content, nil), identitydocument.SignerUnknown},
		{
			"the name of AWS's certificate first, another key's after it",
			with(signers(good, unknownSigner().info(content, nil, nil))), identitydocument.DocumentMalformed,
		},
		{"another key first", with(signers(unknownSigner().info(content, nil, nil), good)), identitydocument.DocumentMalformed},
		{"two signers who are both known", with(signers(good, good)), identitydocument.DocumentMalformed},
		{"no signer", with(signers()), identitydocument.DocumentMalformed},
		{"its own certificate in the message", unknownSigner().message(content, func(p *messageParts) {
			p.certificates = der(0xa0, der(0x30, issuer))
		}), identitydocument.SignerUnknown},
		{
			"the certificate of the other algorithm", by(signer{rsaSigner().key, dsaSigner().serial}, nil, nil),
			identitydocument.SignerUnknown,
		},

		{"no signed attributes", by(rsaSigner(), nil, func(p *signerParts) {
			p.attributes, p.signature = nil, der(0x04, rsaSigner().sign(content))
		}), identitydocument.DocumentMalformed},
		{"signed attributes as content", rsaSigner().message(attributesOf(content), func(p *messageParts) {
			p.signers = der(0x31, rsaSigner().info(content, nil, func(p *signerParts) { p.attributes = nil }))
		}), identitydocument.DocumentMalformed},
		{"a signature of the content beside signed attributes", by(rsaSigner(), nil, func(p *signerParts) {
			p.signature = der(0x04, rsaSigner().sign(content))
		}), identitydocument.SignatureInvalid},
		{"a signature of the attributes under their tag in the message", by(rsaSigner(), nil, func(p *signerParts) {
			p.signature = der(0x04, rsaSigner().sign(p.attributes))
		}), identitydocument.SignatureInvalid},
		{"no attributes among the signed ones", by(rsaSigner(), func(a *[][]byte) { *a = nil }, nil), identitydocument.DocumentMalformed},
		{"no digest", by(rsaSigner(), func(a *[][]byte) { *a = (*a)[:2] }, nil), identitydocument.DocumentMalformed},
		{"no content type", by(rsaSigner(), func(a *[][]byte) { *a = (*a)[1:] }, nil), identitydocument.DocumentMalformed},
		{"another content type", by(rsaSigner(), func(a *[][]byte) {
			(*a)[0] = der(0x30, oidContentType, der(0x31, oidSignedData))
		}, nil), identitydocument.DocumentMalformed},
		{"another digest", by(rsaSigner(), func(a *[][]byte) {
			(*a)[2] = der(0x30, oidMessageDigest, der(0x31, der(0x04, rsaSigner().sum([]byte(another)))))
		}, nil), identitydocument.SignatureInvalid},
		{"half a digest", by(rsaSigner(), func(a *[][]byte) {
			(*a)[2] = der(0x30, oidMessageDigest, der(0x31, der(0x04, rsaSigner().sum(content)[:16])))
		}, nil), identitydocument.SignatureInvalid},
		{"two digests", by(rsaSigner(), func(a *[][]byte) { *a = append(*a, (*a)[2]) }, nil), identitydocument.DocumentMalformed},
		{"two values of the digest", by(rsaSigner(), func(a *[][]byte) {
			value := der(0x04, rsaSigner().sum(content))
			(*a)[2] = der(0x30, oidMessageDigest, der(0x31, value, value))
		}, nil), identitydocument.SignatureInvalid},
		{"a digest without a value", by(rsaSigner(), func(a *[][]byte) {
			(*a)[2] = der(0x30, oidMessageDigest, der(0x31))
		}, nil), identitydocument.DocumentMalformed},
		{"signed attributes of indefinite length", by(rsaSigner(), nil, func(p *signerParts) {
			p.attributes = indefinite(0xa0, p.attributes[2:])
		}), identitydocument.DocumentMalformed},
		{
			"attributes that are not signed", by(rsaSigner(), nil, func(p *signerParts) { p.rest = der(0xa1) }),
			identitydocument.DocumentMalformed,
		},

		{"RSA with SHA-1", by(rsaSigner(), nil, func(p *signerParts) { p.digest = sha1Identifier }), identitydocument.DocumentMalformed},
		{
			"DSA with SHA-256", by(dsaSigner(), nil, func(p *signerParts) { p.digest = sha256Identifier }),
			identitydocument.DocumentMalformed,
		},
		{"an algorithm with parameters", by(rsaSigner(), nil, func(p *signerParts) {
			p.digest = der(0x30, sha256Identifier[2:], one)
		}), identitydocument.DocumentMalformed},
		{"an algorithm with a NULL that is not empty", by(rsaSigner(), nil, func(p *signerParts) {
			p.digest = der(0x30, sha256Identifier[2:], []byte{5, 1, 0})
		}), identitydocument.DocumentMalformed},
		{
			"certificates that do not end", with(func(p *messageParts) { p.certificates = []byte("\xa0\x82\xff\xff") }),
			identitydocument.DocumentMalformed,
		},
		{
			"a digest that is not among the message's",
			with(func(p *messageParts) { p.digests = der(0x31, sha1Identifier) }), identitydocument.DocumentMalformed,
		},
		{
			"two digests of the message",
			with(func(p *messageParts) { p.digests = der(0x31, sha256Identifier, sha1Identifier) }),
			identitydocument.DocumentMalformed,
		},
		{
			"a signature of no bytes", by(rsaSigner(), nil, func(p *signerParts) { p.signature = der(0x04) }),
			identitydocument.SignatureInvalid,
		},
		{"a signature with a byte more", by(rsaSigner(), nil, func(p *signerParts) {
			p.signature = der(0x04, []byte{0}, p.signature[4:])
		}), identitydocument.SignatureInvalid},

		{"no content", contentOf(der(0x30, oidData)), identitydocument.DocumentMalformed},
		{"content of another type", contentOf(der(0x30, oidSignedData, der(0xa0, der(0x04, content)))), identitydocument.DocumentMalformed},
		{
			"content that is not a string of octets", contentOf(der(0x30, oidData, der(0xa0, der(0x0c, content)))),
			identitydocument.DocumentMalformed,
		},
		{
			"content in parts of parts", contentOf(der(0x30, oidData, der(0xa0, der(0x24, der(0x24, der(0x04, content)))))),
			identitydocument.DocumentMalformed,
		},
		{"another version", with(func(p *messageParts) { p.version = []byte{2, 1, 3} }), identitydocument.DocumentMalformed},
		{
			"another version of the signer", by(rsaSigner(), nil, func(p *signerParts) { p.version = []byte{2, 1, 3} }),
			identitydocument.DocumentMalformed,
		},
		{"data after the message", with(func(p *messageParts) { p.after = []byte{0} }), identitydocument.DocumentMalformed},
		{
			"a second message after it",
			with(func(p *messageParts) { p.after = raw(t, rsaSigner().message([]byte(another), nil)) }),
			identitydocument.DocumentMalformed,
		},
		{"lists of revoked certificates", with(func(p *messageParts) { p.certificates = der(0xa1) }), identitydocument.DocumentMalformed},
		{"a length of four gigabytes", text([]byte("\x30\x84\xff\xff\xff\xff\x06\x09")), identitydocument.DocumentMalformed},
		{"a length of many bytes", text([]byte("\x30\xff" + strings.Repeat("\xff", 127))), identitydocument.DocumentMalformed},
		{"a length that is not in its shortest form", text([]byte("\x30\x81\x02\x05\x00")), identitydocument.DocumentMalformed},
		{"a length beyond the end", text([]byte("\x30\x20\x06\x01")), identitydocument.DocumentMalformed},
		{"deep nesting", text(bytes.Repeat([]byte("\x30\x80"), 30000)), identitydocument.DocumentMalformed},
		{
			"deep nesting that ends", text(slices.Concat(bytes.Repeat([]byte("\x30\x80"), 10000), make([]byte, 20000))),
			identitydocument.DocumentMalformed,
		},
		{
			"a primitive value of indefinite length", contentOf(der(0x30, oidData, der(0xa0, indefinite(0x04, content)))),
			identitydocument.DocumentMalformed,
		},
		{"a tag of several bytes", text([]byte("\x3f\x81\x00\x00")), identitydocument.DocumentMalformed},
	} {
		t.Run(tc.attack, func(t *testing.T) {
			_, err := verifier().Verify(&identitydocument.Evidence{Document: tc.message})
			refused(t, err, tc.want)
		})
	}
}

// attributesOf returns the attributes that the signer of a content signs.
func attributesOf(content []byte) []byte {
	var signed []byte
	rsaSigner().info(content, func(a *[][]byte) { signed = der(0x31, *a...) }, nil)
	return signed
}

func TestDSASignaturesOutOfRangeAreRefused(t *testing.T) {
	content := []byte(usual)
	q := dsaSigner().key.(*dsa.PrivateKey).Q
	var r, s *big.Int
	numbers := func(change func()) []byte {
		return dsaSigner().message(content, func(p *messageParts) {
			p.signers = der(0x31, dsaSigner().info(content, nil, func(p *signerParts) {
				r, s = identitydocument.DSANumbers(p.signature[2:])
				change()
				p.signature = der(0x04, dsaNumbers(r, s))
			}))
		})
	}
	as := func(signature []byte) []byte {
		return dsaSigner().message(content, func(p *messageParts) {
			p.signers = der(0x31, dsaSigner().info(content, nil, func(p *signerParts) { p.signature = der(0x04, signature) }))
		})
	}
	zero := func(n **big.Int) func() { return func() { *n = new(big.Int) } }
	for _, tc := range []struct {
		rule    string
		message []byte
	}{
		{"r is zero", numbers(zero(&r))},
		{"s is zero", numbers(zero(&s))},
		{"both are zero", numbers(func() { r, s = new(big.Int), new(big.Int) })},
		{"r is q", numbers(func() { r = q })},
		{"s is q", numbers(func() { s = q })},
		{"r is one and s is q", numbers(func() { r, s = big.NewInt(1), q })},
		{"r has q added", numbers(func() { r = new(big.Int).Add(r, q) })},
		{"s has q added", numbers(func() { s = new(big.Int).Add(s, q) })},
		{"r is negative", numbers(func() { r = new(big.Int).Neg(r) })},
		{"s is negative", numbers(func() { s = new(big.Int).Neg(s) })},
		{"s is huge", numbers(func() { s = new(big.Int).Lsh(s, 4096) })},
		{"r and s change places", numbers(func() { r, s = s, r })},
		{"no numbers", as(der(0x30))},
		{"one number", as(der(0x30, one))},
		{"three numbers", as(der(0x30, one, one, one))},
		{"a number of no bytes", as(der(0x30, one, []byte{2, 0}))},
		{"a number with a zero before it", as(der(0x30, one, []byte{2, 2, 0, 1}))},
		{"more after the numbers", as(append(der(0x30, one, one), 0))},
		{"no signature", as(nil)},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			_, err := verifier().Verify(&identitydocument.Evidence{Document: tc.message})
			refused(t, err, identitydocument.SignatureInvalid)
		})
	}
	if _, err := verifier().Verify(&identitydocument.Evidence{Document: numbers(func() {})}); err != nil {
		t.Errorf("without a change: %v", err)
	}
}

// TestEveryFlippedBitIsRefusedOrIrrelevant flips each bit of a message, one at a time.
func TestEveryFlippedBitIsRefusedOrIrrelevant(t *testing.T) {
	for _, tc := range []struct {
		name    string
		message []byte
	}{
		{"genuine rsa2048", genuine(t, "ap-southeast-2.rsa2048.txt")},
		{"genuine pkcs7", genuine(t, "ap-southeast-2.pkcs7.txt")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			known := identitydocument.NewVerifier(nil)
			want, err := known.Verify(&identitydocument.Evidence{Document: tc.message})
			if err != nil {
				t.Fatal(err)
			}
			message := raw(t, decodedText(tc.message))
			accepted := 0
			for i := range message {
				for bit := range 8 {
					got, err := known.Verify(&identitydocument.Evidence{Document: text(flipped(message, i, 1<<bit))})
					if err != nil {
						continue
					}
					accepted++
					if *got != *want {
						t.Errorf("bit %d of byte %d makes another document: %s", bit, i, summary(got))
					}
				}
			}
			t.Logf("%d of %d changes have no effect", accepted, 8*len(message))
			if accepted > 8 {
				t.Errorf("%d changes are not noticed, want few", accepted)
			}
		})
	}
	t.Run("genuine signature", func(t *testing.T) {
		known, evidence := identitydocument.NewVerifier(nil), genuineBeside(t)
		for i := range evidence.Document {
			for bit := range 8 {
				changed := &identitydocument.Evidence{Document: flipped(evidence.Document, i, 1<<bit), Signature: evidence.Signature}
				if _, err := known.Verify(changed); err == nil {
					t.Errorf("bit %d of byte %d of the document is not noticed", bit, i)
				}
			}
		}
		for i := range evidence.Signature {
			for bit := range 8 {
				changed := &identitydocument.Evidence{Document: evidence.Document, Signature: flipped(evidence.Signature, i, 1<<bit)}
				_, err := known.Verify(changed)
				refused(t, err, identitydocument.SignatureInvalid)
			}
		}
	})
}

// TestTruncatedMessagesAreRefused truncates a message after each byte.
func TestTruncatedMessagesAreRefused(t *testing.T) {
	message := raw(t, decodedText(genuine(t, "ap-southeast-2.rsa2048.txt")))
	for i := range message {
		_, err := identitydocument.NewVerifier(nil).Verify(&identitydocument.Evidence{Document: text(message[:i])})
		refused(t, err, identitydocument.DocumentMalformed)
	}
}

// TestLibraryReadsTheSameContent compares with a library.
func TestLibraryReadsTheSameContent(t *testing.T) {
	for _, name := range []string{"ap-southeast-2.rsa2048.txt", "ap-southeast-2.pkcs7.txt", "us-east-1-of-2016.pkcs7.txt"} {
		t.Run(name, func(t *testing.T) {
			message := genuine(t, name)
			theirs, err := pkcs7.Parse(raw(t, decodedText(message)))
			if err != nil {
				t.Fatal(err)
			}
			if ours := identitydocument.PartsOf(t, message); !bytes.Equal(ours.Content, theirs.Content) {
				t.Errorf("got %q, want %q", ours.Content, theirs.Content)
			}
			if !strings.Contains(name, "rsa2048") {
				return
			}
			for _, one := range identitydocument.PinnedCertificates("rsa2048") {
				if slices.Contains(one.Regions, "ap-southeast-2") {
					theirs.Certificates = []*x509.Certificate{one.Certificate}
				}
			}
			if err := theirs.Verify(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestLibraryJoinsPartsInTheSameWay(t *testing.T) {
	content := []byte(usual)
	message := rsaSigner().message(content, func(p *messageParts) {
		p.content = indefinite(0x30, oidData,
			indefinite(0xa0, indefinite(0x24, der(0x04, content[:7]), der(0x04, content[7:300]), der(0x04, content[300:]))))
	})
	theirs, err := pkcs7.Parse(raw(t, message))
	if err != nil {
		t.Fatal(err)
	}
	if ours := identitydocument.PartsOf(t, message); !bytes.Equal(ours.Content, theirs.Content) || !bytes.Equal(ours.Content, content) {
		t.Errorf("got %q, want %q", ours.Content, theirs.Content)
	}
}
