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

// streams is where a run reads and writes.
type streams struct {
	in          io.Reader
	out, errOut io.Writer
	// colour is true when stdout is a terminal that shows colours.
	colour bool
	// live is true when stderr is a terminal, so that a line can be redrawn.
	live bool
}

func newStreams(in io.Reader, out, errOut io.Writer) streams {
	return streams{
		in: in, out: out, errOut: errOut,
		// https://no-color.org: set and not empty, whatever the value.
		colour: isTerminal(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
		live:   isTerminal(errOut) && os.Getenv("TERM") != "dumb",
	}
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// write puts a result on stdout.
func (s streams) write(result any, format render.Format) error {
	return render.Write(s.out, result, render.Options{Format: format, Colour: s.colour})
}

func (s streams) warn(format string, args ...any) {
	s.tell("warning: ", fmt.Sprintf(format, args...))
}

func (s streams) failure(format string, args ...any) {
	s.tell("error: ", fmt.Sprintf(format, args...))
}

// tell writes one line to stderr. It may hold names from a cluster.
func (s streams) tell(kind, message string) {
	fmt.Fprintln(s.errOut, kind+render.Printable(strings.ReplaceAll(message, "\n", "; ")))
}

// didYouMean is the end of an error about an unknown name.
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
