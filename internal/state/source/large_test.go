package source

import (
	"fmt"
	"strings"
	"testing"
)

// maxWholeYAML is the size from which a YAML document is read item by item.
const maxWholeYAML = 4 << 20

func TestLargeYAML(t *testing.T) {
	line := "# " + strings.Repeat("x", 1000) + "\n"
	padding := strings.Repeat(line, maxWholeYAML/len(line)+1)
	pod := "- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: a\n"
	for name, c := range map[string]struct{ text, want string }{
		"a list": {
			"apiVersion: v1\nitems:\n" + pod + padding + "- kind: Pod\n  apiVersion: v1\n  metadata: {name: 5}\nkind: List\n",
			fmt.Sprintf("a.yaml: document 1, item 2, line %d: Pod: metadata.name: want a string, got a number",
				9+strings.Count(padding, "\n")),
		},
		"not a list": {
			"apiVersion: v1\nkind: ConfigMap\n" + padding + "data: {}\n",
			fmt.Sprintf("a.yaml: document 1, line %d: document is larger than 4 MiB and not a list in block style; split it, "+
				"or convert it to JSON",
				3+maxWholeYAML/len(line)),
		},
		"items of no list": {
			"apiVersion: v1\nitems:\n" + pod + padding + "kind: Box\n",
			`a.yaml: document 1, line 1: document is larger than 4 MiB and its kind "Box" is not a list`,
		},
		"flow style": {
			"{apiVersion: v1, kind: List, items: [" + strings.Repeat("{apiVersion: v1, kind: Pod, metadata: {name: a}}, ",
				maxWholeYAML/40) + "]}",
			"a.yaml: document 1, line 1: document is larger than 4 MiB and not a list in block style; split it, or convert it " +
				"to JSON",
		},
		"items twice": {
			"apiVersion: v1\nitems:\n" + padding + pod + "items:\n" + pod + "kind: List\n",
			fmt.Sprintf("a.yaml: document 1, line %d: items are given twice", 7+strings.Count(padding, "\n")),
		},
		"items without dash": {
			"apiVersion: v1\nkind: List\nitems:\n" + padding + " a: b\n",
			fmt.Sprintf("a.yaml: document 1, line %d: want a dash that begins an item, at the indentation of the others",
				4+strings.Count(padding, "\n")),
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, "a.yaml", c.text)
			if err == nil || err.Error() != c.want {
				t.Errorf("error is %v, want %s", err, c.want)
			}
		})
	}
}
