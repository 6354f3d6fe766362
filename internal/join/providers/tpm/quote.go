package tpm

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"reflect"

	"github.com/google/go-tpm/tpm2"

	"github.com/node-authorizer/node-authorizer/attest"
)

// checkQuote verifies that the attestation key signed exactly these values of the PCRs, for this challenge and this public
// key. It returns the counters of the TPM, for people.
func checkQuote(ak *attestationKey, pcrs []int, publicKey string, got *answer) (counters string, err error) {
	signature, err := read[tpm2.TPMTSignature]("the signature of the quote", got.Signature)
	if err != nil {
		return "", err
	}
	if !ak.verify(got.Quote, signature) {
		return "", attest.Refuse(QuoteInvalid, "the attestation key did not sign the quote")
	}
	attested, err := read[tpm2.TPMSAttest]("the quote", got.Quote)
	if err != nil {
		return "", err
	}
	quote, err := attested.Attested.Quote()
	switch {
	case attested.Magic != tpm2.TPMGeneratedValue:
		// An attestation key signs what others have made, unless it begins like this.
		return "", attest.Refuse(QuoteInvalid, "what the attestation key signed was not made by the TPM")
	case attested.Type != tpm2.TPMSTAttestQuote || err != nil:
		return "", attest.Refuse(QuoteInvalid, "what the TPM signed is not a quote")
	case !bytes.Equal(attested.QualifiedSigner.Buffer, ak.qualifiedName()):
		return "", attest.Refuse(QuoteInvalid, "the signer is not a primary key of the endorsement hierarchy")
	case !bytes.Equal(attested.ExtraData.Buffer, quoted(got.Sealed, publicKey)):
		return "", attest.Refuse(QuoteInvalid, "the quote is for another challenge, or for another public key")
	case !reflect.DeepEqual(quote.PCRSelect, selection(pcrs)):
		return "", attest.Refuse(QuoteInvalid, "the quote is about other PCRs than %v of the SHA-256 bank", pcrs)
	}
	if err := checkValues(ak, quote, pcrs, got.PCRs); err != nil {
		return "", err
	}
	clock := &attested.ClockInfo
	return fmt.Sprintf("clock %d ms, %d resets, %d restarts, firmware %#x", clock.Clock, clock.ResetCount, clock.RestartCount,
		attested.FirmwareVersion), nil
}

// checkValues compares the values of the PCRs with their digest in the quote, for which the TPM uses the hash of the signature.
func checkValues(ak *attestationKey, quote *tpm2.TPMSQuoteInfo, pcrs []int, values [][]byte) error {
	if len(values) != len(pcrs) {
		return attest.Refuse(QuoteInvalid, "there are %d values for %d PCRs", len(values), len(pcrs))
	}
	digest := ak.Hash.New()
	for i, value := range values {
		if len(value) != sha256.Size {
			return attest.Refuse(QuoteInvalid, "the value of PCR %d has %d bytes, want %d", pcrs[i], len(value), sha256.Size)
		}
		digest.Write(value)
	}
	if !bytes.Equal(digest.Sum(nil), quote.PCRDigest.Buffer) {
		return attest.Refuse(QuoteInvalid, "the values of the PCRs are not the ones in the quote")
	}
	return nil
}
