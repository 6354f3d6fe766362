package identitydocument_test

import (
	"crypto"
	//lint:ignore SA1019 One of the three forms in which AWS signs is DSA.
	"crypto/dsa"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"slices"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/aws/identitydocument"
)

// BenchmarkVerify measures the verification of a document from the text of the metadata
// service, and the floor: the hash of the signed bytes and the bare check of the
// signature with the same key. They alternate, so that other load slows both. The result
// is the ratio of the medians.
//
//	go test ./internal/aws/identitydocument -run - -bench Verify
func BenchmarkVerify(b *testing.B) {
	verifier := identitydocument.NewVerifier(nil)
	for _, form := range genuineForms(b) {
		b.Run(string(form.name), func(b *testing.B) {
			b.ReportAllocs()
			const turn = 8
			var whole, floor []time.Duration
			for b.Loop() {
				begin := time.Now()
				for range turn {
					if _, err := verifier.Verify(form.evidence); err != nil {
						b.Fatal(err)
					}
				}
				between := time.Now()
				for range turn {
					if !form.floor() {
						b.Fatal("the signature is not good")
					}
				}
				whole, floor = append(whole, between.Sub(begin)/turn), append(floor, time.Since(between)/turn)
			}
			slices.Sort(whole)
			slices.Sort(floor)
			w, f := whole[len(whole)/2], floor[len(floor)/2]
			b.ReportMetric(float64(w), "whole-ns")
			b.ReportMetric(float64(f), "floor-ns")
			b.ReportMetric(float64(time.Second)/float64(w), "verified/s")
			b.ReportMetric(float64(f)/float64(w), "of-floor")
		})
	}
}

// genuineForm is a document that AWS signed, with the bare check of its signature.
type genuineForm struct {
	name     identitydocument.Form
	evidence *identitydocument.Evidence
	floor    func() bool
}

func genuineForms(tb testing.TB) []genuineForm {
	beside := genuineBeside(tb)
	rsaMessage, dsaMessage := genuine(tb, "ap-southeast-2.rsa2048.txt"), genuine(tb, "ap-southeast-2.pkcs7.txt")
	rsaParts, dsaParts := identitydocument.PartsOf(tb, rsaMessage), identitydocument.PartsOf(tb, dsaMessage)
	rsaKey, besideKey := pinnedKey[*rsa.PublicKey]("rsa2048"), pinnedKey[*rsa.PublicKey]("rsa")
	dsaKey := pinnedKey[*dsa.PublicKey]("dsa")
	r, s := identitydocument.DSANumbers(dsaParts.Signature)
	return []genuineForm{
		{identitydocument.RSA2048, &identitydocument.Evidence{Document: rsaMessage}, func() bool {
			sha256.Sum256(rsaParts.Content)
			sum := sha256.Sum256(rsaParts.Attributes)
			return rsa.VerifyPKCS1v15(rsaKey, crypto.SHA256, sum[:], rsaParts.Signature) == nil
		}},
		{identitydocument.PKCS7, &identitydocument.Evidence{Document: dsaMessage}, func() bool {
			sha1.Sum(dsaParts.Content)
			sum := sha1.Sum(dsaParts.Attributes)
			return dsa.Verify(dsaKey, sum[:], r, s)
		}},
		{identitydocument.Signature, beside, func() bool {
			sum := sha256.Sum256(beside.Document)
			return rsa.VerifyPKCS1v15(besideKey, crypto.SHA256, sum[:], beside.Signature) == nil
		}},
	}
}
