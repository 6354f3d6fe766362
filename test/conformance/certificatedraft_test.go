package conformance

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	cryptorand "crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/certificate"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/approve"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// requestGenerator makes requests for certificates.
type requestGenerator struct {
	t    *testing.T
	keys []crypto.Signer
	weak crypto.Signer
}

func newRequestGenerator(t *testing.T) *requestGenerator {
	t.Helper()
	w := &requestGenerator{t: t}
	made := func(key crypto.Signer, err error) crypto.Signer {
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	_, edwards, err := ed25519.GenerateKey(cryptorand.Reader)
	w.keys = []crypto.Signer{
		made(ecdsa.GenerateKey(elliptic.P256(), cryptorand.Reader)), made(ecdsa.GenerateKey(elliptic.P384(), cryptorand.Reader)),
		made(rsa.GenerateKey(cryptorand.Reader, 2048)), made(edwards, err),
	}
	w.weak = made(ecdsa.GenerateKey(elliptic.P224(), cryptorand.Reader))
	return w
}

// requestDraft is a request as a kubelet makes it, or with a mutation.
type requestDraft struct {
	kind     approve.Kind
	mutation string
	key      crypto.Signer
	// template becomes the PKCS#10 request.
	template *x509.CertificateRequest
	request  *certificatesv1.CertificateSigningRequest
}

// draft makes a request: one in four like a kubelet's, the others with one or two
// mutations.
func (w *requestGenerator) draft(r *rand.Rand, n int) *requestDraft {
	w.t.Helper()
	d := w.plain(r, fmt.Sprintf("csr-%d", n))
	var after []requestMutation
	if r.IntN(4) > 0 {
		for range 1 + r.IntN(2) {
			mutation := requestMutations()[r.IntN(len(requestMutations()))]
			d.mutation += mutation.name + ". "
			if mutation.draft != nil {
				mutation.draft(w, r, d)
			} else {
				after = append(after, mutation)
			}
		}
	}
	text, err := certutil.MakeCSRFromTemplate(d.key, d.template)
	if err != nil {
		w.t.Fatalf("%s: %v", d.mutation, err)
	}
	d.request.Spec.Request = text
	for _, mutation := range after {
		mutation.spec(r, &d.request.Spec)
	}
	return d
}

// plain returns a request of a kubelet.
func (w *requestGenerator) plain(r *rand.Rand, name string) *requestDraft {
	d := &requestDraft{
		kind: []approve.Kind{approve.Client, approve.Renewal, approve.Serving}[r.IntN(3)], key: w.keys[r.IntN(len(w.keys))],
		template: &x509.CertificateRequest{Subject: pkix.Name{Organization: []string{"system:nodes"}, CommonName: "system:node:worker-1"}},
		request:  &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}},
	}
	spec := &d.request.Spec
	spec.SignerName, spec.Usages = certificatesv1.KubeAPIServerClientKubeletSignerName, certificate.DefaultKubeletClientGetUsages(d.key)
	spec.Username, spec.Groups = nodeidentity.User("worker-1")
	switch d.kind {
	case approve.Client:
		spec.Username, spec.Groups = v1alpha1.TokenUser("abc123"), []string{
			"system:bootstrappers", v1alpha1.TokenGroup, "system:authenticated",
		}
	case approve.Serving:
		spec.SignerName, spec.Usages = certificatesv1.KubeletServingSignerName, certificate.DefaultKubeletServingGetUsages(d.key)
		d.template.DNSNames = attestedNames()[:r.IntN(3)]
		for _, a := range attestedAddresses()[:1+r.IntN(2)] {
			d.template.IPAddresses = append(d.template.IPAddresses, net.ParseIP(a))
		}
	case approve.Renewal, approve.Other:
	}
	return d
}

// requestMutation changes a draft, or a request that has been made.
type requestMutation struct {
	name  string
	draft func(*requestGenerator, *rand.Rand, *requestDraft)
	spec  func(*rand.Rand, *certificatesv1.CertificateSigningRequestSpec)
}

