package approve

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
)

// request is a PKCS#10 request that has only one interpretation, so that certificate signers
// read the same.
type request struct {
	*x509.CertificateRequest
	// names are its subject alternative names.
	names altNames
	// extensions are the other extensions that it requests.
	extensions []string
}

const pemType = "CERTIFICATE REQUEST"

// parse parses a PEM block with one request, and nothing before or after either.
func parse(text []byte) (*request, error) {
	text = bytes.TrimSpace(text)
	if !bytes.HasPrefix(text, []byte("-----BEGIN "+pemType+"-----")) {
		return nil, errors.New("it does not begin with a PEM block of type " + pemType)
	}
	block, rest := pem.Decode(text)
	switch {
	case block == nil || block.Type != pemType:
		return nil, errors.New("the PEM block cannot be read")
	case len(block.Headers) > 0:
		return nil, errors.New("the PEM block has headers")
	case len(rest) > 0:
		return nil, errors.New("something follows the PEM block")
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		// The error of crypto/x509 may contain memory addresses, and differ each time.
		return nil, errors.New("the PKCS#10 request cannot be read")
	}
	r := &request{CertificateRequest: parsed}
	if err := r.readAttributes(); err != nil {
		return nil, err
	}
	return r, nil
}

// PublicKey returns "sha256:" and the hash of a request's public key (its SubjectPublicKeyInfo,
// DER) in hexadecimal; empty if the request cannot be parsed.
func PublicKey(text []byte) string {
	r, err := parse(text)
	if err != nil {
		return ""
	}
	return r.publicKey()
}

func (r *request) publicKey() string { return v1alpha1.PublicKeyHash(r.RawSubjectPublicKeyInfo) }

// requestInfo is CertificationRequestInfo of RFC 2986.
type requestInfo struct {
	Version    int
	Subject    asn1.RawValue
	PublicKey  asn1.RawValue
	Attributes []attribute `asn1:"tag:0,set"`
}

type attribute struct {
	Type   asn1.ObjectIdentifier
	Values []asn1.RawValue `asn1:"set"`
}

// readAttributes reads what crypto/x509 ignores: attributes of other types, further values, and
// forms of names for which it has no field.
func (r *request) readAttributes() error {
	var info requestInfo
	if rest, err := asn1.Unmarshal(r.RawTBSCertificateRequest, &info); err != nil || len(rest) > 0 {
		return errors.New("the attributes cannot be read")
	}
	if info.Version != 0 {
		return fmt.Errorf("the version is %d, want 0", info.Version)
	}
	switch {
	case len(info.Attributes) == 0:
		return nil
	case len(info.Attributes) > 1:
		return fmt.Errorf("it has %d attributes, want one that requests extensions at most", len(info.Attributes))
	}
	extensionRequest := asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 14} // RFC 2985, section 5.4.2
	a := info.Attributes[0]
	if !a.Type.Equal(extensionRequest) || len(a.Values) != 1 {
		return fmt.Errorf("it has the attribute %s with %d values, want one that requests extensions",
			identifier(a.Type), len(a.Values))
	}
	var extensions []pkix.Extension
	if rest, err := asn1.Unmarshal(a.Values[0].FullBytes, &extensions); err != nil || len(rest) > 0 {
		return errors.New("the extensions cannot be read")
	}
	return r.readExtensions(extensions)
}

func (r *request) readExtensions(extensions []pkix.Extension) error {
	subjectAltName := asn1.ObjectIdentifier{2, 5, 29, 17}
	found := false
	for _, e := range extensions {
		switch {
		case !e.Id.Equal(subjectAltName):
			r.extensions = append(r.extensions, identifier(e.Id))
		case found:
			return errors.New("it has subject alternative names twice")
		default:
			found = true
			names, err := parseAltNames(e.Value)
			if err != nil {
				return err
			}
			r.names = names
		}
	}
	return nil
}

// subject returns the organization and the common name of a subject that consists of only
// these two, each in its own set.
func (r *request) subject() (organization, commonName string, err error) {
	var name pkix.RDNSequence
	if rest, err := asn1.Unmarshal(r.RawSubject, &name); err != nil || len(rest) > 0 {
		return "", "", errors.New("it cannot be read")
	}
	values := map[string][]string{}
	for _, set := range name {
		if len(set) != 1 {
			return "", "", errors.New("several attributes are in one set")
		}
		text, ok := set[0].Value.(string)
		if !ok {
			return "", "", fmt.Errorf("the attribute %s is not text", identifier(set[0].Type))
		}
		values[set[0].Type.String()] = append(values[set[0].Type.String()], text)
	}
	const typeOrganization, typeCommonName = "2.5.4.10", "2.5.4.3"
	o, cn := values[typeOrganization], values[typeCommonName]
	if len(o) != 1 || len(cn) != 1 || len(name) != 2 {
		return "", "", fmt.Errorf("it has %d organizations, %d common names and %d other attributes, want one, one and none",
			len(o), len(cn), len(name)-len(o)-len(cn))
	}
	return o[0], cn[0], nil
}

// identifier formats an object identifier for a message.
func identifier(id asn1.ObjectIdentifier) string { return cut(id.String(), mostQuoted) }
