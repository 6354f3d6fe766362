package command

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

// Progress draws a bar while a state is read.
type Progress struct {
	out   io.Writer
	now   func() time.Time
	begun time.Time
	drawn time.Time
}

// NewProgress returns nil if stderr is not a terminal.
func NewProgress(s Streams) *Progress {
	if !s.live {
		return nil
	}
	return &Progress{out: s.ErrOut, now: time.Now, begun: time.Now()}
}

// Callback returns nil if no bar is drawn.
func (p *Progress) Callback() func(manifest.Progress) {
	if p == nil {
		return nil
	}
	return p.report
}

func (p *Progress) report(at manifest.Progress) {
	p.Draw(at.Source, at.Done, at.Total, func() string { return render.Count(at.Objects, "object") })
}

// Lines returns nil if no bar is drawn.
func (p *Progress) Lines() func(auditlog.Progress) {
	if p == nil {
		return nil
	}
	return func(at auditlog.Progress) {
		p.Draw(at.File, at.Done, at.Total, func() string { return render.Count(at.Lines, "line") })
	}
}

// Draw draws how much of a source has been read.
func (p *Progress) Draw(source string, done, total int64, count func() string) {
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

func (p *Progress) Done() {
	if p != nil && !p.drawn.IsZero() {
		fmt.Fprint(p.out, clearLine)
	}
}
