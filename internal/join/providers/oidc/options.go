package oidc

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"time"

	"github.com/google/cel-go/cel"
)

// Options are settings of an [Attestor].
type Options struct {
	// IssuerURL is the issuer of the tokens, exactly as in the claim iss: https.
	IssuerURL string
	// KeysFile is a file with the issuer's JSON Web Key Set, for a service without a way to the
	// issuer; empty: its keys are discovered.
	KeysFile string
	// Authorities are those of the issuer's certificate; nil: those of the system.
	Authorities *x509.CertPool
	// ClusterID is the cluster in the audience that machines choose; see [Audience]. Audiences are
	// the audiences of an issuer that does not let them choose. One of both.
	ClusterID string
	Audiences []string
	// MaxAge is the maximum age of a token.
	MaxAge time.Duration
	// Conditions must all be true.
	Conditions []Condition
	// NodeName and InstanceID are CEL expressions for the name of the node, and for a permanent
	// identity of the machine: DNS labels.
	NodeName, InstanceID string
	// Challenger makes the challenges of machines that choose their audience.
	Challenger Challenger
	// Clock returns the current time; nil: time.Now.
	Clock func() time.Time
}

// Condition is a CEL expression for what a machine must be.
type Condition struct {
	Expression string
	// Message says what is wrong if it is false.
	Message string
}

// Challenger verifies challenges; see [attest.Challenges].
type Challenger interface {
	Challenge() string
	Check(challenge string) error
}

// MostAge is the maximum of MaxAge for tokens with an audience that others may have too.
const MostAge = 5 * time.Minute

// clusterForm is the form of a cluster's id.
var clusterForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// rules are the compiled expressions.
type rules struct {
	conditions           []*expression
	nodeName, instanceID *expression
}

// Validate returns all problems of options that can be found without the issuer.
func (o *Options) Validate() error {
	_, err := o.compile()
	return err
}

func (o *Options) compile() (*rules, error) {
	problems := o.problems()
	env, err := newEnvironment()
	if err != nil {
		return nil, err
	}
	need := func(field, text string, want *cel.Type) *expression {
		if text == "" {
			problems = append(problems, fmt.Errorf("%s is missing: want a CEL expression over claims", field))
			return nil
		}
		e, err := compile(env, text, want)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", field, err))
		}
		return e
	}
	r := &rules{
		nodeName:   need("nodeName", o.NodeName, cel.StringType),
		instanceID: need("instanceID", o.InstanceID, cel.StringType),
	}
	for i, c := range o.Conditions {
		r.conditions = append(r.conditions, need(fmt.Sprintf("conditions[%d].expression", i), c.Expression, cel.BoolType))
	}
	return r, errors.Join(problems...)
}

func (o *Options) problems() (all []error) {
	u, err := url.Parse(o.IssuerURL)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		all = append(all, fmt.Errorf("issuerURL %q: want https://HOST/PATH, as in the claim iss of the tokens", o.IssuerURL))
	}
	switch {
	case (o.ClusterID == "") == (len(o.Audiences) == 0):
		all = append(all, errors.New("want either clusterID, if machines choose the audience of their tokens, or audiences"))
	case o.ClusterID != "" && !clusterForm.MatchString(o.ClusterID):
		all = append(all, fmt.Errorf("clusterID %q: want %s", o.ClusterID, clusterForm))
	case o.ClusterID != "" && o.Challenger == nil:
		all = append(all, errors.New("machines choose the audience of their tokens, and no challenger is configured"))
	case o.ClusterID == "" && o.MaxAge > MostAge:
		all = append(all, fmt.Errorf("maxAge %s: want at most %s, because a token with one of the audiences may have been read by others",
			o.MaxAge, MostAge))
	}
	if o.MaxAge <= 0 {
		all = append(all, fmt.Errorf("maxAge %s: want more than zero", o.MaxAge))
	}
	if len(o.Conditions) == 0 {
		all = append(all, errors.New("conditions are missing: without one, every machine of the issuer's customers could join"))
	}
	return all
}
