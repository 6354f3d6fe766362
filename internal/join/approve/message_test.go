package approve_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"net"
	"strconv"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/approve"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// Messages are short even if the requester writes as much as possible to each part of the
// request that a message quotes.
func TestMessagesAreShort(t *testing.T) {
	const many = 20000
	const most = 1000 // with the name of the request it fits into an event of 1024 bytes
	evil := strings.Repeat("\n\x1b[31m\u2028", many)
	attribute := func(id asn1.ObjectIdentifier, value any) pkix.AttributeTypeAndValue {
		return pkix.AttributeTypeAndValue{Type: id, Value: value}
	}
	longID := asn1.ObjectIdentifier{1, 2}
	for range many {
		longID = append(longID, 1<<30)
	}
	sequence := func(name []byte) []byte {
		der, err := asn1.Marshal(asn1.RawValue{
			Class: asn1.ClassUniversal, Tag: asn1.TagSequence, IsCompound: true,
			Bytes: []byte(strings.Repeat(string(name), many)),
		})
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	rawSubject := func(rdn ...pkix.AttributeTypeAndValue) func(*x509.CertificateRequest) {
		return func(r *x509.CertificateRequest) {
			var sets pkix.RDNSequence
			for _, a := range rdn {
				sets = append(sets, pkix.RelativeDistinguishedNameSET{a})
			}
			raw, err := asn1.Marshal(sets)
			if err != nil {
				t.Fatal(err)
			}
			r.RawSubject = raw
		}
	}
	having := func(change func(*x509.CertificateRequest)) func(*approve.Question) {
		return func(q *approve.Question) {
			made := template("system:node:worker-1")
			if q.Request.Spec.SignerName == certificatesv1.KubeletServingSignerName {
				made = servingTemplate("worker-1")
			}
			change(made)
			q.Request.Spec.Request = encoded(t, theKey(t), made)
		}
	}
	// as returns a request of a node with any name.
	as := func(node string) func(*approve.Question) {
		return func(q *approve.Question) {
			user, groups := nodeidentity.User(node)
			q.Request.Spec.Username, q.Request.Spec.Groups = user, groups
			made := template(user)
			if q.Request.Spec.SignerName == certificatesv1.KubeletServingSignerName {
				made = servingTemplate("worker-1")
				made.Subject.CommonName = user
			}
			q.Request.Spec.Request = encoded(t, theKey(t), made)
		}
	}
	const all = "client renewal serving"
	for _, tc := range []struct {
		part   string
		kinds  string
		change func(*approve.Question)
	}{
		{"a common name", all, having(func(r *x509.CertificateRequest) { r.Subject.CommonName = "system:node:" + evil })},
		{"an invalid common name", all, having(func(r *x509.CertificateRequest) { r.Subject.CommonName = evil })},
		{"an organization", all, having(func(r *x509.CertificateRequest) { r.Subject.Organization = []string{evil} })},
		{"characters that are long when they are escaped", all, having(func(r *x509.CertificateRequest) {
			r.Subject.Organization = []string{strings.Repeat("\U0001f600", many)}
		})},
		{"an attribute of the subject that is not text", all, having(rawSubject(attribute(longID, 7)))},
		{"an extension", all, having(func(r *x509.CertificateRequest) {
			r.ExtraExtensions = []pkix.Extension{{Id: longID, Value: []byte{5, 0}}}
		})},
		{"extensions", all, having(func(r *x509.CertificateRequest) {
			for i := range many {
				extension := pkix.Extension{Id: asn1.ObjectIdentifier{1, 2, i}, Value: []byte{5, 0}}
				r.ExtraExtensions = append(r.ExtraExtensions, extension)
			}
		})},
		{"an attribute", all, having(func(r *x509.CertificateRequest) {
			//lint:ignore SA1019 there is no other way to make one
			r.Attributes = []pkix.AttributeTypeAndValueSET{{Type: longID, Value: [][]pkix.AttributeTypeAndValue{{attribute(longID, "x")}}}}
		})},
		{"a DNS name", all, having(func(r *x509.CertificateRequest) {
			r.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: sequence([]byte("\x82\x04a\n\x1b\xff"))}}
		})},
		{"addresses", all, having(func(r *x509.CertificateRequest) {
			for range many {
				r.IPAddresses = append(r.IPAddresses, net.ParseIP("fd00:1111:2222:3333:4444:5555:6666:7777"))
			}
		})},
		{"names of other forms", all, having(func(r *x509.CertificateRequest) {
			r.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: sequence([]byte("\x87\x01a"))}}
		})},
		{"a usage", all, func(q *approve.Question) {
			q.Request.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.KeyUsage(evil)}
		}},
		{"usages", all, func(q *approve.Question) {
			for i := range many {
				q.Request.Spec.Usages = append(q.Request.Spec.Usages, certificatesv1.KeyUsage("usage "+strconv.Itoa(i)))
			}
		}},
		{"the name of an unattested node", "renewal serving", as(evil)},
		{"the name of an unattested node that is approved", "renewal serving", func(q *approve.Question) {
			as(evil)(q)
			q.Entries, q.Unattested, q.ServingAddresses = nil, approve.ApproveUnattested, approve.ServingLedgerAndNode
		}},
		{"the name of a node that is revoked", "renewal serving", func(q *approve.Question) {
			as(evil)(q)
			q.Entries[0].Spec.NodeName, q.Entries[0].Status.Phase = evil, v1alpha1.Revoked
		}},
		{"the name of a node with the certificate of another machine", "renewal serving", func(q *approve.Question) {
			as(evil)(q)
			other := newEntry()
			other.UID, other.Status.Credentials = "uid-0", []string{"X509SHA256=aa"}
			q.Entries[0].Spec.NodeName, q.Others = evil, []*v1alpha1.NodeAttestation{other}
			q.Request.Spec.Extra = with("X509SHA256=aa")
		}},
		{"the name of a node that may not have a serving certificate", "serving", func(q *approve.Question) {
			as(evil)(q)
			q.Entries[0].Spec.NodeName, q.SelfNodeServer = evil, false
		}},
	} {
		for kind, question := range wellFormed(t) {
			if !strings.Contains(tc.kinds, kind) {
				continue
			}
			t.Run(kind+"/"+tc.part, func(t *testing.T) {
				q := question(t)
				tc.change(q)
				answer := approve.Decide(q)
				for what, text := range map[string]string{"message": answer.Message, "node": answer.Node} {
					if len(text) > most {
						t.Errorf("the %s has %d bytes, want %d at most: %.200s", what, len(text), most, text)
					}
					if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
						t.Errorf("the %s is not plain text: %.200q", what, text)
					}
				}
				if answer.Code == approve.NotOurs || answer.Message == "" {
					t.Errorf("%+v", answer)
				}
			})
		}
	}
}
