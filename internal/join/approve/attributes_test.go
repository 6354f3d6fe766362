package approve_test

import (
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/join/approve"
	"github.com/node-authorizer/node-authorizer/verdict"
)

func der(t testing.TB, text []byte) []byte {
	t.Helper()
	found, _ := pem.Decode(text)
	if found == nil {
		t.Fatalf("no PEM block in %q", text)
	}
	return found.Bytes
}

// signed returns a signed request with any attributes, which crypto/x509 cannot create.
func signed(t testing.TB, version int, attributes ...asn1.RawValue) []byte {
	t.Helper()
	key := theKey(t)
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	plain, err := x509.ParseCertificateRequest(der(t, encoded(t, key, template("system:node:worker-1"))))
	if err != nil {
		t.Fatal(err)
	}
	info := marshal(t, struct {
		Version            int
		Subject, PublicKey asn1.RawValue
		Attributes         []asn1.RawValue `asn1:"tag:0,set"`
	}{version, asn1.RawValue{FullBytes: plain.RawSubject}, asn1.RawValue{FullBytes: public}, attributes})
	digest := sha256.Sum256(info)
	signature, err := key.Sign(rand.Reader, digest[:], crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	return block(marshal(t, struct {
		Info      asn1.RawValue
		Algorithm pkix.AlgorithmIdentifier
		Signature asn1.BitString
	}{
		asn1.RawValue{FullBytes: info},
		pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{1, 2, 840, 10045, 4, 3, 2}},
		asn1.BitString{Bytes: signature, BitLength: 8 * len(signature)},
	}))
}

func marshal(t testing.TB, value any) []byte {
	t.Helper()
	encoded, err := asn1.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

// attributeOf returns an attribute with values.
func attributeOf(t testing.TB, oid asn1.ObjectIdentifier, values ...[]byte) asn1.RawValue {
	t.Helper()
	set := make([]asn1.RawValue, len(values))
	for i, v := range values {
		set[i] = asn1.RawValue{FullBytes: v}
	}
	return asn1.RawValue{FullBytes: marshal(t, struct {
		Type   asn1.ObjectIdentifier
		Values []asn1.RawValue `asn1:"set"`
	}{oid, set})}
}

// TestAttributes has requests of which crypto/x509 ignores a part.
func TestAttributes(t *testing.T) {
	extensionRequest := asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 14}
	challengePassword := asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 7}
	names := pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: []byte{0x30, 3, 0x82, 1, 'x'}}
	none, one := marshal(t, []pkix.Extension{}), marshal(t, []pkix.Extension{names})
	twice := marshal(t, []pkix.Extension{names, names})
	for _, tc := range []struct {
		attack  string
		request []byte
		want    verdict.Code
	}{
		{"no attributes", signed(t, 0), ""},
		{"a request for no extensions", signed(t, 0, attributeOf(t, extensionRequest, none)), ""},
		{"names", signed(t, 0, attributeOf(t, extensionRequest, one)), approve.SubjectAltNamesNotAllowed},
		{"names twice", signed(t, 0, attributeOf(t, extensionRequest, twice)), approve.CSRMalformed},
		{
			"names in a second attribute",
			signed(t, 0, attributeOf(t, extensionRequest, none), attributeOf(t, extensionRequest, one)), approve.CSRMalformed,
		},
		{"names in a second value", signed(t, 0, attributeOf(t, extensionRequest, none, one)), approve.CSRMalformed},
		{"an attribute without a value", signed(t, 0, attributeOf(t, extensionRequest)), approve.CSRMalformed},
		{"a challenge password", signed(t, 0, attributeOf(t, challengePassword, []byte{0x0c, 1, 'x'})), approve.CSRMalformed},
		{"another version", signed(t, 1), approve.CSRMalformed},
	} {
		t.Run(tc.attack, func(t *testing.T) {
			q := clientQuestion(t)
			q.Request.Spec.Request = tc.request
			wants(t, approve.Decide(q), tc.want)
		})
	}
}

// checkApproved checks an approved request as crypto/x509 parses it.
func checkApproved(t *testing.T, text []byte, kind approve.Kind) {
	t.Helper()
	r, err := x509.ParseCertificateRequest(der(t, text))
	if err != nil || r.CheckSignature() != nil {
		t.Fatalf("approved without a valid signature: %v", err)
	}
	if r.Subject.String() != "CN=system:node:worker-1,O=system:nodes" {
		t.Errorf("approved for %s", r.Subject)
	}
	if len(r.EmailAddresses)+len(r.URIs) > 0 || (kind != approve.Serving && len(r.DNSNames)+len(r.IPAddresses) > 0) {
		t.Errorf("approved with %v %v %v %v", r.EmailAddresses, r.URIs, r.DNSNames, r.IPAddresses)
	}
	for _, name := range r.DNSNames {
		if name != "worker-1" {
			t.Errorf("approved for %q", name)
		}
	}
	for _, address := range r.IPAddresses {
		if address.String() != "10.0.0.7" && address.String() != "fd00::7" {
			t.Errorf("approved for %s", address)
		}
	}
}
