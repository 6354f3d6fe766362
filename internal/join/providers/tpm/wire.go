package tpm

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	"github.com/google/go-tpm/tpm2"

	"github.com/node-authorizer/node-authorizer/attest"
)

// evidence is the body of a request: one of both.
type evidence struct {
	// Keys are the first round.
	Keys *keys `json:"keys,omitempty"`
	// Answer is the second round.
	Answer *answer `json:"answer,omitempty"`
}

// keys are the keys of a TPM. Bytes are in base64, and structures in the TPM's own form.
type keys struct {
	// PublicKey is the key for which the machine wants its certificate; see [attest.Binding].
	PublicKey string `json:"publicKey,omitempty"`
	// EK and AK are TPMT_PUBLIC.
	EK []byte `json:"ek"`
	AK []byte `json:"ak"`
	// EKCertificate is X.509, DER, as the TPM stores it; empty if it has none.
	EKCertificate []byte `json:"ekCertificate,omitempty"`
	// Model is what the TPM says about itself: vendor, model and firmware.
	Model string `json:"model,omitempty"`
}

// challenge is what the service answers to the keys.
type challenge struct {
	// Sealed is sent back as it is.
	Sealed string `json:"sealed"`
	// Credential is TPMS_ID_OBJECT, and Secret the seed, encrypted for the EK; the parameters of
	// TPM2_ActivateCredential.
	Credential []byte `json:"credential"`
	Secret     []byte `json:"secret"`
	// PCRs are the PCRs to quote, of the SHA-256 bank.
	PCRs []int `json:"pcrs"`
	// EventLog is true if the service wants the event log.
	EventLog bool `json:"eventLog,omitempty"`
}

// answer is what the machine answers to the challenge.
type answer struct {
	Sealed string `json:"sealed"`
	// Secret is what the TPM decrypted.
	Secret []byte `json:"secret"`
	// Quote is TPMS_ATTEST, and Signature is TPMT_SIGNATURE.
	Quote     []byte `json:"quote"`
	Signature []byte `json:"signature"`
	// PCRs are the values of the PCRs, in the order of the challenge.
	PCRs [][]byte `json:"pcrs"`
	// EventLog is the log of the firmware, as the kernel gives it.
	EventLog []byte `json:"eventLog,omitempty"`
}

// quoted returns what a quote has to contain beside the PCRs: the challenge, and the key for which
// the machine wants its certificate.
func quoted(sealed, publicKey string) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "node-authorizer.io/v1 TPM quote\n%s\n%s\n", sealed, publicKey))
	return sum[:]
}

// selection selects PCRs of the SHA-256 bank.
func selection(pcrs []int) tpm2.TPMLPCRSelection {
	numbers := make([]uint, len(pcrs))
	for i, pcr := range pcrs {
		numbers[i] = uint(pcr)
	}
	return tpm2.TPMLPCRSelection{PCRSelections: []tpm2.TPMSPCRSelection{
		{Hash: tpm2.TPMAlgSHA256, PCRSelect: tpm2.PCClientCompatible.PCRs(numbers...)},
	}}
}

// structure is a structure of the TPM.
type structure[T any] interface {
	*T
	tpm2.Unmarshallable
}

// read reads a structure, which must be all of the bytes, in the one form in which TPMs write it.
func read[T tpm2.Marshallable, P structure[T]](name string, text []byte) (*T, error) {
	parsed, err := tpm2.Unmarshal[T, P](text)
	if err != nil {
		return nil, attest.Refuse(TPMEvidenceInvalid, "%s: %.200s", name, err)
	}
	if !bytes.Equal(tpm2.Marshal(*parsed), text) {
		return nil, attest.Refuse(TPMEvidenceInvalid, "%s: there is more after its end, or it is not in the form of a TPM", name)
	}
	return parsed, nil
}
