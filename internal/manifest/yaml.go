package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// yamlToJSON converts one document the way Kubernetes does: YAML 1.1 scalars,
// and no key twice.
func yamlToJSON(text []byte) ([]byte, error) {
	if err := refuseMore(text); err != nil {
		return nil, err
	}
	return yaml.YAMLToJSONStrict(text)
}

// refuseMore returns an error when something follows the document, which the
// decoder would not notice: "{a: b} {c: d}". That cannot be if the document
// begins in the first column and not with an indicator; then everything belongs
// to one mapping, sequence or scalar.
func refuseMore(text []byte) error {
	for line := range bytes.Lines(text) {
		if isBlankYAML(line) {
			continue
		}
		if c := line[0]; c == '-' || c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' {
			return nil
		}
		break
	}
	var node yamlv3.Node
	dec := yamlv3.NewDecoder(bytes.NewReader(text))
	if err := dec.Decode(&node); err != nil {
		return nil // the decoder that counts says it too
	}
	line := node.Line
	if err := dec.Decode(&node); err == nil {
		line = node.Line
	} else if errors.Is(err, io.EOF) {
		return nil
	} else if at, _ := yamlProblem(err); at > 0 {
		line = at
	}
	return fmt.Errorf("yaml: line %d: something follows the document; put --- between documents", line)
}

// isJSON reports whether a YAML document is JSON as well.
func isJSON(text []byte) bool {
	value := jsontext.Value(text)
	return value.Kind() == jsontext.KindBeginObject && value.IsValid(jsontext.AllowDuplicateNames(true))
}

// yamlPlace is how the YAML decoder says where something is wrong.
var yamlPlace = regexp.MustCompile(`(?s)^(?:error converting YAML to JSON: )?yaml: (?:unmarshal errors:\n  )?(?:line (\d+): )?(.*)$`)

// unknownAnchor matches the one problem of which the decoder tells no line.
var unknownAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced`)

// grammarProblem matches the problems of which the decoder counts lines from 0,
// those of its grammar; it counts from 1 where it splits text into tokens.
var grammarProblem = regexp.MustCompile(`^did not find expected (<|node content|'-' indicator|key|',' or)`)

// yamlProblem takes the decoder's error apart: the line, from 1, or 0 if it says
// none, and the problem.
func yamlProblem(err error) (line int, problem string) {
	place := yamlPlace.FindStringSubmatch(err.Error())
	if place == nil {
		return 0, err.Error()
	}
	problem, _, _ = strings.Cut(place[2], "\n")
	if place[1] != "" {
		line, _ = strconv.Atoi(place[1])
		if grammarProblem.MatchString(problem) {
			line++
		}
	}
	return line, problem
}

// yamlError makes an error about a document that is not YAML.
func (d *document) yamlError(err error) error {
	line, problem := yamlProblem(err)
	if anchor := unknownAnchor.FindStringSubmatch(problem); anchor != nil {
		before, _, _ := bytes.Cut(d.text, []byte("*"+anchor[1]))
		line = 1 + countLines(before)
	}
	return d.errorOnLine(d.line+max(line, 1)-1, errors.New("not valid YAML: "+problem))
}

// outline is YAML text with its lines, parsed once.
type outline struct{ root *yamlv3.Node }

// parseOutline returns the value that the text is; one on the first line if it is
// none.
func parseOutline(text []byte) *yamlv3.Node {
	var root yamlv3.Node
	if err := yamlv3.Unmarshal(text, &root); err != nil || len(root.Content) == 0 {
		return &yamlv3.Node{Line: 1}
	}
	return root.Content[0]
}

// root is the value that the part's document is.
func (p part) root() *yamlv3.Node {
	if p.outline.root == nil {
		p.outline.root = parseOutline(p.text)
	}
	return p.outline.root
}

// yamlNode is the value at a path of the part, or the nearest one around it.
func (p part) yamlNode(path []string) *yamlv3.Node {
	pointer := p.pointer
	for _, name := range path {
		pointer = pointer.AppendToken(name)
	}
	return descend(p.root(), pointer)
}

// textLine finds the line of the file on which the first line of a string begins, if
// each of its lines is one of the file.
func (p part) textLine(path []string) (line int, ok bool) {
	if !p.yaml {
		return 0, false
	}
	node := p.yamlNode(path)
	switch {
	case node.Kind != yamlv3.ScalarNode:
		return 0, false
	case node.Style&yamlv3.LiteralStyle != 0:
		return p.line + node.Line, true // below the line of the indicator
	case node.Style&yamlv3.FoldedStyle == 0 && !strings.Contains(node.Value, "\n"):
		return p.line + node.Line - 1, true
	}
	return 0, false
}

// descend finds the value at a pointer, or the nearest one around it.
func descend(node *yamlv3.Node, pointer jsontext.Pointer) *yamlv3.Node {
	for token := range pointer.Tokens() {
		next := child(node, token)
		if next == nil {
			break
		}
		node = next
	}
	return node
}

func child(node *yamlv3.Node, token string) *yamlv3.Node {
	if node.Kind == yamlv3.AliasNode {
		node = node.Alias
	}
	switch node.Kind {
	case yamlv3.SequenceNode:
		if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(node.Content) {
			return node.Content[i]
		}
	case yamlv3.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == token {
				return node.Content[i+1]
			}
		}
	}
	return nil
}
