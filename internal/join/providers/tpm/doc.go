// Package tpm is the provider for machines with a TPM 2.0.
//
// A TPM has an endorsement key (EK), which never leaves it and identifies it: by a certificate of
// its vendor, or because a [v1alpha1.Machine] has its hash. The EK cannot sign. So the TPM makes an
// attestation key (AK), and the service encrypts a secret for the EK that the TPM decrypts only if it
// also has this AK (TPM 2.0 Library, part 1, "Credential Protection"). The AK then signs a quote: the
// values of the PCRs, which say what was booted, with the secret round and the hash of the public key
// for which the machine wants its certificate.
//
//	machine                                service
//	EK, its certificate, AK        →       certificate and attributes; a secret for EK and AK
//	secret; quote of the PCRs      →       secret, signature, PCRs; the machine's name
//
// go-tpm reads and writes the structures of the TPM, go-eventlog the log of what was booted.
package tpm
