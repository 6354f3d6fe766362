package approve_test

import (
	"bytes"
	"crypto/elliptic"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/approve"
	"github.com/node-authorizer/node-authorizer/verdict"
)

func servingTemplate(sans ...string) *x509.CertificateRequest {
	made := template("system:node:worker-1")
	for _, san := range sans {
		if a, err := netip.ParseAddr(san); err == nil {
			made.IPAddresses = append(made.IPAddresses, a.AsSlice())
		} else {
			made.DNSNames = append(made.DNSNames, san)
		}
	}
	return made
}

func wellFormed(t *testing.T) map[string]func(testing.TB) *approve.Question {
	t.Helper()
	return map[string]func(testing.TB) *approve.Question{
		"client": clientQuestion, "renewal": renewalQuestion, "serving": servingQuestion,
	}
}

func TestWellFormedRequestsAreApproved(t *testing.T) {
	for kind, question := range wellFormed(t) {
		answer := approve.Decide(question(t))
		if answer.Outcome != approve.Approve || answer.Kind.String() != kind || answer.Node != "worker-1" {
			t.Errorf("%s: %+v", kind, answer)
		}
	}
}

// TestShapes changes valid requests of each kind. A request whose content is not allowed is
// denied without any facts about the machine.
func TestShapes(t *testing.T) {
	type spec = certificatesv1.CertificateSigningRequestSpec
	with := func(change func(*x509.CertificateRequest)) func(*testing.T, *spec) {
		return func(t *testing.T, s *spec) {
			made := template("system:node:worker-1")
			if s.SignerName == certificatesv1.KubeletServingSignerName {
				made = servingTemplate("worker-1", "10.0.0.7")
			}
			change(made)
			s.Request = encoded(t, theKey(t), made)
		}
	}
	organization := func(names ...string) func(*testing.T, *spec) {
		return with(func(r *x509.CertificateRequest) { r.Subject.Organization = names })
	}
	commonName := func(name string) func(*testing.T, *spec) {
		return with(func(r *x509.CertificateRequest) { r.Subject.CommonName = name })
	}
	request := func(change func(text []byte) []byte) func(*testing.T, *spec) {
		return func(_ *testing.T, s *spec) { s.Request = change(s.Request) }
	}
	subject := func(rdn ...pkix.RelativeDistinguishedNameSET) func(*testing.T, *spec) {
		return with(func(r *x509.CertificateRequest) {
			raw, err := asn1.Marshal(pkix.RDNSequence(rdn))
			if err != nil {
				t.Fatal(err)
			}
			r.RawSubject = raw
		})
	}
	attribute := func(last int, value any) pkix.AttributeTypeAndValue {
		return pkix.AttributeTypeAndValue{Type: asn1.ObjectIdentifier{2, 5, 4, last}, Value: value}
	}
	o, cn := attribute(10, "system:nodes"), attribute(3, "system:node:worker-1")
	type attributes = []pkix.AttributeTypeAndValue
	extension := func(oid asn1.ObjectIdentifier, value []byte) func(*testing.T, *spec) {
		return with(func(r *x509.CertificateRequest) {
			r.ExtraExtensions = append(r.ExtraExtensions, pkix.Extension{Id: oid, Value: value})
		})
	}
	usages := func(usages ...certificatesv1.KeyUsage) func(*testing.T, *spec) {
		return func(_ *testing.T, s *spec) { s.Usages = usages }
	}
	for _, tc := range []struct {
		attack string
		kinds  string
		change func(*testing.T, *spec)
		want   verdict.Code // empty: approved
	}{
		{"no PEM", "all", request(func([]byte) []byte { return []byte("x") }), approve.CSRMalformed},
		{"empty", "all", request(func([]byte) []byte { return nil }), approve.CSRMalformed},
		{"text before the block", "all", request(func(text []byte) []byte { return append([]byte("x\n"), text...) }), approve.CSRMalformed},
		{"two blocks", "all", request(func(text []byte) []byte { return bytes.Repeat(text, 2) }), approve.CSRMalformed},
		{"text after the block", "all", request(func(text []byte) []byte { return append(text, "x"...) }), approve.CSRMalformed},
		{"space around the block", "all", request(func(text []byte) []byte { return []byte(" \n" + string(text) + "\n\n") }), ""},
		{"another block", "all", request(func(text []byte) []byte {
			return bytes.ReplaceAll(text, []byte("CERTIFICATE REQUEST"), []byte("NEW CERTIFICATE REQUEST"))
		}), approve.CSRMalformed},
		{"headers in the block", "all", request(func(text []byte) []byte {
			return bytes.Replace(text, []byte("-----\n"), []byte("-----\nProc-Type: 4,ENCRYPTED\n\n"), 1)
		}), approve.CSRMalformed},
		{"bytes after the request", "all", func(t *testing.T, s *spec) {
			s.Request = block(append(der(t, s.Request), 0))
		}, approve.CSRMalformed},
		{"an invalid signature", "all", func(t *testing.T, s *spec) {
			raw := der(t, s.Request)
			raw[len(raw)-1] ^= 1
			s.Request = block(raw)
		}, approve.CSRMalformed},
		{"RSA of 1024 bits", "all", func(t *testing.T, s *spec) {
			t.Setenv("GODEBUG", "rsa1024min=0")
			s.Request = encoded(t, rsaKey(t, 1024), template("system:node:worker-1"))
		}, approve.WeakKey},
		{"P-224", "all", func(t *testing.T, s *spec) {
			s.Request = encoded(t, ecdsaKey(t, elliptic.P224()), template("system:node:worker-1"))
		}, approve.WeakKey},
		{"another organization", "all", organization("system:masters"), approve.WrongSubject},
		{"an extra organization", "all", organization("system:nodes", "system:masters"), approve.WrongSubject},
		{"the organization twice", "all", organization("system:nodes", "system:nodes"), approve.WrongSubject},
		{"no organization", "all", organization(), approve.WrongSubject},
		{"an empty organization", "all", organization(""), approve.WrongSubject},
		{"the organization in another case", "all", organization("System:Nodes"), approve.WrongSubject},
		{"an organizational unit", "all", with(func(r *x509.CertificateRequest) {
			r.Subject.OrganizationalUnit = []string{"x"}
		}), approve.WrongSubject},
		{"a UID in the subject", "all", with(func(r *x509.CertificateRequest) {
			uid := asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57683, 2}
			r.Subject.ExtraNames = []pkix.AttributeTypeAndValue{{Type: uid, Value: "another-uid"}}
		}), approve.WrongSubject},
		{
			"two common names", "all",
			subject(attributes{o}, attributes{cn}, attributes{attribute(3, "system:node:worker-2")}), approve.WrongSubject,
		},
		{"organization and common name in one set", "all", subject(attributes{o, cn}), approve.WrongSubject},
		{"common name before organization", "all", subject(attributes{cn}, attributes{o}), ""},
		{"a common name that is not text", "all", subject(attributes{o}, attributes{attribute(3, 7)}), approve.WrongSubject},
		{"no common name", "all", commonName(""), approve.WrongSubject},
		{"a common name without a node name", "all", commonName("system:node:"), approve.WrongSubject},
		{"the common name of another user", "all", commonName("kubernetes-admin"), approve.WrongSubject},
		{"the prefix in another case", "all", commonName("System:Node:worker-1"), approve.WrongSubject},
		{"another node", "all", commonName("system:node:worker-2"), approve.WrongNodeName},
		{"the node in another case", "all", commonName("system:node:Worker-1"), approve.WrongNodeName},
		{"the node with a dot at the end", "all", commonName("system:node:worker-1."), approve.WrongNodeName},
		{"the node with a NUL at the end", "all", commonName("system:node:worker-1\x00"), approve.WrongNodeName},
		{
			"the basic constraint of an authority", "all",
			extension(asn1.ObjectIdentifier{2, 5, 29, 19}, []byte{0x30, 3, 1, 1, 0xff}), approve.ExtensionsNotAllowed,
		},
		{"an extended key usage", "all", extension(asn1.ObjectIdentifier{2, 5, 29, 37}, []byte{0x30, 0}), approve.ExtensionsNotAllowed},
		{"an unknown extension", "all", extension(asn1.ObjectIdentifier{1, 2, 3}, []byte{5, 0}), approve.ExtensionsNotAllowed},
		{"an e-mail address", "all", with(func(r *x509.CertificateRequest) {
			r.EmailAddresses = []string{"a@example.com"}
		}), approve.SubjectAltNamesNotAllowed},
		{"a URI", "all", with(func(r *x509.CertificateRequest) {
			r.URIs = []*url.URL{{Scheme: "spiffe", Host: "x"}}
		}), approve.SubjectAltNamesNotAllowed},
		{"a DNS name in a client certificate", "client renewal", with(func(r *x509.CertificateRequest) {
			r.DNSNames = []string{"worker-1"}
		}), approve.SubjectAltNamesNotAllowed},
		{"an address in a client certificate", "client renewal", with(func(r *x509.CertificateRequest) {
			r.IPAddresses = []net.IP{{10, 0, 0, 7}}
		}), approve.SubjectAltNamesNotAllowed},
		{"a name of a form that Go does not read", "all", with(func(r *x509.CertificateRequest) {
			registeredID := []byte{0x30, 4, 0x88, 2, 0x2a, 3}
			r.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: registeredID}}
		}), approve.SubjectAltNamesNotAllowed},
		{"subject alternative names that are no sequence", "all", with(func(r *x509.CertificateRequest) {
			r.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: []byte{4, 0}}}
		}), approve.CSRMalformed},
		{"no name in a serving certificate", "serving", with(func(r *x509.CertificateRequest) {
			r.DNSNames, r.IPAddresses = nil, nil
		}), approve.SubjectAltNamesNotAllowed},
		{"no usages", "all", usages(), approve.WrongUsages},
		{"signing as well", "all", usages("digital signature", "client auth", "server auth", "cert sign"), approve.WrongUsages},
		{"client and server", "all", usages("digital signature", "client auth", "server auth"), approve.WrongUsages},
		{"the usage of the other kind", "client renewal", usages("digital signature", "server auth"), approve.WrongUsages},
		{"the usage of the other kind", "serving", usages("digital signature", "client auth"), approve.WrongUsages},
		{"any", "all", usages("any"), approve.WrongUsages},
		{"the usage in another case", "all", usages("Digital Signature", "client auth"), approve.WrongUsages},
		{"no digital signature", "client renewal", usages("client auth", "key encipherment"), approve.WrongUsages},
		{"key encipherment too", "client renewal", usages("client auth", "key encipherment", "digital signature"), ""},
		{"key encipherment too", "serving", usages("server auth", "key encipherment", "digital signature"), ""},
	} {
		for kind, question := range wellFormed(t) {
			if tc.kinds != "all" && !strings.Contains(tc.kinds, kind) {
				continue
			}
			t.Run(kind+"/"+tc.attack, func(t *testing.T) {
				q := question(t)
				tc.change(t, &q.Request.Spec)
				wants(t, approve.Decide(q), tc.want)
				if ahead, decided := approve.Ahead(q.Request); decided && ahead.Code != tc.want {
					t.Errorf("Ahead answers %+v", ahead)
				}
			})
		}
	}
}

