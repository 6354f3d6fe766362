package tpm

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"math/big"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-eventlog/register"
	"github.com/google/go-eventlog/tcg"
	"github.com/google/go-tpm/tpm2"

	"github.com/node-authorizer/node-authorizer/attest"
)

// FuzzEvidence: no body ends the service, and none but the honest answer is accepted.
func FuzzEvidence(f *testing.F) {
	fake := newFakeTPM(f)
	anything := policies{{Name: "any", PCRs: values(byPCR{0: {"00"}})}}
	s := newService(f, Options{Machines: known(fake), TPM: settings{Policies: anything}})
	add := func(body any) {
		text, err := json.Marshal(body)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	add(evidence{Keys: fake.keys()})
	add(evidence{Answer: fake.answer(s.challenged(fake.keys()))})
	add(map[string]any{"keys": nil, "answer": map[string]any{"pcrs": []string{"AA=="}}})
	f.Fuzz(func(t *testing.T, body []byte) {
		id, err := s.Attest(t.Context(), &attest.Request{NodeName: "worker-1", RemoteAddr: netip.MustParseAddr("10.0.0.7"), Body: body})
		if err == nil {
			t.Errorf("%+v", id)
		}
	})
}

// FuzzStructures: whatever is read as a structure of the TPM is written in the same way.
func FuzzStructures(f *testing.F) {
	fake := newFakeTPM(f)
	s := newService(f, Options{Machines: known(fake)})
	honest := fake.answer(s.challenged(fake.keys()))
	for _, text := range [][]byte{fake.keys().EK, fake.keys().AK, honest.Quote, honest.Signature} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if public, err := read[tpm2.TPMTPublic]("a key", text); err == nil {
			_, _, _ = publicKey(public, EKNotAccepted)
			_, _ = tpm2.ImportEncapsulationKey(public)
		}
		_, _ = attestation(text)
		_, _ = read[tpm2.TPMSAttest]("a quote", text)
		if signature, err := read[tpm2.TPMTSignature]("a signature", text); err == nil {
			ak, err := attestation(fake.keys().AK)
			if err != nil {
				t.Fatal(err)
			}
			if ak.verify(text, signature) {
				t.Error("verified")
			}
		}
	})
}

// FuzzEventLog: no log ends the service, whatever the PCRs are.
func FuzzEventLog(f *testing.F) {
	first := announced(bank{bankSHA256, sha256.Size})
	db := variable("db", database(100, 0, 72))
	f.Add([]byte{})
	f.Add(make([]byte, 64))
	f.Add(first)
	f.Add(slices.Concat(first, logged(tcg.EFIVariableDriverConfig, variable("SecureBoot", []byte{1})),
		logged(tcg.EFIVariableDriverConfig, db),
		logged(tcg.Separator, make([]byte, 4)), logged(tcg.EFIVariableAuthority, variable("db", make([]byte, 40)))))
	p := &policy{Name: "secure", SecureBoot: true}
	f.Fuzz(func(t *testing.T, log []byte) {
		if problem, err := p.problem(&booted{values: map[int][]byte{7: make([]byte, sha256.Size)}, log: log}); problem == "" && err == nil {
			t.Error("Secure Boot is on, with a PCR of zeros")
		}
		if !plausible(log) {
			return
		}
		if parsed, err := tcg.ParseEventLog(log, tcg.ParseOpts{AllowPadding: true}); err == nil {
			value := make([]byte, sha256.Size)
			for _, e := range parsed.Events(register.HashSHA256) {
				if e.Index == secureBootPCR && e.Type != tcg.NoAction {
					sum := sha256.Sum256(append(value, e.Digest...))
					value = sum[:]
				}
			}
			_, _ = p.problem(&booted{values: map[int][]byte{7: value}, log: log})
		}
	})
}

// BenchmarkAttest compares both rounds of a join with what cryptography alone needs for them: one encryption for the
// endorsement key and one signature.
func BenchmarkAttest(b *testing.B) {
	f := newFakeTPM(b)
	s := newService(b, Options{Machines: known(f)})
	encode := func(body any) *attest.Request {
		text, err := json.Marshal(body)
		if err != nil {
			b.Fatal(err)
		}
		return &attest.Request{NodeName: "worker-1", RemoteAddr: netip.MustParseAddr("10.0.0.7"), Body: text}
	}
	first, honest := encode(evidence{Keys: f.keys()}), f.answer(s.challenged(f.keys()))
	second := encode(evidence{Answer: honest})
	b.Run("attest", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Attest(b.Context(), first); err == nil {
				b.Fatal("no challenge")
			}
			if _, err := s.Attest(b.Context(), second); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("cryptography", func(b *testing.B) {
		signature, err := read[tpm2.TPMTSignature]("the signature", honest.Signature)
		if err != nil {
			b.Fatal(err)
		}
		made, err := signature.Signature.ECDSA()
		if err != nil {
			b.Fatal(err)
		}
		encryption, err := tpm2.ImportEncapsulationKey(&f.ekPublic)
		if err != nil {
			b.Fatal(err)
		}
		r, v := new(big.Int).SetBytes(made.SignatureR.Buffer), new(big.Int).SetBytes(made.SignatureS.Buffer)
		for b.Loop() {
			if _, _, err := encryption.Encapsulate(rand.Reader, "IDENTITY"); err != nil {
				b.Fatal(err)
			}
			digest := sha256.Sum256(honest.Quote)
			if !ecdsa.Verify(&f.ak.PublicKey, digest[:], r, v) {
				b.Fatal("the signature is not verified")
			}
		}
	})
}
