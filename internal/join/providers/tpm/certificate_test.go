package tpm

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"strings"
	"testing"
	"time"
)

// vendor issues certificates for endorsement keys.
type vendor struct {
	t           testing.TB
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
}

func newVendor(t testing.TB) *vendor {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Vendor"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2022, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	v := &vendor{t: t, key: key}
	if v.certificate, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return v
}

func (v *vendor) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(v.certificate)
	return pool
}

// issue returns a certificate of an endorsement key, as vendors make it: with vendor and model in a critical alternative name. It is
// valid until 2020, as the one of a TPM that is older than its certificate says.
func (v *vendor) issue(key crypto.PublicKey, change func(*x509.Certificate)) []byte {
	v.t.Helper()
	name, err := asn1.Marshal([]pkix.AttributeTypeAndValue{{Type: asn1.ObjectIdentifier{2, 23, 133, 2, 1}, Value: "id:49465800"}})
	if err != nil {
		v.t.Fatal(err)
	}
	set, err := asn1.Marshal(asn1.RawValue{Class: asn1.ClassUniversal, Tag: asn1.TagSet, IsCompound: true, Bytes: inside(v.t, name)})
	if err != nil {
		v.t.Fatal(err)
	}
	rdn, err := asn1.Marshal(asn1.RawValue{Class: asn1.ClassUniversal, Tag: asn1.TagSequence, IsCompound: true, Bytes: set})
	if err != nil {
		v.t.Fatal(err)
	}
	names, err := asn1.Marshal([]asn1.RawValue{{Class: asn1.ClassContextSpecific, Tag: 4, IsCompound: true, Bytes: rdn}})
	if err != nil {
		v.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), BasicConstraintsValid: true,
		NotBefore: time.Date(2016, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC),
		ExtraExtensions:    []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Critical: true, Value: names}},
		UnknownExtKeyUsage: []asn1.ObjectIdentifier{{2, 23, 133, 8, 1}},
	}
	if change != nil {
		change(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, v.certificate, key, v.key)
	if err != nil {
		v.t.Fatal(err)
	}
	return der
}

// inside returns the content of an element.
func inside(t testing.TB, der []byte) []byte {
	t.Helper()
	var element asn1.RawValue
	if _, err := asn1.Unmarshal(der, &element); err != nil {
		t.Fatal(err)
	}
	return element.Bytes
}

func TestCertificatesOfEndorsementKeys(t *testing.T) {
	v, f := newVendor(t), newFakeTPM(t)
	for _, tc := range []struct {
		rule    string
		options Options
		text    []byte
		code    string // empty: accepted
		says    string
	}{
		{
			rule: "an expired certificate vouches by default", options: Options{Authorities: v.pool()}, text: v.issue(&f.ek.PublicKey, nil),
			says: "CN=Vendor vouches for the TPM, by a certificate that has expired at 2020-01-01",
		},
		{
			rule:    "an expired certificate is refused where it is not accepted",
			options: Options{Authorities: v.pool(), TPM: settings{RejectExpiredCertificates: true}},
			text:    v.issue(&f.ek.PublicKey, nil), code: "EKNotTrusted", says: "has expired",
		},
		{
			rule: "TPMs store more after the certificate's end", options: Options{Authorities: v.pool()},
			text: append(v.issue(&f.ek.PublicKey, nil), make([]byte, 100)...), says: "CN=Vendor vouches",
		},
		{
			rule: "the authority of the vendor is not configured", options: Options{Authorities: newVendor(t).pool()},
			text: v.issue(&f.ek.PublicKey, nil), code: "EKNotTrusted", says: "unknown authority",
		},
		{rule: "there is no certificate", options: Options{Authorities: v.pool()}, code: "EKNotTrusted", says: "has no certificate"},
		{
			rule: "the certificate cannot be read", options: Options{Authorities: v.pool()}, text: []byte("x"), code: "EKNotTrusted",
			says: "cannot be read",
		},
		{
			rule: "the certificate is for something else", options: Options{Authorities: v.pool()},
			text: v.issue(&f.ek.PublicKey, func(c *x509.Certificate) {
				c.UnknownExtKeyUsage, c.ExtKeyUsage = nil, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
			}),
			code: "EKNotTrusted", says: "is not for an endorsement key",
		},
		{
			rule: "the certificate is for signatures only", options: Options{Authorities: v.pool()},
			text: v.issue(&f.ek.PublicKey, func(c *x509.Certificate) {
				c.UnknownExtKeyUsage, c.KeyUsage = nil, x509.KeyUsageDigitalSignature
			}),
			code: "EKNotTrusted", says: "is not for an endorsement key",
		},
		{
			rule: "the certificate is for encryption", options: Options{Authorities: v.pool()},
			text: v.issue(&f.ek.PublicKey, func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageKeyEncipherment }),
			says: "vouches for the TPM",
		},
		{
			rule: "the certificate is one of an authority", options: Options{Authorities: v.pool()},
			text: v.issue(&f.ek.PublicKey, func(c *x509.Certificate) { c.IsCA = true }), code: "EKNotTrusted", says: "one of an authority",
		},
		{
			rule: "a critical extension is unknown", options: Options{Authorities: v.pool()},
			text: v.issue(&f.ek.PublicKey, func(c *x509.Certificate) {
				unknown := pkix.Extension{Id: asn1.ObjectIdentifier{1, 2, 3}, Critical: true, Value: []byte{5, 0}}
				c.ExtraExtensions = append(c.ExtraExtensions, unknown)
			}),
			code: "EKNotTrusted", says: "critical extension",
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			tc.options.NodeName = "tpm-{{.EKHash}}"
			s := newService(t, tc.options)
			k := f.keys()
			k.EKCertificate = tc.text
			id, err := s.ask(evidence{Answer: f.answer(s.challenged(k))})
			if tc.code != "" {
				refusedAs(t, id, err, tc.code)
				if !strings.Contains(err.Error(), tc.says) {
					t.Errorf("%v, want %s", err, tc.says)
				}
				return
			}
			if err != nil || !strings.Contains(id.Description, tc.says) {
				t.Errorf("got %+v, %v, want %s", id, err, tc.says)
			}
		})
	}
}

func TestNameTemplates(t *testing.T) {
	for text, fine := range map[string]bool{
		"tpm-{{.EKHash}}": true, "{{ .EKHash }}.edge.example.com": true, "tpm": false, "tpm-{{.Serial}}": false, "tpm-{{.EKHash": false,
	} {
		if _, err := ParseName(text); (err == nil) != fine {
			t.Errorf("%s: %v", text, err)
		}
	}
}
