package tpm

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-tpm/tpm2"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
)

// known returns the registration of a TPM.
func known(f *fakeTPM) registered {
	return registered{f.hash(): {Spec: v1alpha1.MachineSpec{NodeName: "worker-1", TPM: &v1alpha1.MachineTPM{EKHashes: []string{f.hash()}}}}}
}

func TestAnHonestTPM(t *testing.T) {
	f := newFakeTPM(t)
	s := newService(t, Options{Machines: known(f)})
	id, err := s.ask(evidence{Answer: f.answer(s.challenged(f.keys()))})
	if err != nil {
		t.Fatal(err)
	}
	if id.Provider != "tpm" || id.NodeName != "worker-1" || id.PublicKey != attestedKey || !id.SingleUse || !id.Issued.Equal(s.now) ||
		id.InstanceID != strings.TrimPrefix(f.hash(), "sha256:")[:40] {
		t.Errorf("got %+v", id)
	}
	const want = "the TPM has no certificate for its endorsement key; clock 1000 ms, 7 resets, 1 restarts, firmware 0x10; " +
		`it says that it is "fake"`
	if id.Description != want {
		t.Errorf("described as %s, want %s", id.Description, want)
	}
}

// What a TPM says about itself is not taken for what the service says.
func TestModelsSayNothingElse(t *testing.T) {
	f := newFakeTPM(t)
	s := newService(t, Options{Machines: known(f)})
	for model, want := range map[string]string{
		`fake; policy strict`:           `; it says that it is "fake; policy strict"`,
		`fake"; policy strict`:          `; it says that it is "fake\"; policy strict"`,
		"\x1b[2K\nCN=Vendor vouches":    `; it says that it is "\x1b[2K\nCN=Vendor vouches"`,
		strings.Repeat("a", 2*maxModel): `; it says that it is "` + strings.Repeat("a", maxModel-1),
	} {
		k := f.keys()
		k.Model = model
		id, err := s.ask(evidence{Answer: f.answer(s.challenged(k))})
		if err != nil || !strings.HasSuffix(id.Description, want) {
			t.Errorf("got %+v, %v, want %s", id, err, want)
		}
	}
}

