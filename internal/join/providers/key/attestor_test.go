package key

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/machines"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/alwaysallow"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// registered are Machines by what they can prove to have.
type registered map[string]*v1alpha1.Machine

func (r registered) Find(_ context.Context, _ *attest.Request, proof *machines.Proof) (*v1alpha1.Machine, error) {
	if m, ok := r[proof.PublicKey+proof.Subject]; ok && proof.EKHash == "" {
		return m, nil
	}
	return nil, attest.Refuse(machines.MachineNotRegistered, "no machine has %s%s", proof.PublicKey, proof.Subject)
}

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// world is a service with registered machines.
type world struct {
	*testing.T
	Options
	machines   registered
	challenges *attest.Challenges
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, machines: registered{}, challenges: challengesOf(t, 1, now)}
	w.Options = Options{ClusterID: "shop", Registry: w.machines, Challenger: w.challenges, Clock: func() time.Time { return now }}
	return w
}

func challengesOf(t testing.TB, key byte, at time.Time) *attest.Challenges {
	t.Helper()
	c, err := attest.NewChallenges(bytes.Repeat([]byte{key}, attest.ChallengeKeySize), func() time.Time { return at })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func hashOf(key crypto.Signer) string {
	return v1alpha1.PublicKeyHash(must(x509.MarshalPKIXPublicKey(key.Public())))
}

// register registers a key for a node.
func (w *world) register(key crypto.Signer, node string) {
	w.machines[hashOf(key)] = &v1alpha1.Machine{Spec: v1alpha1.MachineSpec{
		NodeName: node, Names: []string{"a.example.com"}, Addresses: []string{"192.0.2.1"},
	}}
}

const certified = "sha256:1111111111111111111111111111111111111111111111111111111111111111"

// answer is what the client of a machine sends.
func (w *world) answer(key crypto.Signer, node string) []byte {
	return w.collect(CollectorOptions{KeyFile: keyFile(w.T, key), ClusterID: "shop", NodeName: node})
}

func (w *world) collect(options CollectorOptions) []byte {
	w.Helper()
	c, err := NewCollector(options)
	if err != nil {
		w.Fatal(err)
	}
	body, err := c.Collect(w.Context(), attest.Binding{Challenge: w.challenges.Challenge(), PublicKey: certified})
	if err != nil {
		w.Fatal(err)
	}
	return body
}

// attest shows evidence for a node.
func (w *world) attest(node string, body []byte) (*attest.Identity, error) {
	return New(w.Options).Attest(w.Context(), &attest.Request{NodeName: node, Body: body, RemoteAddr: netip.MustParseAddr("192.0.2.1")})
}

func (w *world) refused(node string, body []byte, want verdict.Code) {
	w.Helper()
	id, err := w.attest(node, body)
	refusal, ok := errors.AsType[*attest.Refusal](err)
	if !ok || refusal.Code != want || id != nil || refusal.Malformed != (want == alwaysallow.EvidenceMalformed) {
		w.Errorf("%v %v, want %s", id, err, want)
	}
}

func keyFile(t *testing.T, key crypto.Signer) string {
	return pemFile(t, "PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(key)))
}

func pemFile(t *testing.T, kind string, blocks ...[]byte) string {
	t.Helper()
	var text []byte
	for _, der := range blocks {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})...)
	}
	path := filepath.Join(t.TempDir(), "file.pem")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func ed() ed25519.PrivateKey {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	return must(key, err)
}

func ec(curve elliptic.Curve) *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(curve, rand.Reader)) }

// altered is a body with one change.
func altered(body []byte, change func(*evidence)) []byte {
	var e evidence
	if err := json.Unmarshal(body, &e); err != nil {
		panic(err)
	}
	change(&e)
	return must(json.Marshal(e))
}

