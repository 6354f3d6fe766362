package machines

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/crypto/ssh"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
)

// Proof is what a machine has proved to have: exactly one of EKHash, PublicKey and Subject.
type Proof struct {
	// EKHash and PublicKey are "sha256:" and the hash, in hexadecimal, of a public endorsement key, or of a public key
	// (SubjectPublicKeyInfo, DER). Subject is the subject of a certificate as text (RFC 4514).
	EKHash, PublicKey, Subject string
	// Description is for the person who approves: the vendor and the model of a TPM, the kind of a key.
	Description string
}

// id identifies what was proved; no other proof has the same.
func (p *Proof) id() string {
	switch {
	case p.EKHash != "":
		return "endorsement key " + p.EKHash
	case p.PublicKey != "":
		return "public key " + p.PublicKey
	}
	return "subject " + p.Subject
}

// shownHash is how many digits of a hash are in the name of a Machine that waits for approval.
const shownHash = 20

// machineName returns the name of the Machine that waits for approval.
func (p *Proof) machineName() string {
	provider := "key-"
	if p.EKHash != "" {
		provider = "tpm-"
	}
	hash := strings.TrimPrefix(cmp.Or(p.EKHash, p.PublicKey), "sha256:")
	if p.Subject != "" {
		hash = SubjectHash(p.Subject)
	}
	return provider + hash[:shownHash]
}

// SubjectHash returns the hash of a subject in hexadecimal.
func SubjectHash(subject string) string {
	digest := sha256.Sum256([]byte(subject))
	return hex.EncodeToString(digest[:])
}

// fill sets what was proved, and its description, in a new Machine.
func (p *Proof) fill(spec *v1alpha1.MachineSpec) {
	switch {
	case p.EKHash != "":
		spec.TPM = &v1alpha1.MachineTPM{EKHashes: []string{p.EKHash}}
	case p.PublicKey != "":
		spec.PublicKeys = []string{p.PublicKey}
	default:
		spec.X509 = &v1alpha1.MachineX509{Subject: p.Subject}
	}
	spec.Evidence.Description = printable(p.Description)
}

// maxDescription limits a description, which the machine may choose, in bytes.
const maxDescription = 256

func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && r != unicode.ReplacementChar {
			return r
		}
		return '?'
	}, text)
	return strings.ToValidUTF8(text[:min(len(text), maxDescription)], "")
}

// ids returns the ids of the proofs that a Machine accepts, and an error for public keys that cannot be read.
func ids(m *v1alpha1.Machine) (all []string, err error) {
	if m.Spec.TPM != nil {
		for _, hash := range m.Spec.TPM.EKHashes {
			all = append(all, (&Proof{EKHash: hash}).id())
		}
	}
	hashes, err := KeyHashes(m)
	for _, hash := range hashes {
		all = append(all, (&Proof{PublicKey: hash}).id())
	}
	if m.Spec.X509 != nil {
		all = append(all, (&Proof{Subject: m.Spec.X509.Subject}).id())
	}
	return all, err
}

// KeyHashes returns the hashes of the public keys of a Machine, and an error for the ones that cannot be read.
func KeyHashes(m *v1alpha1.Machine) (hashes []string, err error) {
	for i, text := range m.Spec.PublicKeys {
		hash, problem := KeyHash(text)
		if problem != nil {
			err = errors.Join(err, fmt.Errorf("spec.publicKeys[%d]: %w", i, problem))
			continue
		}
		hashes = append(hashes, hash)
	}
	return hashes, err
}

// KeyHash returns the hash of a public key in one of the forms that Machines may have.
func KeyHash(text string) (string, error) {
	if v1alpha1.IsPublicKeyHash(text) {
		return text, nil
	}
	key, err := parseKey(text)
	if err != nil {
		return "", err
	}
	return v1alpha1.HashOf(key)
}

func parseKey(text string) (any, error) {
	if block, rest := pem.Decode([]byte(text)); block != nil {
		if block.Type != "PUBLIC KEY" || len(bytes.TrimSpace(rest)) > 0 {
			return nil, fmt.Errorf("want one PEM block PUBLIC KEY, got %.40q", block.Type)
		}
		return x509.ParsePKIXPublicKey(block.Bytes)
	}
	line, _, options, rest, err := ssh.ParseAuthorizedKey([]byte(text))
	if err != nil {
		return nil, errors.New("neither a PEM block PUBLIC KEY, a line of OpenSSH nor the hash of a public key")
	}
	key, ok := line.(ssh.CryptoPublicKey)
	if !ok || len(options) > 0 || len(bytes.TrimSpace(rest)) > 0 {
		return nil, fmt.Errorf("want one public key of OpenSSH without options, got one of type %s", line.Type())
	}
	return key.CryptoPublicKey(), nil
}
