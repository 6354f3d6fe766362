package tpm

import (
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"math/big"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-tpm/tpm2"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
)

// fakeTPM is a TPM whose holder can do what no TPM does: it signs anything, and its keys have any attributes.
type fakeTPM struct {
	t        testing.TB
	ek       *rsa.PrivateKey
	ekPublic tpm2.TPMTPublic
	ak       *ecdsa.PrivateKey
	akPublic tpm2.TPMTPublic
	pcrs     map[int][]byte
	log      []byte
}

// rsaEK returns the structure of an endorsement key.
func rsaEK(key *rsa.PublicKey) tpm2.TPMTPublic {
	public := tpm2.RSAEKTemplate
	public.Parameters = tpm2.NewTPMUPublicParms(tpm2.TPMAlgRSA, &tpm2.TPMSRSAParms{
		Symmetric: tpm2.TPMTSymDefObject{
			Algorithm: tpm2.TPMAlgAES, KeyBits: tpm2.NewTPMUSymKeyBits(tpm2.TPMAlgAES, tpm2.TPMKeyBits(128)),
			Mode: tpm2.NewTPMUSymMode(tpm2.TPMAlgAES, tpm2.TPMAlgCFB),
		},
		KeyBits: tpm2.TPMKeyBits(key.N.BitLen()),
	})
	public.Unique = tpm2.NewTPMUPublicID(tpm2.TPMAlgRSA, &tpm2.TPM2BPublicKeyRSA{Buffer: key.N.Bytes()})
	return public
}

// eccAK returns the structure of an attestation key.
func eccAK(key *ecdsa.PublicKey) tpm2.TPMTPublic {
	public := *attestationTemplates()[0]
	point, err := key.Bytes()
	if err != nil {
		panic(err) // of keys that are not on their curve
	}
	half := len(point) / 2
	public.Unique = tpm2.NewTPMUPublicID(tpm2.TPMAlgECC, &tpm2.TPMSECCPoint{
		X: tpm2.TPM2BECCParameter{Buffer: point[1 : 1+half]}, Y: tpm2.TPM2BECCParameter{Buffer: point[1+half:]},
	})
	return public
}

func newFakeTPM(t testing.TB) *fakeTPM {
	t.Helper()
	f := &fakeTPM{t: t, pcrs: map[int][]byte{}}
	var err error
	if f.ek, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		t.Fatal(err)
	}
	f.ekPublic = rsaEK(&f.ek.PublicKey)
	f.newAK()
	for pcr := range 24 {
		f.pcrs[pcr] = make([]byte, sha256.Size)
	}
	return f
}

func (f *fakeTPM) newAK() {
	var err error
	if f.ak, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		f.t.Fatal(err)
	}
	f.akPublic = eccAK(&f.ak.PublicKey)
}

func (f *fakeTPM) hash() string {
	_, der, err := publicKey(&f.ekPublic, EKNotAccepted)
	if err != nil {
		f.t.Fatal(err)
	}
	return v1alpha1.PublicKeyHash(der)
}

func (f *fakeTPM) keys() *keys {
	return &keys{PublicKey: attestedKey, EK: tpm2.Marshal(f.ekPublic), AK: tpm2.Marshal(f.akPublic), Model: "fake"}
}

// activate does what TPM2_ActivateCredential does: a TPM does it only for a key that it has itself.
func (f *fakeTPM) activate(c *challenge) []byte {
	f.t.Helper()
	seed, err := rsa.DecryptOAEP(sha256.New(), nil, f.ek, c.Secret, []byte("IDENTITY\x00"))
	if err != nil {
		f.t.Fatal(err)
	}
	name, err := tpm2.ObjectName(&f.akPublic)
	if err != nil {
		f.t.Fatal(err)
	}
	block, err := aes.NewCipher(tpm2.KDFa(crypto.SHA256, seed, "STORAGE", name.Buffer, nil, 128))
	if err != nil {
		f.t.Fatal(err)
	}
	secret := append([]byte{}, c.Credential[2+sha256.Size:]...) // after the HMAC, which this TPM ignores
	//lint:ignore SA1019 TPMs use this mode
	cipher.NewCFBDecrypter(block, make([]byte, block.BlockSize())).XORKeyStream(secret, secret)
	return secret[2:]
}

