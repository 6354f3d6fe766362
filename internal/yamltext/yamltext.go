// Package yamltext parses YAML that people write, and finds the lines of values and
// mistakes.
package yamltext

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// Text is parsed YAML.
type Text struct {
	// Documents are the values of its documents. An empty document is null; an empty
	// text has no documents.
	Documents []*yaml.Node
	// lines maps each line in YAML's count to the line in an editor's count; nil if
	// these are the same.
	lines []int
	// last is the last line, 0 if it is not known. YAML's count goes beyond it for a null at the end.
	last int
}

// Error is a mistake in a text, with its line, from 1.
type Error struct {
	Line    int
	Problem string
}

// Error returns "line 3: found character that cannot start any token".
func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Problem) }

// Parse parses all documents of a text. If one cannot be parsed, Text has the
// documents before it.
func Parse(text []byte) (*Text, *Error) {
	documents, err := decode(text)
	t := &Text{Documents: documents, lines: editorLines(text), last: bytes.Count(text, []byte("\n")) + 1}
	if err != nil {
		return t, Locate(text, parses)
	}
	return t, nil
}

// After returns the line of text that follows the first document; 0 if nothing
// follows, or if the first document cannot be parsed.
func After(text []byte) int {
	t, err := Parse(text)
	switch {
	case len(t.Documents) > 1:
		return t.Line(t.Documents[1])
	case len(t.Documents) == 1 && err != nil:
		return err.Line
	}
	return 0
}

// decode returns the documents before the first that cannot be parsed.
func decode(text []byte) ([]*yaml.Node, error) {
	var documents []*yaml.Node
	for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var next yaml.Node
		if err := decoder.Decode(&next); errors.Is(err, io.EOF) {
			return documents, nil
		} else if err != nil {
			return documents, err
		}
		if len(next.Content) > 0 {
			documents = append(documents, next.Content[0])
		}
	}
}

func parses(text []byte) error {
	_, err := decode(text)
	return err
}

// Line returns the line of a node, from 1, as editors count.
func (t *Text) Line(node *yaml.Node) int {
	line := node.Line
	if line < len(t.lines) {
		line = t.lines[line]
	}
	if t.last > 0 {
		line = min(line, t.last)
	}
	return line
}

// Find returns the value at a path of names and numbers, or the nearest enclosing
// value.
func Find(node *yaml.Node, path ...string) *yaml.Node {
	for _, name := range path {
		next := child(node, name)
		if next == nil {
			break
		}
		node = next
	}
	return node
}

func child(node *yaml.Node, name string) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	switch node.Kind {
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(node.Content) {
			return node.Content[i]
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == name {
				return node.Content[i+1]
			}
		}
	}
	return nil
}

// editorLines numbers the lines of a text with line breaks that are line breaks in
// YAML but not in editors.
func editorLines(text []byte) []int {
	if !bytes.ContainsAny(text, "\r\u0085\u2028\u2029") {
		return nil
	}
	lines := []int{0, 1}
	line := 1
	for i, r := range string(text) {
		switch r {
		case '\n':
			line++
			lines = append(lines, line)
		case '\r':
			if !bytes.HasPrefix(text[i+1:], []byte("\n")) {
				lines = append(lines, line)
			}
		case '\u0085', '\u2028', '\u2029':
			lines = append(lines, line)
		}
	}
	return lines
}