func TestKeysOfEveryKind(t *testing.T) {
	for name, key := range map[string]crypto.Signer{
		"Ed25519 key": ed(), "ECDSA key on P-256": ec(elliptic.P256()), "ECDSA key on P-384": ec(elliptic.P384()),
		"ECDSA key on P-521": ec(elliptic.P521()), "RSA key of 2048 bits": must(rsa.GenerateKey(rand.Reader, 2048)),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.register(key, "worker-1")
			id, err := w.attest("Worker-1", w.answer(key, "worker-1"))
			if err != nil {
				t.Fatal(err)
			}
			want := &attest.Identity{
				Provider: "key", InstanceID: strings.TrimPrefix(hashOf(key), "sha256:")[:40], NodeName: "worker-1",
				Names: []string{"worker-1", "a.example.com"}, Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1")},
				PublicKey: certified, Description: name, SingleUse: true, Issued: now.Local(), Digest: id.Digest,
			}
			if !reflect.DeepEqual(id, want) || id.Digest == [32]byte{} {
				t.Errorf("got  %+v\nwant %+v", id, want)
			}
		})
	}
}

func TestRSAWithPSS(t *testing.T) {
	w, key := newWorld(t), must(rsa.GenerateKey(rand.Reader, 2048))
	w.register(key, "worker-1")
	body := altered(w.answer(key, "worker-1"), func(e *evidence) {
		digest := sha256.Sum256(message("shop", e.Challenge, "worker-1", e.CertifiedKey, hashOf(key)))
		e.Algorithm = "SHA256-RSAPSS"
		e.Signature = must(key.Sign(rand.Reader, digest[:],
			&rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: crypto.SHA256}))
	})
	if _, err := w.attest("worker-1", body); err != nil {
		t.Error(err)
	}
	w.refused("worker-1", altered(body, func(e *evidence) { e.Algorithm = "SHA256-RSA" }), SignatureInvalid)
}

func TestFilesOfPrivateKeys(t *testing.T) {
	edKey, ecKey, rsaKey := ed(), ec(elliptic.P256()), must(rsa.GenerateKey(rand.Reader, 2048))
	openSSH := func(key crypto.PrivateKey) string {
		return pemFile(t, "OPENSSH PRIVATE KEY", must(ssh.MarshalPrivateKey(key, "")).Bytes)
	}
	ecPEM := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: must(x509.MarshalECPrivateKey(ecKey))})
	withParameters := filepath.Join(t.TempDir(), "openssl.pem")
	text := append(pem.EncodeToMemory(&pem.Block{Type: "EC PARAMETERS", Bytes: []byte{6, 0}}), ecPEM...)
	if err := os.WriteFile(withParameters, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for file, key := range map[string]crypto.Signer{
		openSSH(edKey): edKey, openSSH(ecKey): ecKey, openSSH(rsaKey): rsaKey, keyFile(t, edKey): edKey, withParameters: ecKey,
		pemFile(t, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey)):  rsaKey,
		pemFile(t, "EC PRIVATE KEY", must(x509.MarshalECPrivateKey(ecKey))): ecKey,
	} {
		w := newWorld(t)
		w.register(key, "worker-1")
		if _, err := w.attest("worker-1", w.collect(CollectorOptions{KeyFile: file, ClusterID: "shop", NodeName: "worker-1"})); err != nil {
			t.Errorf("%T: %v", key, err)
		}
	}
	passphrase := must(ssh.MarshalPrivateKeyWithPassphrase(edKey, "", []byte("a")))
	for rule, file := range map[string]string{
		"a passphrase": pemFile(t, passphrase.Type, passphrase.Bytes), "no key": pemFile(t, "CERTIFICATE", []byte{1}), "no file": "none",
	} {
		c := must(NewCollector(CollectorOptions{KeyFile: file, ClusterID: "shop"}))
		if _, err := c.Collect(t.Context(), attest.Binding{Challenge: "a"}); err == nil {
			t.Errorf("%s: no error", rule)
		}
	}
	c := must(NewCollector(CollectorOptions{KeyFile: keyFile(t, edKey), ClusterID: "shop"}))
	if _, err := c.Collect(t.Context(), attest.Binding{}); err == nil {
		t.Error("evidence without a challenge")
	}
}

