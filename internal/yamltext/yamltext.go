// Package yamltext parses YAML that people write, and says on which line of it a value
// or a mistake is.
package yamltext

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// Text is YAML that was parsed.
type Text struct {
	// Documents are the values of its documents. An empty document is null; a text with
	// nothing in it has no documents.
	Documents []*yaml.Node
	// lines has, for each line as YAML counts them, the line as editors do; nil if these
	// are the same.
	lines []int
}

// Error says what is wrong with a text, and on which line, from 1.
type Error struct {
	Line    int
	Problem string
}

// Error returns "line 3: found character that cannot start any token".
func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Problem) }

// Parse parses all documents of a text. If one cannot be parsed, the text has those
// before it.
func Parse(text []byte) (*Text, *Error) {
	documents, err := decode(text)
	t := &Text{Documents: documents, lines: editorLines(text)}
	if err != nil {
		return t, Locate(text, parses)
	}
	return t, nil
}

// After is the line on which something follows the first document of a text; 0 if
// nothing does, and if the first document cannot be parsed.
func After(text []byte) int {
	documents, err := decode(text)
	switch {
	case len(documents) > 1:
		return documents[1].Line
	case len(documents) == 1 && err != nil:
		return Locate(text, parses).Line
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

// Line is the line of a node, from 1, as editors count.
func (t *Text) Line(node *yaml.Node) int {
	if node.Line < len(t.lines) {
		return t.lines[node.Line]
	}
	return node.Line
}

// Find finds the value at a path of names and numbers, or the nearest one around it.
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

// editorLines numbers the lines of a text that has line breaks that YAML knows and
// editors do not.
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
