package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/audit/auditlog"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/state/manifest"
)

const (
	// patience is the time before the progress bar appears.
	patience = time.Second
	// redraw is the minimum time between two redraws.
	redraw   = 100 * time.Millisecond
	barWidth = 24
	// clearLine returns to the beginning of the line and erases it.
	clearLine = "\r\x1b[K"
)

// progress draws a bar while a state is read.
type progress struct {
	out   io.Writer
	now   func() time.Time
	begun time.Time
	drawn time.Time
}

// newProgress returns nil if stderr is not a terminal.
func newProgress(s streams) *progress {
	if !s.live {
		return nil
	}
	return &progress{out: s.errOut, now: time.Now, begun: time.Now()}
}

// callback returns nil if no bar is drawn.
func (p *progress) callback() func(manifest.Progress) {
	if p == nil {
		return nil
	}
	return p.report
}

func (p *progress) report(at manifest.Progress) {
	p.draw(at.Source, at.Done, at.Total, func() string { return render.Count(at.Objects, "object") })
}

// lines returns nil if no bar is drawn.
func (p *progress) lines() func(auditlog.Progress) {
	if p == nil {
		return nil
	}
	return func(at auditlog.Progress) {
		p.draw(at.File, at.Done, at.Total, func() string { return render.Count(at.Lines, "line") })
	}
}

func (p *progress) draw(source string, done, total int64, count func() string) {
	now := p.now()
	if now.Sub(p.begun) < patience || now.Sub(p.drawn) < redraw {
		return
	}
	p.drawn = now
	fmt.Fprint(p.out, clearLine, "reading ", source, bar(done, total), " ", count())
}

func bar(done, total int64) string {
	if total <= 0 {
		return ""
	}
	part := min(1, float64(done)/float64(total))
	full := int(part * barWidth)
	return fmt.Sprintf(" [%s%s] %d%%", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), int(part*100))
}

// done removes the bar.
func (p *progress) done() {
	if p != nil && !p.drawn.IsZero() {
		fmt.Fprint(p.out, clearLine)
	}
}
