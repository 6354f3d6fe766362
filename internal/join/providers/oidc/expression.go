package oidc

import (
	"context"
	"fmt"

	"github.com/google/cel-go/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/node-authorizer/node-authorizer/attest"
)

// The variables of expressions.
const (
	// claimsVariable has the claims of the token.
	claimsVariable = "claims"
	// requestVariable has remoteAddress, nodeName and publicKey of the request.
	requestVariable = "request"
)

// expression is a CEL expression over claims and request, with the functions and the limits of
// cost that Kubernetes has for its AuthenticationConfiguration
// (https://kubernetes.io/docs/reference/access-authn-authz/authentication/#using-authentication-configuration).
type expression struct {
	text    string
	program cel.Program
}

// newEnvironment returns what expressions are compiled with.
func newEnvironment() (*cel.Env, error) {
	set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(environment.VersionedOptions{
		IntroducedVersion: environment.DefaultCompatibilityVersion(),
		EnvOptions: []cel.EnvOption{
			cel.Variable(claimsVariable, cel.MapType(cel.StringType, cel.DynType)),
			cel.Variable(requestVariable, cel.MapType(cel.StringType, cel.StringType)),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("make the environment of expressions: %w", err)
	}
	return set.Env(environment.StoredExpressions)
}

// compile compiles an expression of a type.
func compile(env *cel.Env, text string, want *cel.Type) (*expression, error) {
	ast, issues := env.Compile(text)
	if found := issues.Errors(); len(found) > 0 {
		return nil, fmt.Errorf("not a CEL expression over %s and %s: at character %d: %s", claimsVariable, requestVariable,
			found[0].Location.Column()+1, found[0].Message)
	}
	if !ast.OutputType().IsAssignableType(want) && !ast.OutputType().IsExactType(cel.DynType) {
		return nil, fmt.Errorf("%q has the type %s, want %s", text, ast.OutputType(), want)
	}
	program, err := env.Program(ast, cel.InterruptCheckFrequency(celconfig.CheckFrequency))
	if err != nil {
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	return &expression{text, program}, nil
}

// evaluate returns the value of an expression. The error is a refusal if the claims do not have
// what the expression needs: another token of the same machine would not have it either.
func evaluate[T any](ctx context.Context, e *expression, variables map[string]any) (T, error) {
	var value T
	result, _, err := e.program.ContextEval(ctx, variables)
	if ctx.Err() != nil {
		return value, fmt.Errorf("evaluate %q: %w", e.text, ctx.Err())
	}
	if err != nil {
		return value, attest.Refuse(ClaimsNotMapped, "%q: %s", e.text, err)
	}
	value, ok := result.Value().(T)
	if !ok {
		return value, attest.Refuse(ClaimsNotMapped, "%q is of type %s", e.text, result.Type())
	}
	return value, nil
}
