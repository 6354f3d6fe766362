package replay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/node-authorizer/node-authorizer/internal/audit/auditlog"
)

// Run reads a log, or a part of one, and evaluates its requests. A [Merger] merges the reports of parts.
func Run(ctx context.Context, files []auditlog.File, ev *Evaluators, opts auditlog.Options) (*Partial, error) {
	c, named, opened := newCollector(ctx, ev), PartialFiles(files), 0
	opts.Opened = func(_ auditlog.File, first []byte) {
		if len(first) > 0 {
			sum := sha256.Sum256(first)
			named[opened].Begins = hex.EncodeToString(sum[:])
		}
		opened++
	}
	read, err := auditlog.Read(ctx, files, auditlog.Sink[*part]{
		New: func() *part { return new(part) },
		Event: func() func(*part, *auditlog.Event) {
			w := &worker{paths: newPaths()}
			return func(p *part, e *auditlog.Event) { ev.add(ctx, p, w, e) }
		},
		Merge: c.merge,
	}, opts)
	if err != nil {
		return nil, err
	}
	return c.partial(read, named), nil
}
