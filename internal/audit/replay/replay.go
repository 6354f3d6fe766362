package replay

import (
	"context"

	"github.com/node-authorizer/node-authorizer/internal/audit/auditlog"
)

// Run reads a log and evaluates its requests. The report is nil if [auditlog.Read] returns
// an error.
func Run(ctx context.Context, files []auditlog.File, ev *Evaluators, opts auditlog.Options) (*Report, auditlog.Summary, error) {
	c, read, err := collect(ctx, files, ev, opts)
	if err != nil {
		return nil, read, err
	}
	return c.report(read), read, nil
}

// RunPart is Run for a part of a log. A [Merger] merges the result with the results of
// the other parts.
func RunPart(ctx context.Context, files []auditlog.File, ev *Evaluators, opts auditlog.Options) (*Partial, auditlog.Summary, error) {
	c, read, err := collect(ctx, files, ev, opts)
	if err != nil {
		return nil, read, err
	}
	return c.partial(read), read, nil
}

func collect(ctx context.Context, files []auditlog.File, ev *Evaluators, opts auditlog.Options) (*collector, auditlog.Summary, error) {
	c := newCollector(ctx, ev)
	read, err := auditlog.Read(ctx, files, auditlog.Sink[*part]{
		New: func() *part { return new(part) },
		Event: func() func(*part, *auditlog.Event) {
			w := &worker{paths: newPaths()}
			return func(p *part, e *auditlog.Event) { ev.add(ctx, p, w, e) }
		},
		Merge: c.merge,
	}, opts)
	return c, read, err
}
