// Package nametemplate makes names of nodes from text with placeholders: "{{.ClusterName}}-{{.DashedIP}}".
package nametemplate

import (
	"fmt"
	"slices"
	"strings"
)

// NodeName is the placeholder for the name of a node, in templates of DNS names: "{{.NodeName}}.example.com".
const NodeName = "NodeName"

// Placeholders lists the placeholders in names of nodes, which are properties of an EC2 instance that nobody can change by tagging
// or renaming it.
func Placeholders() []string {
	return []string{"InstanceID", "PrivateDNSName", "PrivateIP", "DashedIP", "Account", "Region", "Zone", "ClusterName"}
}

// Template is a text with placeholders. It is immutable and safe for concurrent use.
type Template struct {
	// texts are before, between and after the placeholders.
	texts, placeholders []string
}

// Parse parses a template with some of the named placeholders. Spaces between the braces and the name of a placeholder do not matter.
func Parse(text string, known ...string) (*Template, error) {
	t := &Template{}
	for {
		before, rest, found := strings.Cut(text, "{{")
		t.texts = append(t.texts, before)
		if !found {
			return t, nil
		}
		inside, after, closed := strings.Cut(rest, "}}")
		if !closed {
			return nil, fmt.Errorf("{{%s has no end: write }} after the placeholder", rest)
		}
		name, dotted := strings.CutPrefix(strings.TrimSpace(inside), ".")
		if !dotted || !slices.Contains(known, name) {
			return nil, fmt.Errorf("there is no placeholder {{%s}}: want {{.%s}}", inside, strings.Join(known, "}}, {{."))
		}
		t.placeholders = append(t.placeholders, name)
		text = after
	}
}

// Execute returns the text with the values of the placeholders.
func (t *Template) Execute(values map[string]string) string {
	var name strings.Builder
	for i, placeholder := range t.placeholders {
		name.WriteString(t.texts[i])
		name.WriteString(values[placeholder])
	}
	name.WriteString(t.texts[len(t.placeholders)])
	return name.String()
}
