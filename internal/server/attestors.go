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

	"k8s.io/client-go/kubernetes"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/ledger"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/alwaysallow"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/aws"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/oidc"
)

// newPendingAttestor returns the attestor of the configuration. An error is a mistake in the
// configuration; requests to the cloud come later.
func newPendingAttestor(b *v1alpha1.Bootstrap, client kubernetes.Interface, shared *sharedEC2) (*pendingAttestor, error) {
	pending := &pendingAttestor{kind: string(b.Attestor)}
	pending.name = "the attestor " + pending.kind
	switch b.Attestor {
	case v1alpha1.AlwaysAllowAttestor:
		pending.make = func(context.Context) (attest.Attestor, error) { return alwaysallow.New(), nil }
	case v1alpha1.OIDCAttestor:
		options, err := oidcOptions(&b.OIDC)
		if err != nil {
			return nil, err
		}
		if options.ClusterID != "" {
			pending.challenger = &pendingChallenger{}
			options.Challenger = pending.challenger
		}
		if wrong := options.Check(); len(wrong) > 0 {
			return nil, fmt.Errorf("bootstrap.oidc.%w", wrong[0])
		}
		pending.make = limited(func(ctx context.Context) (attest.Attestor, error) {
			if err := pending.challenger.learn(ctx, client); err != nil {
				return nil, err
			}
			return oidc.New(ctx, options)
		})
	case v1alpha1.AWSAttestor:
		options, err := awsOptions(&b.AWS)
		if err != nil {
			return nil, err
		}
		if b.AWS.CallerIdentity.Required {
			pending.challenger = &pendingChallenger{}
			options.CallerIdentity.Challenger = pending.challenger
		}
		if err := options.Validate(); err != nil {
			return nil, fmt.Errorf("bootstrap.aws: %w", err)
		}
		pending.make = limited(func(ctx context.Context) (attest.Attestor, error) {
			if err := pending.challenger.learn(ctx, client); err != nil {
				return nil, err
			}
			options := options
			var err error
			if options.EC2, err = shared.get(ctx); err != nil {
				return nil, err
			}
			return aws.New(ctx, options)
		})
	default:
		return nil, fmt.Errorf("bootstrap.attestor: there is no attestor %q", b.Attestor)
	}
	return pending, nil
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

// expressionsOf returns the options for identity tokens without the files, with the preset.
func expressionsOf(o *v1alpha1.OIDC) oidc.Options {
	options := oidc.Options{
		IssuerURL: o.IssuerURL, KeysFile: o.KeysFile, ClusterID: o.ClusterID, Audiences: o.Audiences, MaxAge: o.MaxAge.Duration,
		NodeName: o.NodeName, InstanceID: o.InstanceID,
	}
	for _, c := range o.Conditions {
		options.Conditions = append(options.Conditions, oidc.Condition{Expression: c.Expression, Message: c.Message})
	}
	if o.Preset == v1alpha1.GooglePreset {
		options = options.WithGoogle(o.Google.Projects, o.Google.Zones)
	}
	return options
}

// oidcOptions adds the files.
func oidcOptions(o *v1alpha1.OIDC) (oidc.Options, error) {
	options := expressionsOf(o)
	certificates, err := readAuthorities("bootstrap.oidc.certificateAuthorityFile", o.CertificateAuthorityFile)
	if len(certificates) > 0 {
		options.Authorities = x509.NewCertPool()
	}
	for _, c := range certificates {
		options.Authorities.AddCert(c)
	}
	return options, err
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
