package render

import (
	"bytes"
	"strings"
	"testing"
)

type listing struct {
	Nodes []listedNode `json:"nodes"`
	Count int          `json:"count"`
	Sizes []listedSize `json:"sizes"`
}

type listedSize struct {
	Kind    string `json:"kind"`
	Objects int    `json:"objects"`
}

type listedNode struct {
	Node  string   `json:"node"`
	Why   string   `json:"why,omitempty"`
	Verbs []string `json:"verbs"`
}

func (listing) DocumentKind() string { return "Listing" }

func (l listing) Listing() Rows {
	rows := Rows{Field: "nodes", Columns: []string{"NODE", "WHY"}}
	for _, n := range l.Nodes {
		rows.Rows = append(rows.Rows, Row{Name: "node/" + n.Node, Cells: []string{n.Node, n.Why}})
	}
	rows.Rows = append(rows.Rows, Row{Cells: []string{"n3", Unsure.In("unknown")}})
	return rows
}

func TestFormatsOfRows(t *testing.T) {
	list := listing{[]listedNode{
		{"n1", "a, \"b\"", []string{"get", "list"}},
		{"n2", "=HYPERLINK(\"x\")\x1b[31m", nil},
	}, 12345678, []listedSize{{"Pod", 2}, {"Secret", 3}}}
	for _, c := range []struct {
		rule string
		as   Format
		want string
	}{
		{"a name in a line, and none for what could not be decided", Name, "node/n1\nnode/n2\n"},
		{
			"CSV has every row; formulas and control characters are harmless", CSV,
			"NODE,WHY\nn1,\"a, \"\"b\"\"\"\nn2,\"'=HYPERLINK(\"\"x\"\")\uFFFD[31m\"\nn3,unknown\n",
		},
		{"a template of the document", `jsonpath={.kind}{"\t"}{range .nodes[*]}{.node}{"\n"}{end}`, "Listing\tn1\nn2\n"},
		{"a field that is absent is empty", `jsonpath={.nodes[0].none}`, ""},
		{"a template prints no control characters", `jsonpath={.nodes[1].why}`, "=HYPERLINK(\"x\")\uFFFD[31m"},
		{
			"columns of each row, with the paths in each form that kubectl takes", "custom-columns=N:.node,V:{.verbs[*]},X:none",
			"N    V          X\nn1   get,list   <none>\nn2   <none>     <none>\n",
		},
		{"a list in a column", "custom-columns=V:.verbs", "V\n[get list]\n<nil>\n"},
		{"a number is whole", `jsonpath={.count}`, "12345678"},
		{
			"a filter compares numbers", `jsonpath={.sizes[?(@.objects>2)].kind}`, "Secret",
		},
	} {
		t.Run(c.rule, func(t *testing.T) {
			format, err := ParseFormat(string(c.as), []Format{Table, JSON, Name, CSV})
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			if err := Write(&got, list, Options{Format: format}); err != nil || got.String() != c.want {
				t.Errorf("got %q, %v, want %q", got.String(), err, c.want)
			}
		})
	}
}

func TestCellsThatASpreadsheetWouldCalculateAreText(t *testing.T) {
	for cell, want := range map[string]string{
		"=1": "'=1", "+1": "'+1", "-1": "'-1", "@a": "'@a", "a=1": "a=1", "a\n=1": "a\uFFFD=1", Bad.In("=1"): "'=1",
	} {
		got, err := encodeCSV(listing{Nodes: []listedNode{{Node: cell}}})
		if line := strings.Split(string(got), "\n")[1]; err != nil || strings.TrimSuffix(line, ",") != want {
			t.Errorf("%q is %q, want %q: %v", cell, line, want, err)
		}
	}
}

func TestTemplatesAreCheckedBeforeAnythingIsRead(t *testing.T) {
	for text, want := range map[string]string{
		"jsonpath={.a[*}":         `--output jsonpath: the template "{.a[*}": unterminated array`,
		"custom-columns=NODE":     `--output custom-columns: the column "NODE": want HEADER:.path, as in NODE:.node`,
		"custom-columns=A:{.b":    `the column "A:{.b": want HEADER:.path`,
		"jsonpath=":               `--output "jsonpath=": want table, json, jsonpath=TEMPLATE or custom-columns=TEMPLATE`,
		"custom-columns=A:.b,":    `the column ""`,
		"custom-columns=A:.b,:.c": `the column ":.c"`,
		"jsonpath":                `--output "jsonpath": want table, json, jsonpath=TEMPLATE or custom-columns=TEMPLATE`,
	} {
		if _, err := ParseFormat(text, []Format{Table, JSON}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if _, err := ParseFormat("jsonpath={.a}", []Format{Table}); err == nil {
		t.Error("a template is taken where there is no document")
	}
}
