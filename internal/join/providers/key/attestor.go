package key

import (
	"context"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/approve"
	"github.com/node-authorizer/node-authorizer/internal/join/machines"
)

// Name is the name of the provider.
const Name = "key"

// Options are settings of an [Attestor]. All but Authorities and Clock are required.
type Options struct {
	// ClusterID is the cluster in the message that machines sign.
	ClusterID string
	// Registry finds the registered machines.
	Registry machines.Finder
	// Challenger verifies challenges.
	Challenger Challenger
	// Authorities issue certificates for machines; nil: machines have none.
	Authorities *x509.CertPool
	// Clock returns the current time; nil: time.Now.
	Clock func() time.Time
}

// Challenger verifies challenges; see [attest.Challenges].
type Challenger interface {
	Made(challenge string) (time.Time, error)
}

// Attestor is the server's half of the provider.
type Attestor struct{ options Options }

var _ attest.Attestor = (*Attestor)(nil)

// New returns an attestor.
func New(options Options) *Attestor {
	if options.Clock == nil {
		options.Clock = time.Now
	}
	return &Attestor{options}
}

// Name returns "key".
func (a *Attestor) Name() string { return Name }

// instanceDigits is how many digits of the hash of a key, or of a subject, are the identity of a machine.
const instanceDigits = 40

// Attest verifies the key, the challenge, the signature and the certificate, and then looks for the Machine.
func (a *Attestor) Attest(ctx context.Context, req *attest.Request) (*attest.Identity, error) {
	c, err := decode(req.Body)
	if err != nil {
		return nil, err
	}
	signer, err := c.signer()
	if err != nil {
		return nil, err
	}
	made, err := a.options.Challenger.Made(c.Challenge)
	if err != nil {
		return nil, attest.Refuse(attest.ChallengeInvalid, "the challenge that the machine signed: %s", err)
	}
	ownKey := v1alpha1.PublicKeyHash(c.PublicKey)
	signed := message(a.options.ClusterID, c.Challenge, req.NodeName, c.CertifiedKey, ownKey)
	if err := signer.CheckSignature(c.algorithm, signed, c.Signature); err != nil {
		return nil, attest.Refuse(SignatureInvalid, "the signature with public key %s for cluster %s and node %.253q: %s",
			ownKey, a.options.ClusterID, req.NodeName, err)
	}
	proof := &machines.Proof{PublicKey: ownKey, Description: describe(signer.PublicKey)}
	instance := strings.TrimPrefix(ownKey, "sha256:")
	if len(c.certificates) > 0 {
		if proof, err = a.certified(c.certificates, proof.Description); err != nil {
			return nil, err
		}
		instance = machines.SubjectHash(proof.Subject)
	}
	machine, err := a.options.Registry.Find(ctx, req, proof)
	if err != nil {
		return nil, err
	}
	return &attest.Identity{
		Provider: Name, InstanceID: instance[:instanceDigits], NodeName: machine.Spec.NodeName,
		Names: append([]string{machine.Spec.NodeName}, machine.Spec.Names...), Addresses: machines.Addresses(machine),
		Description: proof.Description,
		// The signature has several forms for one message.
		PublicKey: c.CertifiedKey, Digest: sha256.Sum256(signed), SingleUse: true, Issued: made,
	}, nil
}

// signer returns the certificate of the machine, or one that has only its public key.
func (c *claim) signer() (*x509.Certificate, error) {
	certificate := &x509.Certificate{}
	if len(c.certificates) > 0 {
		certificate = c.certificates[0]
	} else {
		key, err := x509.ParsePKIXPublicKey(c.PublicKey)
		if err != nil {
			return nil, malformed("publicKey: %v", err)
		}
		certificate.PublicKey = key
	}
	if weak := approve.Weakness(certificate.PublicKey); weak != "" {
		return nil, attest.Refuse(KeyNotAccepted, "the machine's key: %s", weak)
	}
	return certificate, nil
}

// certified verifies the certificate of a machine, whose subject has to be registered.
func (a *Attestor) certified(chain []*x509.Certificate, key string) (*machines.Proof, error) {
	if a.options.Authorities == nil {
		return nil, attest.Refuse(CertificateNotTrusted, "bootstrap.key.certificateAuthorityFile is not set")
	}
	options := x509.VerifyOptions{
		Roots: a.options.Authorities, Intermediates: x509.NewCertPool(), CurrentTime: a.options.Clock(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, c := range chain[1:] {
		// A signature with a key of 192,000 bits, which fits into a request, takes seconds to verify.
		if weak := approve.Weakness(c.PublicKey); weak != "" {
			return nil, attest.Refuse(CertificateNotTrusted, "the intermediate certificate of %.256q: %s", c.Subject, weak)
		}
		options.Intermediates.AddCert(c)
	}
	if _, err := chain[0].Verify(options); err != nil {
		return nil, attest.Refuse(CertificateNotTrusted, "the certificate of %.256q: %.300s", chain[0].Subject, err)
	}
	subject, err := subjectOf(chain[0])
	if err != nil {
		return nil, attest.Refuse(CertificateNotTrusted, "%s", err)
	}
	return &machines.Proof{Subject: subject, Description: fmt.Sprintf("%s with a certificate of %s", key, chain[0].Issuer)}, nil
}

// subjectOf returns the subject of a certificate as text (RFC 4514), as in Machines. All its values are texts: crypto/x509
// parses no others.
func subjectOf(c *x509.Certificate) (string, error) {
	var subject pkix.RDNSequence
	if rest, err := asn1.Unmarshal(c.RawSubject, &subject); err != nil || len(rest) > 0 || subject.String() == "" {
		return "", errors.New("the certificate has no subject")
	}
	return subject.String(), nil
}

// describe names the kind of a key.
func describe(key any) string {
	switch key := key.(type) {
	case *rsa.PublicKey:
		return fmt.Sprintf("RSA key of %d bits", key.N.BitLen())
	case *ecdsa.PublicKey:
		return "ECDSA key on " + key.Curve.Params().Name
	}
	return "Ed25519 key"
}
