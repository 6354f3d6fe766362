package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// TestWatchPrintsAnswersThatChange drives the clock: a minute passes before each answer.
func TestWatchPrintsAnswersThatChange(t *testing.T) {
	type answer struct {
		out, warning string
		err          error
	}
	yes, no, unread := answer{out: "yes\n"}, answer{out: "no\n"}, answer{err: errors.New("dial tcp:\nrefused")}
	for name, c := range map[string]struct {
		answers []answer
		want    string
		err     error
	}{
		"the first answer is printed":             {[]answer{yes}, "at 0\nyes\n", context.Canceled},
		"the same answer is printed once":         {[]answer{yes, yes, yes}, "at 0\nyes\n", context.Canceled},
		"another answer is printed with its time": {[]answer{yes, yes, no, yes}, "at 0\nyes\n\nat 2\nno\n\nat 3\nyes\n", context.Canceled},
		"an unreadable cluster is unknown, once": {
			[]answer{yes, unread, {err: errors.New("refused from another port")}, yes},
			"at 0\nyes\n\nat 1\nunknown: dial tcp: refused\n\nat 3\nyes\n", context.Canceled,
		},
		"a new warning is another answer": {
			[]answer{yes, {out: "yes\n", warning: "warning: pods are missing\n"}},
			"at 0\nyes\n\nat 1\nyes\nwarning: pods are missing\n", context.Canceled,
		},
		"the output before an error is not an answer": {
			[]answer{yes, {out: "no\n", err: unread.err}}, "at 0\nyes\n\nat 1\nunknown: dial tcp: refused\n", context.Canceled,
		},
		"an error of the first answer ends it": {[]answer{unread, yes}, "", unread.err},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			var shown strings.Builder
			begun := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			now, asked := begun, 0
			w := watch{
				Streams: Streams{Out: &shown, ErrOut: &shown}, interval: time.Minute,
				now: func() time.Time { return now },
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
			err := w.run(ctx, func(_ context.Context, s Streams) error {
				a := c.answers[asked]
				asked++
				_, _ = io.WriteString(s.Out, a.out)
				_, _ = io.WriteString(s.ErrOut, a.warning)
				return a.err
			})
			want := c.want
			for minute := range len(c.answers) {
				at := begun.Add(time.Duration(minute) * time.Minute).Format(time.RFC3339)
				want = strings.ReplaceAll(want, fmt.Sprintf("at %d\n", minute), at+"\n")
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
