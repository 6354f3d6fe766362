package main

import (
	"crypto"
	//lint:ignore SA1019 One of the three forms in which AWS signs is DSA.
	"crypto/dsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/aws/identitydocument"
)

const documentsMethod = `How long one core needs for an identity document that AWS signed, from the text that the
metadata service gives to a document that is verified and read, in each of the three
forms. The floor is the work that every verification needs: the digests of the document and
of the signed bytes, and the bare check of a signature with a key of the same size. Both
are measured alternately, and the ratio is the floor's time to the whole time.`

const whyDocuments = "What remains beside the signature is reading: base64, the message, strict JSON."

// signedForm is a genuine document in one form, and the bare check of a signature
// with the same algorithm.
type signedForm struct {
	name     string
	evidence *identitydocument.Evidence
	floor    func() bool
}

// documents measures verification of identity documents.
func (b *bench) documents() (section, error) {
	s := section{title: "Signed documents", method: documentsMethod}
	forms, err := b.signedForms()
	if err != nil {
		return s, err
	}
	t := table{caption: "**Each form, on one core.**", header: []string{"form", "verified a second", "whole", "floor", "ratio"}}
	verifier := identitydocument.NewVerifier(nil)
	for _, form := range forms {
		b.log("documents: %s", form.name)
		if _, err := verifier.Verify(form.evidence); err != nil {
			return s, fmt.Errorf("the genuine document in the form %s: %w", form.name, err)
		}
		if !form.floor() {
			return s, fmt.Errorf("the floor of the form %s does not verify", form.name)
		}
		var whole, floor, ratios []float64
		for range b.rounds {
			w := perOperation(1, b.atLeast, func() { _, _ = verifier.Verify(form.evidence) })
			f := perOperation(1, b.atLeast, func() { form.floor() })
			whole, floor, ratios = append(whole, w), append(floor, f), append(ratios, f/w)
		}
		ratio := spreadOf(ratios)
		t.add("`"+form.name+"`", thousands(float64(time.Second)/median(whole)), nanoseconds(median(whole)), nanoseconds(median(floor)),
			ratio.String())
		s.targets = append(s.targets,
			atLeast("Verification of documents in the form `"+form.name+"`, against the bare signature check", .7, ratio, whyDocuments))
	}
	s.tables = append(s.tables, t)
	return s, nil
}

func (b *bench) signedForms() ([]signedForm, error) {
	folder := filepath.Join(b.root, "internal", "aws", "identitydocument")
	var texts [4][]byte
	for i, name := range []string{"document.json", "signature.txt", "rsa2048.txt", "pkcs7.txt"} {
		var err error
		if texts[i], err = os.ReadFile(filepath.Join(folder, "testdata", "genuine", "ap-southeast-2."+name)); err != nil {
			return nil, fmt.Errorf("reading a genuine document: %w", err)
		}
	}
	document := texts[0]
	signature, err := base64.StdEncoding.DecodeString(string(texts[1]))
	if err != nil {
		return nil, fmt.Errorf("decoding the genuine signature: %w", err)
	}
	long, err := rsaFloor(2048, document)
	if err != nil {
		return nil, err
	}
	short, err := rsaFloor(1024, document)
	if err != nil {
		return nil, err
	}
	old, err := dsaFloor(filepath.Join(folder, "certificates", "dsa.pem"), document)
	if err != nil {
		return nil, err
	}
	attributes := make([]byte, 150)
	return []signedForm{
		{"rsa2048", &identitydocument.Evidence{Document: texts[2]}, func() bool { sha256.Sum256(attributes); return long() }},
		{"pkcs7", &identitydocument.Evidence{Document: texts[3]}, func() bool { sha1.Sum(attributes); return old() }},
		{"signature", &identitydocument.Evidence{Document: document, Signature: signature}, short},
	}, nil
}

// rsaFloor hashes a document and checks its signature with a new key.
func rsaFloor(bits int, document []byte) (func() bool, error) {
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		return nil, fmt.Errorf("making an RSA key: %w", err)
	}
	sum := sha256.Sum256(document)
	signature, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:])
	if err != nil {
		return nil, fmt.Errorf("signing with RSA: %w", err)
	}
	return func() bool {
		sum := sha256.Sum256(document)
		return rsa.VerifyPKCS1v15(&key.PublicKey, crypto.SHA256, sum[:], signature) == nil
	}, nil
}

// dsaFloor is the same with DSA and the parameters of a certificate.
func dsaFloor(file string, document []byte) (func() bool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading AWS's certificates: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("reading AWS's certificates: " + file + " is not PEM")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading AWS's certificates: %w", err)
	}
	public, ok := certificate.PublicKey.(*dsa.PublicKey)
	if !ok {
		return nil, errors.New("reading AWS's certificates: the first of " + file + " is not for DSA")
	}
	key := &dsa.PrivateKey{PublicKey: dsa.PublicKey{Parameters: public.Parameters}}
	if err := dsa.GenerateKey(key, rand.Reader); err != nil {
		return nil, fmt.Errorf("making a DSA key: %w", err)
	}
	sum := sha1.Sum(document)
	r, s, err := dsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		return nil, fmt.Errorf("signing with DSA: %w", err)
	}
	return func() bool {
		sum := sha1.Sum(document)
		return dsa.Verify(&key.PublicKey, sum[:], r, s)
	}, nil
}
