package render

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/jsonpath"
)

// The formats with a template, and the formats of rows. They mean what they mean in kubectl.
// Source: https://kubernetes.io/docs/reference/kubectl/#output-options
const (
	// jsonPath is followed by a template, as in jsonpath={.nodes[*].node}.
	jsonPath = "jsonpath="
	// customColumns is followed by HEADER:.path,HEADER:.path, and prints a row for each row of the document.
	customColumns = "custom-columns="
	// Name prints KIND/NAMESPACE/NAME of each row, as commands take it, or the code of a finding.
	Name Format = "name"
	CSV  Format = "csv"
)

// ForRows are the formats of a command whose document has rows, the default first, and more.
func ForRows(more ...Format) []Format {
	return append([]Format{Table, Wide, JSON, YAML, Name, CSV}, more...)
}

// Listing is a document with rows.
type Listing interface {
	Document
	// Listing is what -o name, -o csv and -o custom-columns print.
	Listing() Rows
}

// Rows are the rows of a document.
type Rows struct {
	// Field is the field of the document that has the rows; empty if the document is the row.
	Field string
	// Columns are the headers of CSV.
	Columns []string
	// Short is how many columns a table of several clusters has; 0 for all.
	Short int
	Rows  []Row
}

// Row is a row as -o name prints it, and its cells of CSV. Rows for a no, and for what could not be decided, have no name.
type Row struct {
	Name  string
	Cells []string
}

// IsDocument reports whether a format prints fields of the document.
func (f Format) IsDocument() bool { return f == JSON || f == YAML || f.hasTemplate() }

func (f Format) hasTemplate() bool {
	return strings.HasPrefix(string(f), jsonPath) && f != jsonPath || strings.HasPrefix(string(f), customColumns)
}

func (f Format) checkTemplate() error {
	if spec, ok := strings.CutPrefix(string(f), customColumns); ok {
		_, err := parseColumns(spec)
		return err
	}
	_, err := compile(strings.TrimPrefix(string(f), jsonPath))
	return err
}

func compile(template string) (*jsonpath.JSONPath, error) {
	path := jsonpath.New("output").AllowMissingKeys(true)
	if err := path.Parse(template); err != nil {
		return nil, fmt.Errorf("the template %q: %w", template, err)
	}
	return path, nil
}

type templateColumn struct {
	header string
	path   *jsonpath.JSONPath
}

// columnPath is the path of a column: .a, a, {.a} or {a}.
var columnPath = regexp.MustCompile(`^(?:\.?([^{}]+)|\{\.?([^{}]+)\})$`)

func parseColumns(spec string) ([]templateColumn, error) {
	var all []templateColumn
	for part := range strings.SplitSeq(spec, ",") {
		header, path, _ := strings.Cut(part, ":")
		found := columnPath.FindStringSubmatch(path)
		if header == "" || found == nil {
			return nil, fmt.Errorf("the column %q: want HEADER:.path, as in NODE:.node", part)
		}
		compiled, err := compile("{." + found[1] + found[2] + "}")
		if err != nil {
			return nil, err
		}
		all = append(all, templateColumn{header, compiled})
	}
	return all, nil
}

func (c templateColumn) cell(row any) (string, error) {
	results, err := c.path.FindResults(row)
	var values []string
	for _, value := range slices.Concat(results...) {
		values = append(values, fmt.Sprint(value.Interface()))
	}
	if len(values) == 0 {
		return "<none>", err
	}
	return strings.Join(values, ","), err
}

// encodeTemplate writes a document as its template says. Whole numbers stay whole: filters compare no others with them.
func encodeTemplate(d Document, o Options) ([]byte, error) {
	encoded, err := documentJSON(d, o.Metadata)
	if err != nil {
		return nil, err
	}
	if spec, ok := strings.CutPrefix(string(o.Format), customColumns); ok {
		return encodeColumns(d, encoded, spec)
	}
	var fields map[string]any
	if err := json.Unmarshal(encoded, &fields); err != nil {
		return nil, err
	}
	path, err := compile(strings.TrimPrefix(string(o.Format), jsonPath))
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	if err := path.Execute(&text, fields); err != nil {
		return nil, err
	}
	return []byte(strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unreadable(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text.String())), nil
}

// encodeColumns writes a line for each row of a document, or one for a document without rows.
func encodeColumns(d Document, encoded []byte, spec string) ([]byte, error) {
	columns, err := parseColumns(spec)
	if err != nil {
		return nil, err
	}
	var headers []string
	for _, c := range columns {
		headers = append(headers, c.header)
	}
	var lines [][]string
	switch d := d.(type) {
	case Clusters:
		headers = append([]string{clusterColumn}, headers...)
		lines, err = d.lines(columns)
	case Listing:
		lines, err = linesOf(encoded, d.Listing().Field, columns)
	default:
		lines, err = linesOf(encoded, "", columns)
	}
	page := &Page{}
	page.Table(0, headers, lines)
	return page.encode(false), err
}

// linesOf has the cells of each row of a document, or of the document.
func linesOf(encoded []byte, field string, columns []templateColumn) ([][]string, error) {
	var fields map[string]any
	if err := json.Unmarshal(encoded, &fields); err != nil {
		return nil, err
	}
	rows := []any{fields}
	if field != "" {
		rows, _ = fields[field].([]any)
	}
	lines := make([][]string, len(rows))
	for i, row := range rows {
		for _, c := range columns {
			cell, err := c.cell(row)
			if err != nil {
				return nil, fmt.Errorf("the column %s: %w", c.header, err)
			}
			lines[i] = append(lines[i], cell)
		}
	}
	return lines, nil
}

func encodeNames(l Listing) []byte {
	page := &Page{}
	for _, row := range l.Listing().Rows {
		if row.Name != "" {
			page.Script("%s", row.Name)
		}
	}
	return page.encode(false)
}

// formula is how a cell begins that a spreadsheet would calculate. Source: https://owasp.org/www-community/attacks/CSV_Injection
var formula = regexp.MustCompile(`^[=+\-@\t\r]`)

// encodeCSV writes the rows as RFC 4180 says, with a line of headers.
func encodeCSV(l Listing) ([]byte, error) {
	rows := l.Listing()
	lines := [][]string{rows.Columns}
	for _, row := range rows.Rows {
		var cells []string
		for _, cell := range row.Cells {
			cells = append(cells, formula.ReplaceAllString(Printable(cell), "'$0"))
		}
		lines = append(lines, cells)
	}
	var text bytes.Buffer
	err := csv.NewWriter(&text).WriteAll(lines)
	return text.Bytes(), err
}
