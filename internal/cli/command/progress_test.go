package command

import (
	"strings"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/state/manifest"
)

func TestProgressBar(t *testing.T) {
	var out strings.Builder
	now := time.Unix(0, 0)
	p := &Progress{out: &out, begun: now, now: func() time.Time { return now }}
	at := func(after time.Duration, done int64) string {
		now = time.Unix(0, 0).Add(after)
		out.Reset()
		p.report(manifest.Progress{Source: "cluster.yaml", Done: done, Total: 200, Objects: 1200})
		return out.String()
	}
	for _, tc := range []struct {
		rule  string
		after time.Duration
		done  int64
		want  string
	}{
		{"nothing within a second", 900 * time.Millisecond, 10, ""},
		{"then a bar", 1000 * time.Millisecond, 50, clearLine + "reading cluster.yaml [######..................] 25% 1,200 objects"},
		{"not redrawn immediately", 1050 * time.Millisecond, 60, ""},
		{
			"redrawn later, never beyond the end", 1200 * time.Millisecond, 300,
			clearLine + "reading cluster.yaml [########################] 100% 1,200 objects",
		},
	} {
		if got := at(tc.after, tc.done); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.rule, got, tc.want)
		}
	}
	out.Reset()
	p.Done()
	if out.String() != clearLine {
		t.Errorf("done wrote %q", out.String())
	}
}

func TestDoneWithoutProgressBarWritesNothing(t *testing.T) {
	var out strings.Builder
	quick := &Progress{out: &out, now: time.Now, begun: time.Now()}
	quick.Done()
	if out.Len() > 0 {
		t.Errorf("wrote %q", out.String())
	}
	if none := NewProgress(Streams{ErrOut: &out}); none != nil || none.Callback() != nil {
		t.Error("a bar without a terminal")
	}
}

func TestProgressOfUnknownSize(t *testing.T) {
	if got := bar(10, 0); got != "" {
		t.Errorf("bar = %q", got)
	}
}
