package oidc

import (
	"cmp"
	"crypto/x509"
	"fmt"
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
	// Authorities are the authorities of the issuer's certificate; nil: the ones of the system.
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
	// ProviderID is a CEL expression for the provider ID of the node; empty: none.
	ProviderID string
	// Challenger verifies the challenges of machines that choose their audience.
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
	Check(challenge string) error
}

// rules are the compiled expressions.
type rules struct {
	conditions           []*expression
	nodeName, instanceID *expression
	providerID           *expression // of the empty text without one
}

// WrongExpression is the error of an expression that cannot be compiled.
type WrongExpression struct {
	// Field is the field of the configuration: "conditions[0].expression".
	Field string
	Err   error
}

func (w *WrongExpression) Error() string { return w.Field + ": " + w.Err.Error() }
func (w *WrongExpression) Unwrap() error { return w.Err }

// Check returns what is wrong with the expressions. The configuration's validation checks the rest.
func (o *Options) Check() []*WrongExpression {
	_, wrong := o.compile()
	return wrong
}

func (o *Options) compile() (*rules, []*WrongExpression) {
	env, err := newEnvironment()
	if err != nil {
		return nil, []*WrongExpression{{"conditions", err}}
	}
	var wrong []*WrongExpression
	compiled := func(field, text string, want *cel.Type) *expression {
		e, err := compile(env, text, want)
		if err != nil {
			wrong = append(wrong, &WrongExpression{field, err})
		}
		return e
	}
	r := &rules{
		nodeName:   compiled("nodeName", o.NodeName, cel.StringType),
		instanceID: compiled("instanceID", o.InstanceID, cel.StringType),
		providerID: compiled("providerID", cmp.Or(o.ProviderID, "''"), cel.StringType),
	}
	for i, c := range o.Conditions {
		r.conditions = append(r.conditions, compiled(fmt.Sprintf("conditions[%d].expression", i), c.Expression, cel.BoolType))
	}
	return r, wrong
}