// TestStolenAnswers: what an attacker has seen of a machine is of no use for anything else.
func TestStolenAnswers(t *testing.T) {
	w, key, thiefs := newWorld(t), ed(), ed()
	w.register(key, "worker-1")
	body := w.answer(key, "worker-1")
	stolen := func(change func(*evidence)) []byte { return altered(body, change) }
	t.Run("a copied answer with another key to certify", func(t *testing.T) {
		w.refused("worker-1", stolen(func(e *evidence) { e.CertifiedKey = strings.Replace(certified, "1", "2", 1) }), SignatureInvalid)
		w.refused("worker-1", stolen(func(e *evidence) { e.CertifiedKey = "" }), SignatureInvalid)
	})
	t.Run("a copied answer for the name of another node", func(t *testing.T) { w.refused("worker-2", body, SignatureInvalid) })
	t.Run("a copied answer with the thief's own public key", func(t *testing.T) {
		w.register(thiefs, "worker-2")
		w.refused("worker-1", stolen(func(e *evidence) {
			e.PublicKey = must(x509.MarshalPKIXPublicKey(thiefs.Public()))
		}), SignatureInvalid)
	})
	t.Run("a new challenge with the signature of an old one", func(t *testing.T) {
		fresh := challengesOf(t, 1, now.Add(time.Second)).Challenge()
		w.refused("worker-1", stolen(func(e *evidence) { e.Challenge = fresh }), SignatureInvalid)
	})
	t.Run("an old challenge", func(t *testing.T) {
		w := *w
		w.Challenger = challengesOf(t, 1, now.Add(attest.ChallengeLifetime+time.Second))
		w.refused("worker-1", body, attest.ChallengeInvalid)
	})
	t.Run("a challenge of another service", func(t *testing.T) {
		w := *w
		w.Challenger = challengesOf(t, 2, now)
		w.refused("worker-1", body, attest.ChallengeInvalid)
	})
	t.Run("an answer for another cluster", func(t *testing.T) {
		w := *w
		w.ClusterID = "other"
		w.refused("worker-1", body, SignatureInvalid)
	})
	t.Run("a signature that the key made about something else", func(t *testing.T) {
		w.refused("worker-1", stolen(func(e *evidence) {
			e.Signature = ed25519.Sign(key, []byte(e.Challenge))
		}), SignatureInvalid)
	})
	t.Run("a key that is not registered", func(t *testing.T) {
		w.refused("worker-1", w.answer(ed(), "worker-1"), machines.MachineNotRegistered)
	})
	t.Run("the key of another machine gets that machine's name", func(t *testing.T) {
		id, err := w.attest("worker-1", w.answer(thiefs, "worker-1"))
		if err != nil || id.NodeName != "worker-2" {
			t.Errorf("%+v %v", id, err)
		}
	})
	t.Run("the machine itself", func(t *testing.T) {
		if _, err := w.attest("worker-1", body); err != nil {
			t.Error(err)
		}
	})
}

// TestEveryBitCounts: no body with another bit is accepted.
func TestEveryBitCounts(t *testing.T) {
	w, key := newWorld(t), ed()
	w.register(key, "worker-1")
	body := w.answer(key, "worker-1")
	for i := range body {
		for bit := range 8 {
			flipped := bytes.Clone(body)
			flipped[i] ^= 1 << bit
			_, err := w.attest("worker-1", flipped)
			if _, refused := errors.AsType[*attest.Refusal](err); !refused {
				t.Errorf("bit %d of byte %d, in %q: %v", bit, i, body[max(0, i-10):min(len(body), i+10)], err)
			}
		}
	}
}

func TestKeysThatAreNotAccepted(t *testing.T) {
	weak := ec(elliptic.P224())
	t.Setenv("GODEBUG", "rsa1024min=0")
	short := must(rsa.GenerateKey(rand.Reader, 1024))
	for _, key := range []crypto.Signer{weak, short} {
		w := newWorld(t)
		w.register(key, "worker-1")
		w.refused("worker-1", w.answer(key, "worker-1"), KeyNotAccepted)
	}
	w, key := newWorld(t), must(rsa.GenerateKey(rand.Reader, 2048))
	w.register(key, "worker-1")
	body := altered(w.answer(key, "worker-1"), func(e *evidence) {
		public := key.PublicKey
		public.E = 3
		e.PublicKey = must(x509.MarshalPKIXPublicKey(&public))
	})
	w.refused("worker-1", body, KeyNotAccepted)
}