func requestMutations() []requestMutation {
	return []requestMutation{
		{name: "organizations", draft: func(_ *requestGenerator, r *rand.Rand, d *requestDraft) {
			d.template.Subject.Organization = pick(r, nil, []string{"system:masters"}, []string{"system:nodes", "system:masters"},
				[]string{"system:nodes", "system:nodes"}, []string{"System:Nodes"}, []string{""})
		}},
		{name: "common name", draft: func(_ *requestGenerator, r *rand.Rand, d *requestDraft) {
			d.template.Subject.CommonName = pick(r, "", "worker-1", "system:node:", "system:node:worker-2", "System:Node:worker-1",
				"system:node:worker-1.", "system:node:Worker-1", "kubernetes-admin")
		}},
		{name: "more in the subject", draft: func(_ *requestGenerator, r *rand.Rand, d *requestDraft) {
			d.template.Subject.ExtraNames = append(d.template.Subject.ExtraNames, pkix.AttributeTypeAndValue{
				Type: pick(r, asn1.ObjectIdentifier{2, 5, 4, 11}, asn1.ObjectIdentifier{2, 5, 4, 5}, asn1.ObjectIdentifier{2, 5, 4, 3},
					asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57683, 2}), Value: "system:node:worker-1",
			})
		}},
		{name: "a set of two in the subject", draft: func(w *requestGenerator, _ *rand.Rand, d *requestDraft) {
			raw, err := asn1.Marshal(pkix.RDNSequence{
				{
					{Type: asn1.ObjectIdentifier{2, 5, 4, 10}, Value: "system:nodes"},
					{Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: "system:node:worker-1"},
				},
			})
			if err != nil {
				w.t.Fatal(err)
			}
			d.template.RawSubject = raw
		}},
		{name: "a weak key", draft: func(w *requestGenerator, _ *rand.Rand, d *requestDraft) { d.key = w.weak }},
		{name: "a DNS name", draft: func(_ *requestGenerator, r *rand.Rand, d *requestDraft) {
			d.template.DNSNames = append(d.template.DNSNames,
				pick(r, "worker-1", "worker-2", "kubernetes.default", "*", "Worker-1", "worker-1."))
		}},
		{name: "an address", draft: func(_ *requestGenerator, r *rand.Rand, d *requestDraft) {
			d.template.IPAddresses = append(d.template.IPAddresses, net.ParseIP(pick(r, "10.0.0.7", "10.0.0.8", "10.96.0.1", "fd00::8")))
		}},
		{name: "an e-mail address", draft: func(_ *requestGenerator, _ *rand.Rand, d *requestDraft) {
			d.template.EmailAddresses = []string{"worker-1@example.com"}
		}},
		{name: "a URI", draft: func(_ *requestGenerator, _ *rand.Rand, d *requestDraft) {
			d.template.URIs = []*url.URL{{Scheme: "spiffe", Host: "example.com"}}
		}},
		{name: "no names", draft: func(_ *requestGenerator, _ *rand.Rand, d *requestDraft) {
			d.template.DNSNames, d.template.IPAddresses = nil, nil
		}},
		{name: "names that Go does not read", draft: func(_ *requestGenerator, r *rand.Rand, d *requestDraft) {
			names := pick(r,
				[]byte{0x30, 4, 0x88, 2, 0x2a, 3},                                                   // a registered id
				[]byte{0x30, 10, 0x88, 2, 0x2a, 3, 0x87, 4, 10, 0, 0, 7},                            // and an address
				[]byte{0x30, 6, 0xa4, 4, 0x30, 2, 0x31, 0},                                          // a directory name
				[]byte{0x30, 14, 0x88, 2, 0x2a, 3, 0x82, 8, 'w', 'o', 'r', 'k', 'e', 'r', '-', '1'}, // and a DNS name
				[]byte{0x30, 0}, []byte{4, 0}, []byte{0x30, 3, 0x87, 1, 7},
			)
			extension := pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: names}
			d.template.ExtraExtensions = append(d.template.ExtraExtensions, extension)
		}},
		{name: "an extension", draft: func(_ *requestGenerator, r *rand.Rand, d *requestDraft) {
			d.template.ExtraExtensions = append(d.template.ExtraExtensions, pick(r,
				pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Value: []byte{0x30, 3, 1, 1, 0xff}},
				pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 37}, Value: []byte{0x30, 0}},
				pkix.Extension{Id: asn1.ObjectIdentifier{1, 2, 3}, Critical: true, Value: []byte{5, 0}}))
		}},
		{name: "usages", spec: func(r *rand.Rand, s *certificatesv1.CertificateSigningRequestSpec) {
			all := []certificatesv1.KeyUsage{
				"digital signature", "client auth", "server auth", "key encipherment", "cert sign", "any", "Client Auth",
				"digital signature",
			}
			r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			s.Usages = all[:r.IntN(5)]
		}},
		{name: "a usage more", spec: func(r *rand.Rand, s *certificatesv1.CertificateSigningRequestSpec) {
			s.Usages = append(s.Usages,
				pick[certificatesv1.KeyUsage](r, "key encipherment", "digital signature", "client auth", "server auth", "signing",
					"crl sign"))
		}},
		{name: "another signer", spec: func(r *rand.Rand, s *certificatesv1.CertificateSigningRequestSpec) {
			s.SignerName = pick(r, certificatesv1.KubeletServingSignerName, certificatesv1.KubeAPIServerClientKubeletSignerName)
		}},
		{name: "with a bootstrap token", spec: func(_ *rand.Rand, s *certificatesv1.CertificateSigningRequestSpec) {
			s.Username, s.Groups = v1alpha1.TokenUser("abc123"), []string{"system:bootstrappers", v1alpha1.TokenGroup}
		}},
		{name: "of another node", spec: func(_ *rand.Rand, s *certificatesv1.CertificateSigningRequestSpec) {
			s.Username, s.Groups = nodeidentity.User("worker-2")
		}},
		{name: "all of a node that the ledger does not have", draft: func(_ *requestGenerator, _ *rand.Rand, d *requestDraft) {
			d.template.Subject.CommonName = "system:node:worker-3"
			if d.kind != approve.Client {
				d.request.Spec.Username, d.request.Spec.Groups = nodeidentity.User("worker-3")
			}
		}},
		{name: "text around the block", spec: func(r *rand.Rand, s *certificatesv1.CertificateSigningRequestSpec) {
			s.Request = pick(r, append([]byte("x\n"), s.Request...), append(s.Request, "x"...), bytes.Repeat(s.Request, 2),
				append([]byte(" \n"), s.Request...))
		}},
		{name: "another block", spec: func(r *rand.Rand, s *certificatesv1.CertificateSigningRequestSpec) {
			block, _ := pem.Decode(s.Request)
			if block == nil {
				return
			}
			s.Request = pem.EncodeToMemory(pick(r,
				&pem.Block{Type: "NEW CERTIFICATE REQUEST", Bytes: block.Bytes}, &pem.Block{
					Type: "CERTIFICATE REQUEST", Headers: map[string]string{"a": "b"}, Bytes: block.Bytes,
				},
				&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: append(block.Bytes, 0)}))
		}},
		{name: "a byte changed", spec: func(r *rand.Rand, s *certificatesv1.CertificateSigningRequestSpec) {
			block, _ := pem.Decode(s.Request)
			if block == nil {
				return
			}
			block.Bytes[pick(r, len(block.Bytes)-1, r.IntN(len(block.Bytes)))] ^= 1 << r.IntN(8)
			s.Request = pem.EncodeToMemory(block)
		}},
	}
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }
