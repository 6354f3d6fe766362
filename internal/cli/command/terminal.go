package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

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