func TestMalformedEvidence(t *testing.T) {
	w, key := newWorld(t), ed()
	w.register(key, "worker-1")
	body := w.answer(key, "worker-1")
	for rule, change := range map[string]func(*evidence){
		"no algorithm":               func(e *evidence) { e.Algorithm = "" },
		"SHA-1":                      func(e *evidence) { e.Algorithm = "SHA1-RSA" },
		"no key":                     func(e *evidence) { e.PublicKey = nil },
		"a key that cannot be read":  func(e *evidence) { e.PublicKey = []byte("none") },
		"key and certificate":        func(e *evidence) { e.Certificates = []binary{[]byte("none")} },
		"a certificate that is none": func(e *evidence) { e.PublicKey, e.Certificates = nil, []binary{[]byte("none")} },
		"too many certificates":      func(e *evidence) { e.PublicKey, e.Certificates = nil, make([]binary, 9) },
		"another form of the hash":   func(e *evidence) { e.CertifiedKey = strings.ToUpper(certified) },
	} {
		t.Run(rule, func(t *testing.T) {
			w.T = t
			w.refused("worker-1", altered(body, change), alwaysallow.EvidenceMalformed)
		})
	}
	signature := func(text string) string {
		return strings.Replace(string(body), `"signature":"`, `"signature":"`+text, 1)
	}
	for _, text := range []string{
		"", "{}", "null", "[]", string(body) + "{}", strings.Replace(string(body), "challenge", "Challenge", 1),
		signature("!"), signature(`\n`), signature("AAA"),
		strings.Replace(string(altered(body, func(e *evidence) { e.PublicKey, e.Certificates = nil, []binary{{0}} })), "AA==", "!", 1),
	} {
		w.T = t
		w.refused("worker-1", []byte(text), alwaysallow.EvidenceMalformed)
	}
}

// authority issues certificates.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

func newAuthority(parent *authority, name string) *authority {
	return newAuthorityWith(parent, name, ec(elliptic.P256()))
}

func newAuthorityWith(parent *authority, name string, key crypto.Signer) *authority {
	a := &authority{key: key}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	if parent == nil {
		parent = &authority{template, a.key}
	}
	a.certificate = must(x509.ParseCertificate(must(
		x509.CreateCertificate(rand.Reader, template, parent.certificate, a.key.Public(), parent.key))))
	return a
}

func (a *authority) issue(key crypto.Signer, subject pkix.Name, change func(*x509.Certificate)) []byte {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: subject, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	change(template)
	return must(x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key))
}

