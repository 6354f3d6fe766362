package server

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/ledger"
	"github.com/node-authorizer/node-authorizer/internal/join/machines"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/alwaysallow"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/aws"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/oidc"
)

// preparation makes the attestor of a configuration.
type preparation struct {
	config *v1alpha1.Bootstrap
	client kubernetes.Interface
	shared *sharedEC2
	// registry is nil if the attestor does not ask for registered machines.
	registry *machines.Registry
	// pending gets the challenger of providers that challenge machines.
	pending *pendingAttestor
}

// newPendingAttestor returns the attestor of the configuration. An error is a mistake in the
// configuration; requests to the cloud come later.
func newPendingAttestor(
	b *v1alpha1.Bootstrap, client kubernetes.Interface, shared *sharedEC2, registry *machines.Registry,
) (*pendingAttestor, error) {
	p := &preparation{
		config: b, client: client, shared: shared, registry: registry, pending: &pendingAttestor{kind: string(b.Attestor)},
	}
	p.pending.name = "the attestor " + p.pending.kind
	var err error
	switch b.Attestor {
	case v1alpha1.AlwaysAllowAttestor:
		p.pending.make = func(context.Context) (attest.Attestor, error) { return alwaysallow.New(), nil }
	case v1alpha1.OIDCAttestor:
		err = p.oidc()
	case v1alpha1.AWSAttestor:
		err = p.aws()
	case v1alpha1.TPMAttestor:
		err = p.tpm()
	case v1alpha1.KeyAttestor:
		err = p.key()
	case v1alpha1.ExecAttestor:
		p.exec()
	default:
		err = fmt.Errorf("bootstrap.attestor: there is no attestor %q", b.Attestor)
	}
	return p.pending, err
}

// challenge lets the service challenge machines.
func (p *preparation) challenge() *pendingChallenger {
	p.pending.challenger = &pendingChallenger{}
	return p.pending.challenger
}

// make says how the attestor is made, once the key of challenges is known if machines are challenged.
func (p *preparation) make(attestor func(context.Context) (attest.Attestor, error)) {
	p.pending.make = limited(func(ctx context.Context) (attest.Attestor, error) {
		if err := p.pending.challenger.learn(ctx, p.client); err != nil {
			return nil, err
		}
		return attestor(ctx)
	})
}

func (p *preparation) oidc() error {
	options := oidc.NewOptions(&p.config.OIDC)
	var err error
	options.Authorities, err = readPool("bootstrap.oidc.certificateAuthorityFile", options.CertificateAuthorityFile)
	if err != nil {
		return err
	}
	if options.ClusterID != "" {
		options.Challenger = p.challenge()
	}
	if wrong := options.Check(); len(wrong) > 0 {
		return fmt.Errorf("bootstrap.oidc.%w", wrong[0])
	}
	p.make(func(ctx context.Context) (attest.Attestor, error) { return oidc.New(ctx, options) })
	return nil
}

func (p *preparation) aws() error {
	options, err := awsOptions(&p.config.AWS)
	if err != nil {
		return err
	}
	if options.CallerIdentity.Required {
		options.CallerIdentity.Challenger = p.challenge()
	}
	if err := options.Validate(); err != nil {
		return fmt.Errorf("bootstrap.aws: %w", err)
	}
	p.make(func(ctx context.Context) (attest.Attestor, error) {
		options := options
		var err error
		if options.EC2, err = p.shared.get(ctx); err != nil {
			return nil, err
		}
		return aws.New(ctx, options)
	})
	return nil
}

func awsOptions(a *v1alpha1.AWS) (aws.Options, error) {
	options := aws.Options{
		ClusterName: a.ClusterName, ClusterTag: a.ClusterTag,
		Accounts: a.Accounts, Regions: a.Regions, VPCs: a.VPCs, InstanceProfiles: a.InstanceProfiles,
		Naming: a.Naming, SkipSignature: !a.VerifySignature, SkipSourceAddress: !a.VerifySourceAddress,
		CallerIdentity: aws.CallerIdentity{Required: a.CallerIdentity.Required, Endpoint: a.CallerIdentity.Endpoint},
	}
	var err error
	options.Certificates, err = readAuthorities("bootstrap.aws.certificatesFile", a.CertificatesFile)
	return options, err
}

// readAuthorities reads the certificates in the file of a field; none without a file.
func readAuthorities(field, path string) ([]*x509.Certificate, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", field, err)
	}
	certificates, err := parseAuthorities(text)
	if err != nil {
		return nil, fmt.Errorf("use %s %s: %w", field, path, err)
	}
	return certificates, nil
}

// readPool reads the authorities in the file of a field; nil without a file.
func readPool(field, path string) (*x509.CertPool, error) {
	certificates, err := readAuthorities(field, path)
	if len(certificates) == 0 {
		return nil, err
	}
	pool := x509.NewCertPool()
	for _, c := range certificates {
		pool.AddCert(c)
	}
	return pool, err
}

// pendingChallenger makes challenges once it has the key that replicas share. Before that it
// makes and accepts none.
type pendingChallenger struct {
	known atomic.Pointer[attest.Challenges]
}

// challengeLabel is the label under which the key of challenges is derived.
const challengeLabel = "node-authorizer.io/v1 challenges"

// learn derives the key from the key of the service. Without a challenger there is nothing to learn.
func (l *pendingChallenger) learn(ctx context.Context, client kubernetes.Interface) error {
	if l == nil {
		return nil
	}
	service, err := ledger.ServiceKey(ctx, client)
	if err != nil {
		return err
	}
	key, err := hkdf.Key(sha256.New, service, nil, challengeLabel, sha256.Size)
	if err != nil {
		return fmt.Errorf("derive the key of challenges: %w", err)
	}
	challenges, err := attest.NewChallenges(key, nil)
	if err != nil {
		return err
	}
	l.known.Store(challenges)
	return nil
}

// Challenge is empty before the key is known: machines then send no signature, and are asked to
// retry.
func (l *pendingChallenger) Challenge() string {
	if known := l.known.Load(); known != nil {
		return known.Challenge()
	}
	return ""
}

var errKeyUnknown = errors.New("the key of challenges is not known yet")

// Check returns an error if a challenge is not valid.
func (l *pendingChallenger) Check(challenge string) error {
	if known := l.known.Load(); known != nil {
		return known.Check(challenge)
	}
	return errKeyUnknown
}

// Made implements [attest.Challenges.Made].
func (l *pendingChallenger) Made(challenge string) (time.Time, error) {
	if known := l.known.Load(); known != nil {
		return known.Made(challenge)
	}
	return time.Time{}, errKeyUnknown
}

// Seal implements [attest.Challenges.Seal].
func (l *pendingChallenger) Seal(purpose string, state []byte) (string, error) {
	if known := l.known.Load(); known != nil {
		return known.Seal(purpose, state)
	}
	return "", errKeyUnknown
}

// Open implements [attest.Challenges.Open].
func (l *pendingChallenger) Open(purpose, text string) ([]byte, time.Time, error) {
	if known := l.known.Load(); known != nil {
		return known.Open(purpose, text)
	}
	return nil, time.Time{}, errKeyUnknown
}
