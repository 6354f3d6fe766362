package manifest

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/internal/yamltext"
)

// yamlToJSON converts one document as Kubernetes does: YAML 1.1 scalars, and no
// duplicate key.
func yamlToJSON(text []byte) ([]byte, error) {
	if line := after(text); line > 0 {
		return nil, &yamltext.Error{Line: line, Problem: "something follows the document; put --- between documents"}
	}
	return yaml.YAMLToJSONStrict(text)
}

// after returns the line of text that follows the document, which the decoder
// ignores: "{a: b} {c: d}". This is impossible if the document begins in the first
// column and not with an indicator: then all text belongs to one mapping, sequence or
// scalar.
func after(text []byte) int {
	for line := range bytes.Lines(text) {
		if isBlankYAML(line) {
			continue
		}
		if c := line[0]; c == '-' || c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' {
			return 0
		}
		break
	}
	return yamltext.After(text)
}

// isJSON reports whether a YAML document is also JSON.
func isJSON(text []byte) bool {
	value := jsontext.Value(text)
	return value.Kind() == jsontext.KindBeginObject && value.IsValid(jsontext.AllowDuplicateNames(true))
}

// yamlError returns the error of a document that yamlToJSON refuses.
func (d *document) yamlError(err error) error {
	var located *yamltext.Error
	if !errors.As(err, &located) {
		located = yamltext.Locate(d.text, func(text []byte) error {
			_, err := yaml.YAMLToJSONStrict(text)
			return err
		})
	}
	return d.errorOnLine(d.line+located.Line-1, errors.New("not valid YAML: "+located.Problem))
}

// outline is parsed YAML text with its lines.
type outline struct{ text *yamltext.Text }

// node returns the value at a pointer into the part's document, or the nearest
// enclosing value, and its line in the file.
func (p part) node(pointer jsontext.Pointer) (node *yamlv3.Node, line int) {
	if p.outline.text == nil {
		p.outline.text, _ = yamltext.Parse(p.text)
	}
	if len(p.outline.text.Documents) == 0 {
		return &yamlv3.Node{}, p.line
	}
	var path []string
	for token := range pointer.Tokens() {
		path = append(path, token)
	}
	node = yamltext.Find(p.outline.text.Documents[0], path...)
	return node, p.line + p.outline.text.Line(node) - 1
}

// at returns the pointer to a value of the part.
func (p part) at(path []string) jsontext.Pointer {
	pointer := p.pointer
	for _, name := range path {
		pointer = pointer.AppendToken(name)
	}
	return pointer
}

// textLine returns the line of the file on which the first line of a string begins,
// if each of its lines is a line of the file.
func (p part) textLine(path []string) (line int, ok bool) {
	if !p.yaml {
		return 0, false
	}
	node, line := p.node(p.at(path))
	switch {
	case node.Kind != yamlv3.ScalarNode:
		return 0, false
	case node.Style&yamlv3.LiteralStyle != 0:
		return line + 1, true // below the line of the indicator
	case node.Style&yamlv3.FoldedStyle == 0 && !strings.Contains(node.Value, "\n"):
		return line, true
	}
	return 0, false
}

// lineOf returns the line of the value at a path, or of the nearest enclosing value.
func (p part) lineOf(path []string) int {
	if p.yaml {
		_, line := p.node(p.at(path))
		return line
	}
	return p.line + p.lines + countLines(p.json[:findJSON(p.json, path)])
}

// findJSON returns where the value at a path begins, or the nearest enclosing value.
func findJSON(text []byte, path []string) int {
	decoder := lenient(bytes.NewBuffer(text))
	at := len(text) - len(trimSpace(text))
	for _, name := range path {
		if !enter(decoder, name) {
			break
		}
		rest := text[decoder.InputOffset():]
		at = len(text) - len(bytes.TrimLeft(rest, " \t\r\n:,"))
	}
	return at
}

// enter moves a decoder before a member of the next object, or before an item of the next array.
func enter(decoder *jsontext.Decoder, name string) (found bool) {
	token, err := decoder.ReadToken()
	kind := token.Kind()
	if err != nil || kind != jsontext.KindBeginObject && kind != jsontext.KindBeginArray {
		return false
	}
	for i := 0; ; i++ {
		key := strconv.Itoa(i)
		if kind == jsontext.KindBeginObject {
			token, err := decoder.ReadToken()
			if err != nil || token.Kind() != jsontext.KindString {
				return false
			}
			key = token.String()
		} else if decoder.PeekKind() == jsontext.KindEndArray {
			return false
		}
		if key == name {
			return true
		}
		if decoder.SkipValue() != nil {
			return false
		}
	}
}