func TestCertificates(t *testing.T) {
	root, key := newAuthority(nil, "root"), ec(elliptic.P256())
	other, intermediate := newAuthority(nil, "root"), newAuthority(root, "intermediate")
	weak := newAuthorityWith(root, "weak", must(rsa.GenerateKey(rand.Reader, 1024)))
	subject := pkix.Name{CommonName: "worker-1", Organization: []string{"Example, Inc."}}
	const text = `CN=worker-1,O=Example\, Inc.`
	same := func(*x509.Certificate) {}
	for _, tc := range []struct {
		rule string
		sent [][]byte
		want verdict.Code // empty: it is accepted
	}{
		{"of the authority", [][]byte{root.issue(key, subject, same)}, ""},
		{"with an intermediate authority", [][]byte{intermediate.issue(key, subject, same), intermediate.certificate.Raw}, ""},
		{"without an extended key usage", [][]byte{root.issue(key, subject, func(c *x509.Certificate) { c.ExtKeyUsage = nil })}, ""},
		{"without the intermediate authority", [][]byte{intermediate.issue(key, subject, same)}, CertificateNotTrusted},
		{
			"of another authority with the same name",
			[][]byte{other.issue(key, subject, same), other.certificate.Raw},
			CertificateNotTrusted,
		},
		{"for servers only", [][]byte{root.issue(key, subject, func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		})}, CertificateNotTrusted},
		{
			"expired",
			[][]byte{root.issue(key, subject, func(c *x509.Certificate) { c.NotAfter = now.Add(-time.Second) })},
			CertificateNotTrusted,
		},
		{
			"not valid yet",
			[][]byte{root.issue(key, subject, func(c *x509.Certificate) { c.NotBefore = now.Add(time.Second) })},
			CertificateNotTrusted,
		},
		{"without a subject", [][]byte{root.issue(key, pkix.Name{}, same)}, CertificateNotTrusted},
		{"with a subject without attributes", [][]byte{root.issue(key, pkix.Name{}, func(c *x509.Certificate) {
			c.RawSubject = must(asn1.Marshal([]pkix.RelativeDistinguishedNameSET{{}}))
		})}, CertificateNotTrusted},
		{
			"with an intermediate authority whose key is out of the limits",
			[][]byte{weak.issue(key, subject, same), weak.certificate.Raw},
			CertificateNotTrusted,
		},
		{"of another machine", [][]byte{root.issue(key, pkix.Name{CommonName: "worker-2"}, same)}, machines.MachineNotRegistered},
		{
			"with the text of a subject in one attribute",
			[][]byte{root.issue(key, pkix.Name{CommonName: text}, same)},
			machines.MachineNotRegistered,
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			w := newWorld(t)
			w.Authorities = x509.NewCertPool()
			w.Authorities.AddCert(root.certificate)
			w.machines[text] = &v1alpha1.Machine{Spec: v1alpha1.MachineSpec{NodeName: "worker-1"}}
			w.machines[hashOf(key)] = &v1alpha1.Machine{Spec: v1alpha1.MachineSpec{NodeName: "by-key"}}
			options := CollectorOptions{
				KeyFile: keyFile(t, key), CertificateFile: pemFile(t, "CERTIFICATE", tc.sent...), ClusterID: "shop", NodeName: "worker-1",
			}
			body := w.collect(options)
			if tc.want != "" {
				w.refused("worker-1", body, tc.want)
				return
			}
			id, err := w.attest("worker-1", body)
			if err != nil || id.NodeName != "worker-1" || id.InstanceID != machines.SubjectHash(text)[:40] {
				t.Errorf("%+v %v", id, err)
			}
			w.Authorities = nil
			w.refused("worker-1", body, CertificateNotTrusted)
			options.KeyFile = keyFile(t, ec(elliptic.P256()))
			if _, err := must(NewCollector(options)).Collect(t.Context(), attest.Binding{Challenge: "a"}); err == nil {
				t.Error("evidence with the certificate of another key")
			}
		})
	}
}

// FuzzAttest: no body is accepted that the machine's key has not signed.
func FuzzAttest(f *testing.F) {
	key := ed()
	challenges := challengesOf(f, 1, now)
	public := must(x509.MarshalPKIXPublicKey(key.Public()))
	f.Add(must(json.Marshal(evidence{
		Challenge: challenges.Challenge(), PublicKey: public, CertifiedKey: certified, Algorithm: "Ed25519", Signature: make([]byte, 64),
	})))
	f.Add(must(json.Marshal(evidence{
		Certificates: []binary{newAuthority(nil, "a").certificate.Raw}, Algorithm: "SHA256-RSAPSS",
	})))
	a := New(Options{
		ClusterID: "shop", Challenger: challenges, Clock: func() time.Time { return now },
		Registry: registered{hashOf(key): {Spec: v1alpha1.MachineSpec{NodeName: "worker-1"}}},
	})
	f.Fuzz(func(t *testing.T, body []byte) {
		id, err := a.Attest(t.Context(), &attest.Request{NodeName: "worker-1", Body: body})
		if _, refused := errors.AsType[*attest.Refusal](err); !refused || id != nil {
			t.Errorf("%+v %v", id, err)
		}
	})
}
