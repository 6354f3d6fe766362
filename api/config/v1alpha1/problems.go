package v1alpha1

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one mistake in a config file.
type Problem struct {
	// Field is the path of the field: "webhook.keyFile". It is empty for the file itself.
	Field string
	// Line is the line of the field or of its parent in the file, from 1. It is 0 if
	// there is none.
	Line int
	// Message says what is wrong and what to write instead.
	Message string
}

// String returns "line 3: webhook.keyFile: …".
func (p Problem) String() string {
	text := p.Message
	if p.Field != "" {
		text = p.Field + ": " + text
	}
	if p.Line > 0 {
		text = fmt.Sprintf("line %d: %s", p.Line, text)
	}
	return text
}

// Problems are the mistakes in a config file, in the order of the file. Those without a
// line come first.
type Problems []Problem

// Error returns one line for each problem.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

func (p *Problems) add(line int, field, format string, args ...any) {
	*p = append(*p, Problem{Field: field, Line: line, Message: fmt.Sprintf(format, args...)})
}

func (p Problems) sort() {
	slices.SortStableFunc(p, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
}

// sub returns the path of a field of a field.
func sub(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
