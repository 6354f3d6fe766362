package chain

import (
	"context"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	webhookmetrics "k8s.io/apiserver/plugin/pkg/authorizer/webhook/metrics"
)

// trace records how Kubernetes' webhook client handled one request. The client's
// result is the same for a match condition that is false, a cached answer and an
// answer of the webhook.
type trace struct {
	excludedBy string // the match condition that was false
	calls      int    // how often the webhook was called
	// conditionFailed is true if a match condition could not be evaluated, and answered
	// if the last call brought an answer.
	conditionFailed, answered bool
}

type traceKey struct{}

func withTrace(ctx context.Context, t *trace) context.Context {
	return context.WithValue(ctx, traceKey{}, t)
}

// traceOf returns the request's trace, or an unused one.
func traceOf(ctx context.Context) *trace {
	if t, ok := ctx.Value(traceKey{}).(*trace); ok {
		return t
	}
	return new(trace)
}

// tracingCompiler wraps a compiler of match conditions and records in traces which
// condition was false.
type tracingCompiler struct{ authorizationcel.Compiler }

func (c tracingCompiler) CompileCELExpression(expression authorizationcel.ExpressionAccessor) (authorizationcel.CompilationResult, error) {
	result, err := c.Compiler.CompileCELExpression(expression)
	if err == nil {
		result.Program = tracingProgram{result.Program, expression.GetExpression()}
	}
	return result, err
}

type tracingProgram struct {
	cel.Program
	expression string
}

func (p tracingProgram) ContextEval(ctx context.Context, vars any) (ref.Val, *cel.EvalDetails, error) {
	value, details, err := p.Program.ContextEval(ctx, vars)
	switch {
	case err == nil && value == types.False:
		traceOf(ctx).excludedBy = p.expression
	case err != nil && ctx.Err() == nil: // a cancelled evaluation has no result
		traceOf(ctx).conditionFailed = true
	}
	return value, details, err
}

// tracingMetrics records calls in traces and measures nothing. The metrics of
// Kubernetes' client would go to the global registry of the process.
type tracingMetrics struct {
	webhookmetrics.NoopAuthorizerMetrics
}

func (tracingMetrics) RecordWebhookEvaluation(ctx context.Context, _, result string) {
	t := traceOf(ctx)
	t.calls++
	t.answered = result == "success"
}