// The first round: what the keys have to be.
func TestKeysThatAreRefused(t *testing.T) {
	f := newFakeTPM(t)
	s := newService(t, Options{Machines: known(f)})
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	other := newFakeTPM(t)
	off := func(change func(*tpm2.TPMAObject)) func(*fakeTPM, *keys) {
		return func(f *fakeTPM, k *keys) {
			public := f.akPublic
			change(&public.ObjectAttributes)
			k.AK = tpm2.Marshal(public)
		}
	}
	scheme := func(hash tpm2.TPMAlgID) func(*fakeTPM, *keys) {
		return func(f *fakeTPM, k *keys) {
			public := f.akPublic
			public.Parameters = tpm2.NewTPMUPublicParms(tpm2.TPMAlgECC, &tpm2.TPMSECCParms{
				Symmetric: tpm2.TPMTSymDefObject{Algorithm: tpm2.TPMAlgNull}, CurveID: tpm2.TPMECCNistP256,
				KDF: tpm2.TPMTKDFScheme{Scheme: tpm2.TPMAlgNull},
				Scheme: tpm2.TPMTECCScheme{
					Scheme: tpm2.TPMAlgECDSA, Details: tpm2.NewTPMUAsymScheme(tpm2.TPMAlgECDSA, &tpm2.TPMSSigSchemeECDSA{HashAlg: hash}),
				},
			})
			k.AK = tpm2.Marshal(public)
		}
	}
	for _, tc := range []struct {
		rule   string
		change func(*fakeTPM, *keys)
		code   string
	}{
		{"an RSA endorsement key of 1024 bits", func(_ *fakeTPM, k *keys) { k.EK = tpm2.Marshal(rsaEK(&weak.PublicKey)) }, "EKNotAccepted"},
		{"an endorsement key that signs", func(f *fakeTPM, k *keys) { k.EK = k.AK }, "EKNotAccepted"},
		{"an endorsement key that can leave its TPM", func(f *fakeTPM, k *keys) {
			public := f.ekPublic
			public.ObjectAttributes.FixedTPM = false
			k.EK = tpm2.Marshal(public)
		}, "EKNotAccepted"},
		{"an endorsement key on a point that is not of the curve", func(_ *fakeTPM, k *keys) {
			public := tpm2.ECCEKTemplate
			one := tpm2.TPM2BECCParameter{Buffer: big.NewInt(1).FillBytes(make([]byte, 32))}
			public.Unique = tpm2.NewTPMUPublicID(tpm2.TPMAlgECC, &tpm2.TPMSECCPoint{X: one, Y: one})
			k.EK = tpm2.Marshal(public)
		}, "EKNotAccepted"},
		{"an attestation key that signs what others made", off(func(a *tpm2.TPMAObject) { a.Restricted = false }), "AKNotAccepted"},
		{"an attestation key that was imported", off(func(a *tpm2.TPMAObject) { a.SensitiveDataOrigin = false }), "AKNotAccepted"},
		{"an attestation key that can be duplicated", off(func(a *tpm2.TPMAObject) { a.FixedParent = false }), "AKNotAccepted"},
		{"an attestation key that can leave its TPM", off(func(a *tpm2.TPMAObject) { a.FixedTPM = false }), "AKNotAccepted"},
		{"an attestation key that decrypts", off(func(a *tpm2.TPMAObject) { a.Decrypt = true }), "AKNotAccepted"},
		{"an attestation key that does not sign", off(func(a *tpm2.TPMAObject) { a.SignEncrypt = false }), "AKNotAccepted"},
		{"an attestation key with SHA-1", scheme(tpm2.TPMAlgSHA1), "AKNotAccepted"},
		{"a name with SHA-1", func(f *fakeTPM, k *keys) {
			public := f.akPublic
			public.NameAlg = tpm2.TPMAlgSHA1
			k.AK = tpm2.Marshal(public)
		}, "AKNotAccepted"},
		{"an endorsement key as attestation key", func(_ *fakeTPM, k *keys) { k.AK = k.EK }, "AKNotAccepted"},
		{"more after the end of a key", func(_ *fakeTPM, k *keys) { k.AK = append(k.AK, 0) }, "TPMEvidenceInvalid"},
		{"no keys", func(_ *fakeTPM, k *keys) { k.EK, k.AK = nil, nil }, "TPMEvidenceInvalid"},
		{"a public key in another form", func(_ *fakeTPM, k *keys) { k.PublicKey = "sha256:AA" }, "TPMEvidenceInvalid"},
		{"a certificate of another key", func(_ *fakeTPM, k *keys) {
			k.EKCertificate = newVendor(t).issue(&other.ek.PublicKey, nil)
		}, "EKCertificateInvalid"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			k := f.keys()
			tc.change(f, k)
			id, err := s.ask(evidence{Keys: k})
			refusedAs(t, id, err, tc.code)
		})
	}
	for name, whole := range map[string][]byte{"endorsement key": f.keys().EK, "attestation key": f.keys().AK} {
		for length := range whole {
			k := f.keys()
			if name == "endorsement key" {
				k.EK = whole[:length]
			} else {
				k.AK = whole[:length]
			}
			id, err := s.ask(evidence{Keys: k})
			refusedAs(t, id, err, "TPMEvidenceInvalid")
		}
	}
}

