package command

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/node-authorizer/node-authorizer/internal/doctor"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/output/report"
	"github.com/node-authorizer/node-authorizer/internal/resources"
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
