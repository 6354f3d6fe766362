package attack

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var placeholder = regexp.MustCompile(`(UID|CSR|PKCS10)\(([^)]*)\)`)

// fill replaces the placeholders for uids and signing requests in a body.
func (f *Fixture) fill(body string) (string, error) {
	var errs []error
	filled := placeholder.ReplaceAllStringFunc(body, func(found string) string {
		parts := placeholder.FindStringSubmatch(found)
		var text string
		var err error
		switch parts[1] {
		case "UID":
			uid, known := f.uids[parts[2]]
			if !known {
				err = fmt.Errorf("the fixture has no uid of %s", parts[2])
			}
			text = string(uid)
		case "CSR":
			text, err = signingRequest(parts[2])
		default:
			text, err = emptyRequest()
		}
		errs = append(errs, err)
		return text
	})
	return filled, errors.Join(errs...)
}

// signingRequest returns PEM in base64. The text is "names; groups", each separated by
// commas. A bar separates several requests.
func signingRequest(text string) (string, error) {
	var blocks []byte
	for one := range strings.SplitSeq(text, "|") {
		names, groups, _ := strings.Cut(one, ";")
		subject := pkix.Name{Organization: split(groups)}
		for _, name := range split(names) {
			subject.ExtraNames = append(subject.ExtraNames,
				pkix.AttributeTypeAndValue{Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: name})
		}
		der, err := newRequest(subject)
		if err != nil {
			return "", err
		}
		blocks = append(blocks, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})...)
	}
	return base64.StdEncoding.EncodeToString(blocks), nil
}

func split(list string) []string {
	var parts []string
	for part := range strings.SplitSeq(list, ",") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

func emptyRequest() (string, error) {
	der, err := newRequest(pkix.Name{})
	return base64.StdEncoding.EncodeToString(der), err
}

func newRequest(subject pkix.Name) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of a signing request: %w", err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject}, key)
	if err != nil {
		return nil, fmt.Errorf("make a signing request: %w", err)
	}
	return der, nil
}