// The second round: what the answer has to be. Each attack has the right secret, if it does not say otherwise.
func TestAnswersThatAreRefused(t *testing.T) {
	f := newFakeTPM(t)
	s := newService(t, Options{Machines: known(f)})
	// changed signs another quote.
	changed := func(change func(*challenge, *tpm2.TPMSAttest)) func(*challenge, *answer) {
		return func(c *challenge, a *answer) {
			attested := f.quoteOf(c, attestedKey)
			change(c, attested)
			f.sign(attested, a)
		}
	}
	quoteInfo := func(pcrs tpm2.TPMLPCRSelection, digest []byte) tpm2.TPMUAttest {
		return tpm2.NewTPMUAttest(tpm2.TPMSTAttestQuote, &tpm2.TPMSQuoteInfo{PCRSelect: pcrs, PCRDigest: tpm2.TPM2BDigest{Buffer: digest}})
	}
	bank := func(hash tpm2.TPMAlgID, pcrs []int) tpm2.TPMLPCRSelection {
		all := selection(pcrs)
		all.PCRSelections[0].Hash = hash
		return all
	}
	zeros := sha256.Sum256(make([]byte, 8*sha256.Size))
	earlier := s.challenged(f.keys())
	earlierAnswer := f.answer(earlier)
	for _, tc := range []struct {
		rule   string
		change func(*challenge, *answer)
		code   string
	}{
		{"no secret", func(_ *challenge, a *answer) { a.Secret = nil }, "CredentialNotActivated"},
		{"another secret", func(_ *challenge, a *answer) { a.Secret[0] ^= 1 }, "CredentialNotActivated"},
		{"the secret of an earlier challenge", func(_ *challenge, a *answer) { a.Secret = earlierAnswer.Secret }, "CredentialNotActivated"},
		{"a replayed quote", func(_ *challenge, a *answer) {
			a.Quote, a.Signature = earlierAnswer.Quote, earlierAnswer.Signature
		}, "QuoteInvalid"},
		{"a quote for another public key than the one to be certified", changed(func(c *challenge, q *tpm2.TPMSAttest) {
			q.ExtraData.Buffer = quoted(c.Sealed, strings.Repeat("b", 64))
		}), "QuoteInvalid"},
		{"a quote without the challenge", changed(func(_ *challenge, q *tpm2.TPMSAttest) { q.ExtraData.Buffer = nil }), "QuoteInvalid"},
		{"a quote of another attestation key", func(c *challenge, a *answer) {
			other := *f
			other.newAK()
			other.sign(f.quoteOf(c, attestedKey), a)
		}, "QuoteInvalid"},
		{"a signer in another hierarchy", changed(func(_ *challenge, q *tpm2.TPMSAttest) {
			q.QualifiedSigner.Buffer[5] ^= 1
		}), "QuoteInvalid"},
		{"not made by a TPM", changed(func(_ *challenge, q *tpm2.TPMSAttest) { q.Magic = 0xff544348 }), "QuoteInvalid"},
		{"a certification instead of a quote", changed(func(_ *challenge, q *tpm2.TPMSAttest) {
			q.Type = tpm2.TPMSTAttestCertify
			q.Attested = tpm2.NewTPMUAttest(tpm2.TPMSTAttestCertify, &tpm2.TPMSCertifyInfo{})
		}), "QuoteInvalid"},
		{"a quote over other PCRs", changed(func(_ *challenge, q *tpm2.TPMSAttest) {
			q.Attested = quoteInfo(selection([]int{16, 17, 18, 19, 20, 21, 22, 23}), zeros[:])
		}), "QuoteInvalid"},
		{"a quote over fewer PCRs", changed(func(_ *challenge, q *tpm2.TPMSAttest) {
			one := sha256.Sum256(make([]byte, sha256.Size))
			q.Attested = quoteInfo(selection([]int{0}), one[:])
		}), "QuoteInvalid"},
		{"a quote over the SHA-1 bank only", changed(func(c *challenge, q *tpm2.TPMSAttest) {
			q.Attested = quoteInfo(bank(tpm2.TPMAlgSHA1, c.PCRs), zeros[:])
		}), "QuoteInvalid"},
		{"a quote over two banks", changed(func(c *challenge, q *tpm2.TPMSAttest) {
			both := selection(c.PCRs)
			both.PCRSelections = append(both.PCRSelections, bank(tpm2.TPMAlgSHA1, c.PCRs).PCRSelections...)
			q.Attested = quoteInfo(both, zeros[:])
		}), "QuoteInvalid"},
		{"other values than in the quote", func(_ *challenge, a *answer) { a.PCRs[3] = slices.Repeat([]byte{1}, 32) }, "QuoteInvalid"},
		{"values of another length", func(_ *challenge, a *answer) { a.PCRs[3] = make([]byte, 20) }, "QuoteInvalid"},
		{"too few values", func(_ *challenge, a *answer) { a.PCRs = a.PCRs[1:] }, "QuoteInvalid"},
		{"a signature with another hash", func(c *challenge, a *answer) {
			digest := sha256.Sum256(a.Quote)
			r, sig, err := ecdsa.Sign(rand.Reader, f.ak, digest[:])
			if err != nil {
				t.Fatal(err)
			}
			a.Signature = tpm2.Marshal(ecdsaSignature(tpm2.TPMAlgSHA1, r, sig))
		}, "QuoteInvalid"},
		{"more after the end of the quote", func(_ *challenge, a *answer) { a.Signature = append(a.Signature, 0) }, "TPMEvidenceInvalid"},
		{"a challenge of another service", func(_ *challenge, a *answer) {
			a.Sealed = a.Sealed[:60] + "AAAA" + a.Sealed[64:]
		}, "ChallengeInvalid"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			c := s.challenged(f.keys())
			a := f.answer(c)
			tc.change(c, a)
			id, err := s.ask(evidence{Answer: a})
			refusedAs(t, id, err, tc.code)
		})
	}
}

