package cli

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

// streams are the standard streams of a run.
type streams struct {
	in          io.Reader
	out, errOut io.Writer
	// colour is true if stdout is a terminal that shows colors.
	colour bool
	// live is true if stderr is a terminal, so that a line can be redrawn.
	live bool
	// width and errWidth are the columns to which text on stdout and stderr is fitted; 0 for any.
	width, errWidth int
	// invoked puts the program's name as the user writes it into texts; nil leaves them.
	invoked func(string) string
}

func newStreams(in io.Reader, out, errOut io.Writer) streams {
	return streams{
		in: in, out: out, errOut: errOut,
		// https://no-color.org: any value that is not empty disables colors.
		colour: isTerminal(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
		live:   isTerminal(errOut) && os.Getenv("TERM") != "dumb",
		width:  columns(out), errWidth: columns(errOut),
	}
}

// write writes a result to stdout.
func (s streams) write(result any, format render.Format) error {
	if format == render.HTML {
		return s.writePage(result)
	}
	return render.Write(s.out, result, render.Options{
		Format: format, Colour: s.colour, Width: s.width, Program: s.invoked,
	})
}

func (s streams) warn(format string, args ...any) {
	s.printLine("warning: ", fmt.Sprintf(format, args...))
}

func (s streams) failure(format string, args ...any) {
	s.printLine("error: ", fmt.Sprintf(format, args...))
}

// printLine writes one line to stderr, which wraps on a terminal. It escapes the message, which may
// contain names from a cluster.
func (s streams) printLine(kind, message string) {
	line := kind + render.Printable(strings.ReplaceAll(message, "\n", "; "))
	if s.invoked != nil {
		line = s.invoked(line)
	}
	for _, part := range render.Wrap(line, s.errWidth, len(kind)) {
		fmt.Fprintln(s.errOut, part)
	}
}

// didYouMean returns the end of an error about an unknown name.
func didYouMean(name string, known []string) string {
	near := resources.Near(name, known, 3)
	if len(near) == 0 {
		return ""
	}
	return "; did you mean " + render.Join(near, "or") + "?"
}

// paged is a result that can be shown as a page.
type paged interface{ page() report.Page }

// writePage writes a result as a page.
func (s streams) writePage(result any) error {
	switch r := result.(type) {
	case paged:
		return report.Write(s.out, r.page())
	case *doctor.Report:
		return report.Write(s.out, report.Page{Kind: report.KindDoctor, Title: "Doctor: " + r.Origin, Data: r.Shown()})
	}
	return fmt.Errorf("a %T has no page", result)
}
