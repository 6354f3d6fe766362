package oidc

import (
	"cmp"
	"crypto/x509"
	"fmt"
	"time"

	"github.com/google/cel-go/cel"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
)

// Options are settings of an [Attestor].
type Options struct {
	// OIDC has the settings of the configuration. The file with authorities is not read.
	v1alpha1.OIDC
	// Authorities are the authorities of the issuer's certificate; nil: the ones of the system.
	Authorities *x509.CertPool
	// ProviderID is a CEL expression for the provider ID of the node; empty: none.
	ProviderID string
	// Challenger verifies the challenges of machines that choose their audience.
	Challenger Challenger
	// Clock returns the current time; nil: time.Now.
	Clock func() time.Time
}

// NewOptions returns the options of a configuration, with its preset.
func NewOptions(config *v1alpha1.OIDC) Options {
	o := Options{OIDC: *config}
	if o.Preset == v1alpha1.GooglePreset {
		o.google()
	}
	return o
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