// A TPM decrypts the secret only for an attestation key that it has itself. Here one does so for the attacker's key, as if it had
// no such rule, and then for its own key: the secret is of no use with the other key.
func TestTheAttestationKeyOfAnotherTPM(t *testing.T) {
	victim, attacker := newFakeTPM(t), newFakeTPM(t)
	s := newService(t, Options{Machines: known(victim)})
	shown := victim.keys()
	shown.AK = attacker.keys().AK
	c := s.challenged(shown)
	a := attacker.answerWith(c, victim.activate(c))
	id, err := s.ask(evidence{Answer: a})
	refusedAs(t, id, err, "CredentialNotActivated")
}

// answerWith is an answer with a secret that another TPM decrypted.
func (f *fakeTPM) answerWith(c *challenge, secret []byte) *answer {
	a := &answer{Sealed: c.Sealed, Secret: secret}
	for _, pcr := range c.PCRs {
		a.PCRs = append(a.PCRs, f.pcrs[pcr])
	}
	f.sign(f.quoteOf(c, attestedKey), a)
	return a
}

func TestAChallengeIsForOneMinuteAndOneNode(t *testing.T) {
	f := newFakeTPM(t)
	s := newService(t, Options{Machines: known(f)})
	a := f.answer(s.challenged(f.keys()))
	s.now = s.now.Add(61 * time.Second)
	id, err := s.ask(evidence{Answer: a})
	refusedAs(t, id, err, "ChallengeInvalid")
	s.now = s.now.Add(-61 * time.Second)
	if _, err := s.ask(evidence{Answer: a}); err != nil {
		t.Errorf("in time: %v", err)
	}
}

func TestEvidenceInAnotherForm(t *testing.T) {
	f := newFakeTPM(t)
	s := newService(t, Options{Machines: known(f)})
	for _, body := range []any{
		map[string]any{},
		evidence{Keys: f.keys(), Answer: &answer{}},
		[]int{1},
		map[string]any{"keys": map[string]any{"ek": 1}},
		map[string]any{"Keys": f.keys()},
		map[string]any{"keys": f.keys(), "more": 1},
	} {
		id, err := s.ask(body)
		refusedAs(t, id, err, "TPMEvidenceInvalid")
	}
}

// Each changed bit of an answer is refused, except in what the quote does not contain: the event log, which no policy asks for.
func TestEachBitOfAnAnswer(t *testing.T) {
	f := newFakeTPM(t)
	s := newService(t, Options{Machines: known(f)})
	whole := f.answer(s.challenged(f.keys()))
	for name, field := range map[string]*[]byte{
		"secret": &whole.Secret, "quote": &whole.Quote, "signature": &whole.Signature, "pcrs": &whole.PCRs[2],
	} {
		original := *field
		for i := range 8 * len(original) {
			*field = slices.Clone(original)
			(*field)[i/8] ^= 1 << (i % 8)
			if id, err := s.ask(evidence{Answer: whole}); err == nil {
				t.Errorf("bit %d of %s: accepted as %+v", i, name, id)
			}
		}
		*field = original
	}
	if _, err := s.ask(evidence{Answer: whole}); err != nil {
		t.Errorf("unchanged: %v", err)
	}
}

func TestEllipticKeysOfOtherCurvesAreRefused(t *testing.T) {
	f := newFakeTPM(t)
	s := newService(t, Options{Machines: known(f)})
	small, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	point, err := small.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	public := f.akPublic
	public.Parameters = tpm2.NewTPMUPublicParms(tpm2.TPMAlgECC, &tpm2.TPMSECCParms{
		Symmetric: tpm2.TPMTSymDefObject{Algorithm: tpm2.TPMAlgNull}, CurveID: tpm2.TPMECCNistP224,
		KDF: tpm2.TPMTKDFScheme{Scheme: tpm2.TPMAlgNull},
		Scheme: tpm2.TPMTECCScheme{
			Scheme:  tpm2.TPMAlgECDSA,
			Details: tpm2.NewTPMUAsymScheme(tpm2.TPMAlgECDSA, &tpm2.TPMSSigSchemeECDSA{HashAlg: tpm2.TPMAlgSHA256}),
		},
	})
	public.Unique = tpm2.NewTPMUPublicID(tpm2.TPMAlgECC, &tpm2.TPMSECCPoint{
		X: tpm2.TPM2BECCParameter{Buffer: point[1:29]}, Y: tpm2.TPM2BECCParameter{Buffer: point[29:]},
	})
	k := f.keys()
	k.AK = tpm2.Marshal(public)
	id, err := s.ask(evidence{Keys: k})
	refusedAs(t, id, err, "AKNotAccepted")
}