// quoteOf returns an honest quote; the caller may change it before it signs.
func (f *fakeTPM) quoteOf(c *challenge, publicKey string) *tpm2.TPMSAttest {
	ak, err := attestation(tpm2.Marshal(f.akPublic))
	if err != nil {
		f.t.Fatal(err)
	}
	digest := sha256.New()
	for _, pcr := range c.PCRs {
		digest.Write(f.pcrs[pcr])
	}
	return &tpm2.TPMSAttest{
		Magic: tpm2.TPMGeneratedValue, Type: tpm2.TPMSTAttestQuote,
		QualifiedSigner: tpm2.TPM2BName{Buffer: ak.qualifiedName()}, ExtraData: tpm2.TPM2BData{Buffer: quoted(c.Sealed, publicKey)},
		ClockInfo: tpm2.TPMSClockInfo{Clock: 1000, ResetCount: 7, RestartCount: 1, Safe: true}, FirmwareVersion: 0x10,
		Attested: tpm2.NewTPMUAttest(tpm2.TPMSTAttestQuote, &tpm2.TPMSQuoteInfo{
			PCRSelect: selection(c.PCRs), PCRDigest: tpm2.TPM2BDigest{Buffer: digest.Sum(nil)},
		}),
	}
}

// sign signs what the TPM claims to have made.
func (f *fakeTPM) sign(attested *tpm2.TPMSAttest, into *answer) {
	into.Quote = tpm2.Marshal(*attested)
	digest := sha256.Sum256(into.Quote)
	r, s, err := ecdsa.Sign(rand.Reader, f.ak, digest[:])
	if err != nil {
		f.t.Fatal(err)
	}
	into.Signature = tpm2.Marshal(ecdsaSignature(tpm2.TPMAlgSHA256, r, s))
}

func ecdsaSignature(hash tpm2.TPMAlgID, r, s *big.Int) tpm2.TPMTSignature {
	return tpm2.TPMTSignature{
		SigAlg: tpm2.TPMAlgECDSA,
		Signature: tpm2.NewTPMUSignature(tpm2.TPMAlgECDSA, &tpm2.TPMSSignatureECC{
			Hash:       hash,
			SignatureR: tpm2.TPM2BECCParameter{Buffer: r.FillBytes(make([]byte, 32))},
			SignatureS: tpm2.TPM2BECCParameter{Buffer: s.FillBytes(make([]byte, 32))},
		}),
	}
}

// answer is the honest answer to a challenge.
func (f *fakeTPM) answer(c *challenge) *answer {
	f.t.Helper()
	a := &answer{Sealed: c.Sealed, Secret: f.activate(c), EventLog: f.log}
	for _, pcr := range c.PCRs {
		a.PCRs = append(a.PCRs, f.pcrs[pcr])
	}
	f.sign(f.quoteOf(c, attestedKey), a)
	return a
}

// service is an attestor with a clock that a test moves.
type service struct {
	*Attestor
	t   testing.TB
	now time.Time
}

func newService(t testing.TB, options Options) *service {
	t.Helper()
	s := &service{t: t, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	clock := func() time.Time { return s.now }
	options.Clock, options.Sealer = clock, sealer(t, clock)
	if options.Machines == nil {
		options.Machines = registered{}
	}
	var err error
	if s.Attestor, err = New(options); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *service) ask(body any) (*attest.Identity, error) {
	s.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.Attest(s.t.Context(), &attest.Request{NodeName: "worker-1", RemoteAddr: netip.MustParseAddr("10.0.0.7"), Body: text})
}

// challenged returns the challenge for keys.
func (s *service) challenged(k *keys) *challenge {
	s.t.Helper()
	id, err := s.ask(evidence{Keys: k})
	next, ok := errors.AsType[*attest.Continue](err)
	if !ok {
		s.t.Fatalf("got %v, %v, want a challenge", id, err)
	}
	c := &challenge{}
	if err := json.Unmarshal(next.Challenge, c); err != nil {
		s.t.Fatal(err)
	}
	return c
}

// refusedAs fails the test if the error is not a refusal with the code.
func refusedAs(t testing.TB, id *attest.Identity, err error, code string) {
	t.Helper()
	refused, ok := errors.AsType[*attest.Refusal](err)
	if !ok || string(refused.Code) != code || id != nil {
		t.Errorf("got %v, %v, want %s", id, err, code)
	}
}