// wants checks an answer: a denial with the code, or an approval if it is empty.
func wants(t *testing.T, answer approve.Answer, code verdict.Code) {
	t.Helper()
	switch {
	case code == "" && answer.Outcome != approve.Approve:
		t.Errorf("want an approval, got %+v", answer)
	case code != "" && (answer.Outcome != approve.Deny || answer.Code != code || answer.Message == ""):
		t.Errorf("want a denial with %s, got %+v", code, answer)
	}
	if strings.ContainsFunc(answer.Message, func(r rune) bool { return r < ' ' || r > '~' }) {
		t.Errorf("the message is not plain text: %q", answer.Message)
	}
}

func TestFactsOfFirstRequests(t *testing.T) {
	rival := func(age time.Duration, change func(*approve.Question, *v1alpha1.NodeAttestation)) func(*approve.Question) {
		return func(q *approve.Question) {
			other := newEntry()
			other.Name, other.UID, other.Spec.TokenID = "aws-i-2", "uid-2", "bbbbbb"
			other.CreationTimestamp = metav1.NewTime(q.Entry.CreationTimestamp.Add(-age))
			if change != nil {
				change(q, other)
			}
			q.Entries = append(q.Entries, other)
		}
	}
	bind := func(e *v1alpha1.NodeAttestation, token, key string) {
		e.Status.Binding = &v1alpha1.TokenBinding{TokenID: token, PublicKey: key}
	}
	used := func(q *approve.Question) {
		bind(q.Entry, q.Entry.Spec.TokenID, approve.PublicKey(q.Request.Spec.Request))
	}
	// boundTo is at the expiration of a token that was bound to a request. The UID of the
	// question's request is "it".
	boundTo := func(request types.UID) func(*approve.Question) {
		return func(q *approve.Question) {
			used(q)
			q.Request.UID, q.Now = "it", q.Entry.Spec.TokenExpiration.Time
			q.Entry.Status.Binding.RequestUID = request
			q.Entry.Status.Binding.ApproveUntil = &metav1.Time{Time: q.Now.Add(time.Minute)}
		}
	}
	for _, tc := range []struct {
		rule   string
		change func(*approve.Question)
		want   verdict.Code
	}{
		{"a serving certificate for a token", func(q *approve.Question) {
			q.Request.Spec.SignerName = certificatesv1.KubeletServingSignerName
		}, approve.WrongSigner},
		{"at its expiration the token has expired", func(q *approve.Question) {
			q.Now = q.Entry.Spec.TokenExpiration.Time
		}, approve.TokenExpired},
		{"before its expiration the token has not expired", func(q *approve.Question) {
			q.Now = q.Entry.Spec.TokenExpiration.Add(-time.Nanosecond)
		}, ""},
		{"an expired token, for the request that it was bound to", boundTo("it"), ""},
		{"an expired token, before the time limit of its binding", func(q *approve.Question) {
			boundTo("it")(q)
			q.Now = q.Entry.Status.Binding.ApproveUntil.Add(-time.Nanosecond)
		}, ""},
		{"an expired token, at the time limit of its binding", func(q *approve.Question) {
			boundTo("it")(q)
			q.Now = q.Entry.Status.Binding.ApproveUntil.Time
		}, approve.TokenExpired},
		{"an expired token, for another request with the same key", boundTo("other"), approve.TokenExpired},
		{"an expired token, for a request without a UID", func(q *approve.Question) {
			boundTo("")(q)
			q.Request.UID = ""
		}, approve.TokenExpired},
		{"an expired token, for a request with another key and the bound UID", func(q *approve.Question) {
			boundTo("it")(q)
			q.Entry.Status.Binding.PublicKey = "sha256:00"
		}, approve.TokenExpired},
		{"an expired token, with the binding of another token", func(q *approve.Question) {
			boundTo("it")(q)
			q.Entry.Status.Binding.TokenID = "cccccc"
		}, approve.TokenExpired},
		{"an expired token, with a binding without a request", func(q *approve.Question) {
			boundTo("")(q)
			q.Entry.Status.Binding.ApproveUntil = nil
		}, approve.TokenExpired},
		{"an expired token of a revoked machine", func(q *approve.Question) {
			boundTo("it")(q)
			q.Entry.Status.Phase = v1alpha1.Revoked
		}, v1alpha1.AttestationRevoked},
		{"an expired token, after a request with another key was approved", func(q *approve.Question) {
			boundTo("it")(q)
			q.Approved = []string{"sha256:00"}
		}, approve.TokenAlreadyUsed},
		{"an entry that is gone", func(q *approve.Question) { q.Entry = nil }, approve.TokenUnknown},
		{"an entry that is being deleted", func(q *approve.Question) {
			q.Entry.DeletionTimestamp = &metav1.Time{Time: now()}
		}, approve.TokenUnknown},
		{"two entries with the token", func(q *approve.Question) { q.Shared = true }, approve.TokenUnknown},
		{"a token that only the status of an entry names", func(q *approve.Question) {
			q.Entry.Spec.TokenID, q.Entry.Status.TokenID = "cccccc", "aaaaaa"
		}, approve.TokenUnknown},
		{"a token that only the binding of an entry names", func(q *approve.Question) {
			used(q)
			q.Entry.Spec.TokenID = "cccccc"
		}, approve.TokenUnknown},
		{"a replaced token", func(q *approve.Question) { q.Entry.Spec.TokenID = "cccccc" }, approve.TokenUnknown},
		{"a revoked machine", func(q *approve.Question) { q.Entry.Status.Phase = v1alpha1.Revoked }, v1alpha1.AttestationRevoked},
		{"the machine was attested as another node", func(q *approve.Question) {
			q.Entry.Spec.NodeName = "worker-2"
		}, approve.WrongNodeName},
		{"a second key", func(q *approve.Question) { bind(q.Entry, "aaaaaa", "sha256:00") }, approve.TokenAlreadyUsed},
		{"another key than the one in the machine's evidence", func(q *approve.Question) {
			q.Entry.Spec.PublicKey = "sha256:00"
		}, approve.KeyNotAttested},
		{"the key in the machine's evidence", func(q *approve.Question) {
			q.Entry.Spec.PublicKey = approve.PublicKey(q.Request.Spec.Request)
		}, ""},
		{"a second key, and the entry does not have the first", func(q *approve.Question) {
			q.Approved = []string{"sha256:00"}
		}, approve.TokenAlreadyUsed},
		{"a bound key, and another was approved", func(q *approve.Question) {
			used(q)
			q.Approved = []string{"sha256:00"}
		}, approve.TokenAlreadyUsed},
		{"the token before was used for another key", func(q *approve.Question) { bind(q.Entry, "cccccc", "sha256:00") }, ""},
		{"an unknown key, and its certificate is in the ledger", func(q *approve.Question) {
			q.Entry.Status.Phase, q.Entry.Status.TokenID = v1alpha1.Certified, q.Entry.Spec.TokenID
		}, approve.TokenAlreadyUsed},
		{"the same key again, after its certificate", func(q *approve.Question) {
			used(q)
			q.Entry.Status.Phase, q.Entry.Status.TokenID = v1alpha1.Registered, q.Entry.Spec.TokenID
		}, ""},
		{"the same key again", used, ""},
		{"the same key again, and the entry does not have it", func(q *approve.Question) {
			q.Approved = []string{approve.PublicKey(q.Request.Spec.Request)}
		}, ""},
		{"the same key after the token's expiration", func(q *approve.Question) {
			used(q)
			q.Now = q.Entry.Spec.TokenExpiration.Time
		}, approve.TokenExpired},
		{"an older machine of the name", rival(time.Second, nil), v1alpha1.NameTaken},
		{"a machine of the same second with a name that sorts before", rival(0, func(_ *approve.Question, e *v1alpha1.NodeAttestation) {
			e.Name = "aws-i-0"
		}), v1alpha1.NameTaken},
		{"a machine of the same second with a name that sorts after", rival(0, nil), ""},
		{"a younger machine of the name", rival(-time.Second, nil), ""},
		{"a younger machine with a certificate", rival(-time.Second, func(_ *approve.Question, e *v1alpha1.NodeAttestation) {
			e.Status.Phase = v1alpha1.Certified
		}), v1alpha1.NameTaken},
		{"a younger machine with a certificate that was attested again", rival(-time.Second, func(
			_ *approve.Question, e *v1alpha1.NodeAttestation,
		) {
			e.Status.Phase, e.Status.TokenID = v1alpha1.Registered, "older1"
		}), v1alpha1.NameTaken},
		{"a younger machine whose token was used", rival(-time.Second, func(_ *approve.Question, e *v1alpha1.NodeAttestation) {
			bind(e, e.Spec.TokenID, "sha256:00")
		}), v1alpha1.NameTaken},
		{"a younger machine with an approved request", rival(-time.Second, func(q *approve.Question, _ *v1alpha1.NodeAttestation) {
			q.Used = map[types.UID]bool{"uid-2": true}
		}), v1alpha1.NameTaken},
		{"a younger machine whose token before was used", rival(-time.Second, func(_ *approve.Question, e *v1alpha1.NodeAttestation) {
			bind(e, "older1", "sha256:00")
		}), ""},
		{"an older machine without a certificate, and this one's token was used", func(q *approve.Question) {
			used(q)
			rival(time.Second, nil)(q)
		}, ""},
		{"a younger machine with a certificate, and this one had its own with an earlier token", func(q *approve.Question) {
			q.Entry.Status.Phase, q.Entry.Status.TokenID = v1alpha1.Registered, "older1"
			rival(-time.Second, func(_ *approve.Question, e *v1alpha1.NodeAttestation) {
				e.Status.Phase, e.Status.TokenID = v1alpha1.Certified, e.Spec.TokenID
			})(q)
		}, v1alpha1.NameTaken},
		{"an older machine without a certificate, and this one had its own with an earlier token", func(q *approve.Question) {
			q.Entry.Status.Phase, q.Entry.Status.TokenID = v1alpha1.Registered, "older1"
			rival(time.Second, nil)(q)
		}, ""},
		{"an older machine that is revoked", rival(time.Second, func(_ *approve.Question, e *v1alpha1.NodeAttestation) {
			e.Status.Phase = v1alpha1.Revoked
		}), ""},
		{"an older machine of another name", rival(time.Second, func(_ *approve.Question, e *v1alpha1.NodeAttestation) {
			e.Spec.NodeName = "worker-2"
		}), ""},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			q := clientQuestion(t)
			tc.change(q)
			wants(t, approve.Decide(q), tc.want)
		})
	}
}

