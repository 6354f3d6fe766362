package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/audit/auditlog"
	"github.com/node-authorizer/node-authorizer/internal/doctor"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/output/report"
	"github.com/node-authorizer/node-authorizer/internal/resources"
	"github.com/node-authorizer/node-authorizer/internal/state/manifest"
)

// Streams are the standard streams of a run.
type Streams struct {
	In          io.Reader
	Out, ErrOut io.Writer
	// colour is true if stdout is a terminal that shows colors.
	colour bool
	// live is true if stderr is a terminal, so that a line can be redrawn.
	live bool
	// about stands before each line on stderr: the context of one of several clusters.
	about string
	// Width and errWidth are the columns to which text on stdout and stderr is fitted; 0 for any.
	Width, errWidth int
	// Invoked puts the program's name as the user writes it into texts; nil leaves them.
	Invoked func(string) string
}

// NewStreams finds out what the streams are: terminals, their widths and colors.
func NewStreams(in io.Reader, out, errOut io.Writer) Streams {
	return Streams{
		In: in, Out: out, ErrOut: errOut,
		// https://no-color.org: any value that is not empty disables colors.
		colour: isTerminal(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
		live:   isTerminal(errOut) && os.Getenv("TERM") != "dumb",
		Width:  columns(out), errWidth: columns(errOut),
	}
}

func (s Streams) Warn(format string, args ...any) {
	s.PrintLine("warning: ", fmt.Sprintf(format, args...))
}

func (s Streams) Failure(format string, args ...any) {
	s.PrintLine("error: ", fmt.Sprintf(format, args...))
}

// PrintLine writes one line to stderr, which wraps on a terminal. It escapes the message, which may
// contain names from a cluster.
func (s Streams) PrintLine(kind, message string) {
	line := kind + s.about + render.Printable(strings.ReplaceAll(message, "\n", "; "))
	if s.Invoked != nil {
		line = s.Invoked(line)
	}
	for _, part := range render.Wrap(line, s.errWidth, len(kind)) {
		fmt.Fprintln(s.ErrOut, part)
	}
}

// DidYouMean returns the end of an error about an unknown name.
func DidYouMean(name string, known []string) string {
	near := resources.Near(name, known, 3)
	if len(near) == 0 {
		return ""
	}
	return "; did you mean " + render.Join(near, "or") + "?"
}

// paged is a result that can be shown as a page.
type paged interface{ Page() report.Page }

func (a *App) writePage(result any) error {
	var page report.Page
	switch r := result.(type) {
	case paged:
		page = r.Page()
	case *doctor.Report:
		page = report.Page{Kind: report.KindDoctor, Title: "Doctor: " + r.Origin, Data: r.Shown()}
	default:
		return fmt.Errorf("a %T has no page", result)
	}
	page.Metadata = a.Metadata
	return report.Write(a.Out, page)
}

// maxColumns bounds the number of columns that the environment may give.
const maxColumns = 10_000

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// columns returns the number of columns to which text on a stream is fitted: of a terminal,
// COLUMNS of the environment or else its width. It is 0 for everything else, so that what other
// programs read does not depend on a terminal.
func columns(stream any) int {
	if !isTerminal(stream) {
		return 0
	}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return min(n, maxColumns)
	}
	width, _, err := term.GetSize(int(stream.(*os.File).Fd()))
	if err != nil {
		return 0
	}
	return min(width, maxColumns)
}

// Interactive reports whether a person can answer a question.
func (s Streams) Interactive() bool { return isTerminal(s.In) && isTerminal(s.ErrOut) }

// Confirm asks on a terminal. Without one, --yes is required. An interrupt ends the wait for the answer.
func (s Streams) Confirm(ctx context.Context, question string) error {
	if !s.Interactive() {
		return errors.New("nothing was changed: confirm with --yes")
	}
	fmt.Fprint(s.ErrOut, question+" Type yes: ")
	answer := make(chan bool, 1)
	go func() {
		line, err := bufio.NewReader(s.In).ReadString('\n')
		answer <- err == nil && strings.TrimSpace(line) == "yes"
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case confirmed := <-answer:
		if !confirmed {
			return errors.New("nothing was changed")
		}
		return nil
	}
}

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

// Open opens a file, or - for stdin, and returns its name for errors.
func (s Streams) Open(path string) (io.ReadCloser, string, error) {
	if path == StdinName {
		return io.NopCloser(s.In), "stdin", nil
	}
	file, err := os.Open(path)
	return file, path, err
}

// WriteFile writes a whole file or nothing, where that is possible.
func WriteFile(path string, write func(io.Writer) error) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return saveInto(path, write)
	}
	return replaceFile(path, write)
}

// saveInto writes to a file that cannot be replaced, such as a pipe or a terminal.
func saveInto(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := write(f); err != nil {
		return err
	}
	return f.Close()
}

// replaceFile replaces a file atomically, so that readers never see a partial file.
func replaceFile(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := write(f); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// ConfigProblems formats the errors so that editors find their position:
// "server.yaml:3: webhook.keyFile: …".
func ConfigProblems(path string, problems v1alpha1.Problems) []string {
	lines := make([]string, len(problems))
	for i, p := range problems {
		place := path
		if p.Line > 0 {
			place = fmt.Sprintf("%s:%d", path, p.Line)
		}
		p.Line = 0
		lines[i] = place + ": " + p.String()
	}
	return lines
}
