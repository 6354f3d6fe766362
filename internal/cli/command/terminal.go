package command

import (
	"os"
	"strconv"

	"golang.org/x/term"
)

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
