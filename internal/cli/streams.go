package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/node-authorizer/node-authorizer/internal/render"
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
}

func newStreams(in io.Reader, out, errOut io.Writer) streams {
	return streams{
		in: in, out: out, errOut: errOut,
		// https://no-color.org: any value that is not empty disables colors.
		colour: isTerminal(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
		live:   isTerminal(errOut) && os.Getenv("TERM") != "dumb",
	}
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// write writes a result to stdout.
func (s streams) write(result any, format render.Format) error {
	if format == render.HTML {
		return s.writePage(result)
	}
	return render.Write(s.out, result, render.Options{Format: format, Colour: s.colour})
}

func (s streams) warn(format string, args ...any) {
	s.printLine("warning: ", fmt.Sprintf(format, args...))
}

func (s streams) failure(format string, args ...any) {
	s.printLine("error: ", fmt.Sprintf(format, args...))
}

// printLine writes one line to stderr. It escapes the message, which may contain names from a
// cluster.
func (s streams) printLine(kind, message string) {
	fmt.Fprintln(s.errOut, kind+render.Printable(strings.ReplaceAll(message, "\n", "; ")))
}

// didYouMean returns the end of an error about an unknown name.
func didYouMean(name string, known []string) string {
	switch near := resources.Near(name, known, 3); len(near) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("; did you mean %s?", near[0])
	case 2:
		return fmt.Sprintf("; did you mean %s or %s?", near[0], near[1])
	default:
		return fmt.Sprintf("; did you mean %s, %s or %s?", near[0], near[1], near[2])
	}
}
