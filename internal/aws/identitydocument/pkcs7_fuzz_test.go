package identitydocument_test

import (
	"bytes"
	"encoding/asn1"
	"slices"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/aws/identitydocument"
)

// FuzzVerify checks that only documents that AWS signed verify.
func FuzzVerify(f *testing.F) {
	genuineDigests := map[[32]byte]bool{}
	known := identitydocument.NewVerifier(nil)
	for _, name := range []string{"ap-southeast-2.rsa2048.txt", "ap-southeast-2.pkcs7.txt"} {
		message := genuine(f, name)
		document, err := known.Verify(&identitydocument.Evidence{Document: message})
		if err != nil {
			f.Fatal(err)
		}
		genuineDigests[document.Digest] = true
		f.Add(raw(f, decodedText(message)))
	}
	f.Add(raw(f, decodedText(genuine(f, "us-east-1-of-2016.pkcs7.txt"))))
	f.Fuzz(func(t *testing.T, message []byte) {
		evidence := &identitydocument.Evidence{Document: text(message)}
		if document, err := known.Verify(evidence); err == nil && !genuineDigests[document.Digest] {
			t.Fatalf("%x was verified", message)
		}
		if document, err := identitydocument.Unverified(evidence); err == nil && document.InstanceID == "" {
			t.Fatalf("%x is a document without an instance", message)
		}
	})
}

// FuzzReadValue checks the bounds of values, and compares values of definite length with
// the standard library.
func FuzzReadValue(f *testing.F) {
	for _, seed := range []string{
		"\x30\x03\x02\x01\x01", "\x30\x80\x02\x01\x01\x00\x00", "\x30\x81\x80", "\x24\x80\x04\x01a\x04\x01b\x00\x00rest",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		all, content, rest, err := identitydocument.ReadValue(data)
		if err != nil {
			return
		}
		if !bytes.Equal(slices.Concat(all, rest), data) {
			t.Fatalf("%x: %x and %x are not all of it", data, all, rest)
		}
		if data[1] == 0x80 {
			if !bytes.Equal(slices.Concat(data[:2], content, []byte{0, 0}), all) {
				t.Fatalf("%x: %x is not what is in %x", data, content, all)
			}
			return
		}
		var value asn1.RawValue
		theirRest, err := asn1.Unmarshal(data, &value)
		if err != nil {
			t.Fatalf("%x: only we can read it: %v", data, err)
		}
		if !bytes.Equal(value.Bytes, content) || !bytes.Equal(value.FullBytes, all) || !bytes.Equal(theirRest, rest) {
			t.Fatalf("%x: %x in %x, to others %x in %x", data, content, all, value.Bytes, value.FullBytes)
		}
	})
}

// FuzzDSASignature checks that a signature has only one encoding.
func FuzzDSASignature(f *testing.F) {
	f.Add([]byte("\x30\x06\x02\x01\x01\x02\x01\x02"))
	f.Add([]byte("\x30\x08\x02\x02\x00\xff\x02\x02\x00\x80"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if r, s := identitydocument.DSANumbers(data); s != nil && !bytes.Equal(dsaNumbers(r, s), data) {
			t.Fatalf("%x is read, but written %x", data, dsaNumbers(r, s))
		}
	})
}
