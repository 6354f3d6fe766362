package identitydocument_test

import (
	"crypto"
	//lint:ignore SA1019 One of the three forms in which AWS signs is DSA.
	"crypto/dsa"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/x509"
	"encoding/asn1"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/aws/identitydocument"
)

// taken is the date on which the certificates were copied from AWS's page. None had
// expired.
var taken = time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)

func TestPinnedCertificates(t *testing.T) {
	for _, tc := range []struct {
		file          string
		bits, regions int
	}{{"dsa", 1024, 36}, {"rsa", 1024, 36}, {"rsa2048", 2048, 39}} {
		t.Run(tc.file, func(t *testing.T) {
			seen := map[string]bool{}
			for _, one := range identitydocument.PinnedCertificates(tc.file) {
				name := strings.Join(one.Regions, ", ")
				for _, region := range one.Regions {
					if seen[region] {
						t.Errorf("%s has two certificates", region)
					}
					seen[region] = true
				}
				if taken.After(one.Certificate.NotAfter) {
					t.Errorf("%s: expired on %s", name, one.Certificate.NotAfter)
				}
				if err := selfSigned(one.Certificate); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if bits := keyBits(one.Certificate); bits != tc.bits && !isChina(one.Regions) {
					t.Errorf("%s: a key of %d bits, want %d", name, bits, tc.bits)
				}
			}
			if len(seen) != tc.regions {
				t.Errorf("%d regions, want %d", len(seen), tc.regions)
			}
		})
	}
}

// isChina reports whether regions are those for which AWS publishes an RSA certificate in
// the column of DSA.
func isChina(regions []string) bool {
	return slices.Equal(regions, []string{"cn-north-1", "cn-northwest-1"})
}

func keyBits(c *x509.Certificate) int {
	switch key := c.PublicKey.(type) {
	case *rsa.PublicKey:
		return key.N.BitLen()
	case *dsa.PublicKey:
		return key.P.BitLen()
	}
	return 0
}

// selfSigned checks the signature of a certificate with its own key, which shows that it
// is complete.
func selfSigned(c *x509.Certificate) error {
	switch key := c.PublicKey.(type) {
	case *rsa.PublicKey:
		if c.SignatureAlgorithm == x509.SHA1WithRSA {
			// The standard library no longer checks these signatures.
			sum := sha1.Sum(c.RawTBSCertificate)
			return rsa.VerifyPKCS1v15(key, crypto.SHA1, sum[:], c.Signature)
		}
		return c.CheckSignature(c.SignatureAlgorithm, c.RawTBSCertificate, c.Signature)
	case *dsa.PublicKey:
		var numbers struct{ R, S *big.Int }
		if _, err := asn1.Unmarshal(c.Signature, &numbers); err != nil {
			return err
		}
		sum := sha1.Sum(c.RawTBSCertificate)
		if !dsa.Verify(key, sum[:], numbers.R, numbers.S) {
			return fmt.Errorf("the signature is not its own")
		}
		return nil
	}
	return fmt.Errorf("a key of type %T", c.PublicKey)
}

func TestDatesOfCertificatesAreIgnored(t *testing.T) {
	expired := rsaSigner().certificate()
	expired.NotBefore, expired.NotAfter = taken.AddDate(-10, 0, 0), taken.AddDate(-5, 0, 0)
	message := rsaSigner().message([]byte(usual), nil)
	verifier := identitydocument.NewVerifier([]*x509.Certificate{expired})
	if _, err := verifier.Verify(&identitydocument.Evidence{Document: message}); err != nil {
		t.Error(err)
	}
}

func TestCertificatesSignInTheirRegionOnly(t *testing.T) {
	message := rsaSigner().message([]byte(usual), nil)
	for _, tc := range []struct {
		region string
		good   bool
	}{{"eu-west-1", true}, {"eu-west-2", false}} {
		t.Run(tc.region, func(t *testing.T) {
			known := identitydocument.VerifierOfRegion(tc.region, rsaSigner().certificate())
			_, err := known.Verify(&identitydocument.Evidence{Document: message})
			if tc.good {
				if err != nil {
					t.Error(err)
				}
				return
			}
			refused(t, err, identitydocument.SignerUnknown)
		})
	}
	t.Run("beside the document", func(t *testing.T) {
		evidence := &identitydocument.Evidence{Document: []byte(usual), Signature: rsaSigner().sign([]byte(usual))}
		if _, err := identitydocument.VerifierOfRegion("eu-west-1", rsaSigner().certificate()).Verify(evidence); err != nil {
			t.Error(err)
		}
		_, err := identitydocument.VerifierOfRegion("eu-west-2", rsaSigner().certificate()).Verify(evidence)
		refused(t, err, identitydocument.SignerUnknown)
		_, err = identitydocument.NewVerifier(nil).Verify(evidence)
		refused(t, err, identitydocument.SignatureInvalid)
	})
}

func TestAdditionalCertificatesSignEverywhere(t *testing.T) {
	more := []*x509.Certificate{
		rsaSigner().certificate(), dsaSigner().certificate(), {PublicKey: "of another kind", SerialNumber: big.NewInt(1)},
	}
	known := identitydocument.NewVerifier(more)
	for _, region := range []string{"eu-west-1", "ap-southeast-2", "xx-nowhere-9"} {
		document := []byte(strings.ReplaceAll(usual, "eu-west-1", region))
		for _, evidence := range []*identitydocument.Evidence{
			{Document: rsaSigner().message(document, nil)},
			{Document: dsaSigner().message(document, nil)},
			{Document: document, Signature: rsaSigner().sign(document)},
		} {
			if got, err := known.Verify(evidence); err != nil || got.Region != region {
				t.Errorf("%s: got %v, %v", region, got, err)
			}
		}
	}
	_, err := known.Verify(&identitydocument.Evidence{Document: []byte(usual), Signature: thief().sign([]byte(usual))})
	refused(t, err, identitydocument.SignatureInvalid)

	unknown := []byte(strings.ReplaceAll(usual, "eu-west-1", "xx-nowhere-9"))
	_, err = identitydocument.NewVerifier(nil).Verify(&identitydocument.Evidence{Document: unknown, Signature: thief().sign(unknown)})
	refused(t, err, identitydocument.SignerUnknown)
}

func TestCertificateFilesHaveRegions(t *testing.T) {
	const pem = "-----BEGIN CERTIFICATE-----\n%s\n-----END CERTIFICATE-----\n"
	whole := fmt.Sprintf(pem, text(identitydocument.PinnedCertificates("rsa2048")[0].Certificate.Raw))
	for _, tc := range []struct{ rule, text, want string }{
		{"nothing", "# only a remark\n", ""},
		{"not PEM", "eu-west-1\n-----BEGIN CERTIFICATE-----\n", "certificate 1 is not PEM"},
		{"no certificate", "eu-west-1\n" + fmt.Sprintf(pem, "AAAA"), "certificate 1: "},
		{"a certificate without a region", "# of nowhere\n" + whole, "certificate 1 has no region"},
		{"a second certificate without a region", "eu-west-1\neu-west-2\n" + whole + whole, "certificate 2 has no region"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			n, err := identitydocument.ParsePinned([]byte(tc.text))
			if tc.want == "" {
				if err != nil || n != 0 {
					t.Errorf("got %d, %v", n, err)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}
