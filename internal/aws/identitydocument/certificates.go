package identitydocument

import (
	"bytes"
	//lint:ignore SA1019 One of the three forms in which AWS signs is DSA.
	"crypto/dsa"
	"crypto/rsa"
	"crypto/x509"
	"embed"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
)

// pinned are AWS's public certificates for identity documents, by form and region
// (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/regions-certs.html).
//
//go:embed certificates/*.pem
var pinned embed.FS

// pinnedForms are the files of pinned, and the forms that their keys sign.
var pinnedForms = []struct {
	file   string
	beside bool
}{
	{"certificates/dsa.pem", false},
	{"certificates/rsa2048.pem", false},
	{"certificates/rsa.pem", true},
}

// Verifier has the keys that AWS signs identity documents with. It is immutable and safe
// for concurrent use.
type Verifier struct {
	// messages are the certificates for messages, by their names.
	messages map[string][]*certificate
	// signatures are the certificates for detached signatures, by region. Everywhere has
	// the certificates for all regions, which are in each list of signatures too.
	signatures map[string][]*certificate
	everywhere []*certificate
}

// certificate is a key of AWS with its regions.
type certificate struct {
	key    any
	serial string
	// regions is nil for every region.
	regions []string
}

func (c *certificate) signsIn(region string) bool {
	return c.regions == nil || slices.Contains(c.regions, region)
}

func (c *certificate) String() string {
	return fmt.Sprintf("serial number %s, of %s", c.serial, strings.Join(c.regions, ", "))
}

// NewVerifier returns a verifier with the certificates of this package and additional
// ones. Those sign in every region and in each form that fits their key. Certificates
// with other keys than RSA and DSA are ignored.
//
// Only the keys of certificates matter. AWS publishes them for as long as they sign, and
// they form no chain, so their dates are not checked.
func NewVerifier(more []*x509.Certificate) *Verifier {
	v := &Verifier{messages: map[string][]*certificate{}, signatures: map[string][]*certificate{}}
	for _, form := range pinnedForms {
		text, err := pinned.ReadFile(form.file)
		if err != nil {
			panic(err)
		}
		known, err := parsePinned(text)
		if err != nil {
			panic(fmt.Errorf("%s: %w", form.file, err))
		}
		for _, one := range known {
			v.pin(one, form.beside)
		}
	}
	for _, x := range more {
		v.add(x)
	}
	return v
}

func (v *Verifier) pin(one regionCertificate, beside bool) {
	signer := &certificate{key: one.certificate.PublicKey, serial: one.certificate.SerialNumber.Text(16), regions: one.regions}
	if !beside {
		name := certificateName(one.certificate)
		v.messages[name] = append(v.messages[name], signer)
		return
	}
	for _, region := range one.regions {
		v.signatures[region] = append(v.signatures[region], signer)
	}
}

func (v *Verifier) add(x *x509.Certificate) {
	signer := &certificate{key: x.PublicKey, serial: x.SerialNumber.Text(16)}
	switch x.PublicKey.(type) {
	case *rsa.PublicKey:
		v.everywhere = append(v.everywhere, signer)
		for region := range v.signatures {
			v.signatures[region] = append(v.signatures[region], signer)
		}
	case *dsa.PublicKey:
	default:
		return
	}
	name := certificateName(x)
	v.messages[name] = append(v.messages[name], signer)
}

// signerName returns the name of a certificate in a message: its issuer in DER, and the
// content of its serial number in DER.
func signerName(issuer, serial []byte) string { return string(issuer) + string(serial) }

func certificateName(x *x509.Certificate) string {
	serial, err := asn1.Marshal(x.SerialNumber)
	if err != nil {
		panic(err)
	}
	return signerName(x.RawIssuer, serial[2:])
}

// regionCertificate is a certificate with the regions in which it signs.
type regionCertificate struct {
	regions     []string
	certificate *x509.Certificate
}

// parsePinned reads certificates in PEM. The lines before each are its regions. Lines
// that begin with # are comments.
func parsePinned(text []byte) ([]regionCertificate, error) {
	begin := []byte("-----BEGIN CERTIFICATE-----")
	var found []regionCertificate
	for {
		head, _, more := bytes.Cut(text, begin)
		if !more {
			return found, nil
		}
		block, rest := pem.Decode(text[len(head):])
		if block == nil {
			return nil, fmt.Errorf("certificate %d is not PEM", len(found)+1)
		}
		x, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", len(found)+1, err)
		}
		var regions []string
		for line := range strings.Lines(string(head)) {
			if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
				regions = append(regions, line)
			}
		}
		if len(regions) == 0 {
			return nil, fmt.Errorf("certificate %d has no region", len(found)+1)
		}
		found = append(found, regionCertificate{regions, x})
		text = rest
	}
}