// with returns the extra of a user who authenticated with a certificate.
func with(credential string) map[string]certificatesv1.ExtraValue {
	return map[string]certificatesv1.ExtraValue{"authentication.kubernetes.io/credential-id": {credential}}
}

func TestFactsOfNodes(t *testing.T) {
	const renewed, served = "approve RenewalApproved", "approve ServingCertificateApproved"
	const anothers = "deny AnotherMachinesCredential"
	revoke := func(q *approve.Question) { q.Entries[0].Status.Phase = v1alpha1.Revoked }
	gone := func(q *approve.Question) { q.Entries = nil }
	// unknown is a request with a certificate that no entry has; another machine had the name.
	unknown := func(change func(before *v1alpha1.NodeAttestation)) func(*approve.Question) {
		return func(q *approve.Question) {
			before := newEntry()
			before.UID = "uid-0"
			change(before)
			q.Others = []*v1alpha1.NodeAttestation{q.Entries[0], before}
			q.Request.Spec.Extra = with("X509SHA256=dd")
		}
	}
	renamed := func(q *approve.Question) {
		other := newEntry()
		other.UID, other.Spec.NodeName, other.Status.Credentials = "uid-0", "worker-2", []string{"X509SHA256=dd"}
		q.Others = []*v1alpha1.NodeAttestation{q.Entries[0], other}
		q.Request.Spec.Extra = with("X509SHA256=dd")
	}
	for _, tc := range []struct {
		rule   string
		change func(*approve.Question)
		want   string // the outcome and the code; of a renewal, if other is set
		other  string // the outcome and the code of a serving certificate
	}{
		{"the machine is revoked", revoke, "deny AttestationRevoked", ""},
		{"another machine of the name is not revoked", func(q *approve.Question) {
			revoke(q)
			live := newEntry()
			live.UID = "uid-2"
			q.Entries = append(q.Entries, live)
		}, renewed, served},
		{"a certificate of a former machine of the name", func(q *approve.Question) {
			before := newEntry()
			before.UID, before.Status.Phase = "uid-0", v1alpha1.Revoked
			before.Status.Credentials = []string{"X509SHA256=aa", "X509SHA256=bb"}
			q.Others = []*v1alpha1.NodeAttestation{q.Entries[0], before}
			q.Request.Spec.Extra = with("X509SHA256=bb")
		}, anothers, ""},
		{"its own certificate, after a former machine of the name", func(q *approve.Question) {
			before := newEntry()
			before.UID, before.Status.Phase = "uid-0", v1alpha1.Revoked
			before.Status.Credentials = []string{"X509SHA256=aa"}
			q.Entries[0].Status.Credentials = []string{"X509SHA256=cc"}
			q.Others = []*v1alpha1.NodeAttestation{q.Entries[0], before}
			q.Request.Spec.Extra = with("X509SHA256=cc")
		}, renewed, served},
		{"an unrecorded certificate", func(q *approve.Question) {
			q.Others = []*v1alpha1.NodeAttestation{q.Entries[0]}
			q.Request.Spec.Extra = with("X509SHA256=dd")
		}, renewed, served},
		{"an unrecorded certificate, and the former machine may have a valid one", unknown(func(before *v1alpha1.NodeAttestation) {
			before.Status.CertificateExpiration = &metav1.Time{Time: now().Add(time.Second)}
		}), anothers, ""},
		{"an unrecorded certificate, and those of the former machine have expired", unknown(func(before *v1alpha1.NodeAttestation) {
			before.Status.CertificateExpiration = &metav1.Time{Time: now()}
		}), renewed, served},
		{"an unrecorded certificate, and the former machine used a token", unknown(func(before *v1alpha1.NodeAttestation) {
			before.Status.Binding = &v1alpha1.TokenBinding{TokenID: "older1", PublicKey: "sha256:00"}
		}), anothers, ""},
		{"an unrecorded certificate, and the former machine had an unknown one", unknown(func(before *v1alpha1.NodeAttestation) {
			before.Status.Phase = v1alpha1.Registered
		}), anothers, ""},
		{"an unrecorded certificate, and the former machine has recorded ones", unknown(func(before *v1alpha1.NodeAttestation) {
			before.Status.Credentials = []string{"X509SHA256=aa"}
		}), anothers, ""},
		{
			"an unrecorded certificate, and the former machine had none",
			unknown(func(*v1alpha1.NodeAttestation) {}), renewed, served,
		},
		{"its own certificate, and the former machine may have a valid one", func(q *approve.Question) {
			unknown(func(before *v1alpha1.NodeAttestation) { before.Status.Phase = v1alpha1.Registered })(q)
			q.Entries[0].Status.Credentials = []string{"X509SHA256=dd"}
		}, renewed, served},
		{"the API server does not name the certificate", func(q *approve.Question) {
			unknown(func(before *v1alpha1.NodeAttestation) { before.Status.Phase = v1alpha1.Registered })(q)
			q.Request.Spec.Extra = nil
		}, renewed, served},
		{"a renamed machine with a certificate of its former name", renamed, anothers, ""},
		{"a renamed machine with a certificate of its former name, which no machine has", func(q *approve.Question) {
			renamed(q)
			gone(q)
			q.Unattested, q.ServingAddresses = approve.ApproveUnattested, approve.ServingLedgerAndNode
		}, anothers, ""},
		{"an entry of another node does not count", func(q *approve.Question) {
			q.Entries[0].Spec.NodeName = "worker-2"
		}, "deny NotAttested", ""},
		{"the ledger does not have the node", gone, "deny NotAttested", ""},
		{"the ledger does not have the node, unattested nodes are left", func(q *approve.Question) {
			gone(q)
			q.Unattested = approve.LeaveUnattested
		}, "leave NotAttested", ""},
		{
			"the ledger does not have the node, unattested nodes are approved",
			func(q *approve.Question) { gone(q); q.Unattested = approve.ApproveUnattested },
			renewed, "leave NotAttested",
		},
		{"the ledger does not have the node, unattested nodes are approved with the addresses of the Node", func(q *approve.Question) {
			gone(q)
			q.Unattested, q.ServingAddresses = approve.ApproveUnattested, approve.ServingLedgerAndNode
			q.NodeAddresses = []corev1.NodeAddress{
				{Type: corev1.NodeHostName, Address: "worker-1"},
				{Type: corev1.NodeInternalIP, Address: "10.0.0.7"},
			}
		}, renewed, served},
		{"a revoked machine is not an unattested one", func(q *approve.Question) {
			revoke(q)
			q.Unattested = approve.ApproveUnattested
		}, "deny AttestationRevoked", ""},
		{"an unknown policy is the strictest", func(q *approve.Question) { gone(q); q.Unattested = "approve" }, "deny NotAttested", ""},
	} {
		for kind, question := range map[string]func(testing.TB) *approve.Question{
			"renewal": renewalQuestion, "serving": servingQuestion,
		} {
			t.Run(kind+"/"+tc.rule, func(t *testing.T) {
				q := question(t)
				tc.change(q)
				want := tc.want
				if kind == "serving" && tc.other != "" {
					want = tc.other
				}
				if answer := approve.Decide(q); answer.Outcome.String()+" "+string(answer.Code) != want {
					t.Errorf("want %s, got %+v", want, answer)
				}
			})
		}
	}
}

func TestDenialsOfUsagesNameTheWrongUsages(t *testing.T) {
	for _, test := range []struct {
		rule   string
		usages []certificatesv1.KeyUsage
		want   string
	}{
		{"missing", []certificatesv1.KeyUsage{"client auth"}, "the usages lack digital signature"},
		{"none", nil, "the usages lack digital signature, client auth"},
		{
			"too many",
			[]certificatesv1.KeyUsage{"digital signature", "client auth", "server auth", "cert sign"},
			`the usages contain "cert sign, server auth", which no kubelet asks for`,
		},
		{
			"others",
			[]certificatesv1.KeyUsage{"client auth", "any"},
			`the usages lack digital signature and contain "any", which no kubelet asks for`,
		},
	} {
		question := clientQuestion(t)
		question.Request = question.Request.DeepCopy()
		question.Request.Spec.Usages = test.usages
		if answer := approve.Decide(question); answer.Code != approve.WrongUsages || answer.Message != test.want {
			t.Errorf("%s: %s: %s, want %s", test.rule, answer.Code, answer.Message, test.want)
		}
	}
}
