package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

// TestWatchPrintsAnswersThatChange drives the clock: a minute passes before each answer.
func TestWatchPrintsAnswersThatChange(t *testing.T) {
	type answer struct {
		out, warning string
		err          error
	}
	const table = render.Table
	yes, no, unread := answer{out: "yes\n"}, answer{out: "no\n"}, answer{err: errors.New("dial tcp:\nrefused")}
	for name, c := range map[string]struct {
		answers []answer
		want    string
		err     error
		format  render.Format
	}{
		"the first answer is printed":     {[]answer{yes}, "at 0\nyes\n", context.Canceled, table},
		"the same answer is printed once": {[]answer{yes, yes, yes}, "at 0\nyes\n", context.Canceled, table},
		"another answer is printed with its time": {
			[]answer{yes, yes, no, yes}, "at 0\nyes\n\nat 2\nno\n\nat 3\nyes\n", context.Canceled, table,
		},
		"an unreadable cluster is unknown, once": {
			[]answer{yes, unread, {err: errors.New("refused from another port")}, yes},
			"at 0\nyes\n\nat 1\nunknown: dial tcp: refused\n\nat 3\nyes\n", context.Canceled, table,
		},
		"a new warning is another answer": {
			[]answer{yes, {out: "yes\n", warning: "warning: pods are missing\n"}},
			"at 0\nyes\n\nat 1\nyes\nwarning: pods are missing\n", context.Canceled, table,
		},
		"the output before an error is not an answer": {
			[]answer{yes, {out: "no\n", err: unread.err}}, "at 0\nyes\n\nat 1\nunknown: dial tcp: refused\n", context.Canceled, table,
		},
		"an error of the first answer ends it": {[]answer{unread, yes}, "", unread.err, table},
		"JSON is a stream of documents, whose date is no change": {
			[]answer{{out: "{DATE}\n"}, {out: "{DATE}\n"}, {out: "{DATE 2}\n"}},
			"{at 0}\n{at 2 2}\n", context.Canceled, render.JSON,
		},
		"YAML documents have a line between them": {
			[]answer{{out: "a: DATE\n"}, {out: "a: DATE\n"}, {out: "b: DATE\n"}},
			"a: at 0\n---\nb: at 2\n", context.Canceled, render.YAML,
		},
		"an unreadable cluster is a document": {
			[]answer{{out: "{}\n"}, {out: "{", err: unread.err}, {out: "{}\n"}},
			"{}\n{\n  \"apiVersion\": \"output.node-authorizer.io/v1alpha1\",\n  \"kind\": \"NoAnswer\",\n" +
				"  \"metadata\": {\n    \"date\": \"at 1\",\n    \"version\": \"" + CurrentVersion().Version + "\",\n" +
				"    \"commandLine\": \"\"\n  },\n  \"error\": \"dial tcp: refused\"\n}\n{}\n",
			context.Canceled, render.JSON,
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			var shown strings.Builder
			begun := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			now, asked := begun, 0
			w := watch{
				App:    NewApp(Streams{Out: &shown, ErrOut: &shown}, nil, func() time.Time { return now }),
				format: c.format, interval: time.Minute,
				after: func(d time.Duration) <-chan time.Time {
					if asked == len(c.answers) {
						cancel()
						return nil
					}
					now = now.Add(d)
					tick := make(chan time.Time, 1)
					tick <- now
					return tick
				},
			}
			w.Execute = func(_ context.Context, part *App) error {
				a := c.answers[asked]
				asked++
				_, _ = io.WriteString(part.Out, strings.ReplaceAll(a.out, "DATE", part.Metadata.Date))
				_, _ = io.WriteString(part.ErrOut, a.warning)
				return a.err
			}
			err := w.run(ctx)
			want := c.want
			for minute := range len(c.answers) {
				at := begun.Add(time.Duration(minute) * time.Minute).Format(time.RFC3339)
				want = strings.ReplaceAll(want, fmt.Sprintf("at %d", minute), at)
			}
			if shown.String() != want {
				t.Errorf("printed %q, want %q", shown.String(), want)
			}
			if !errors.Is(err, c.err) {
				t.Errorf("error %v, want %v", err, c.err)
			}
		})
	}
}
