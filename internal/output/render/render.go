// Package render writes the result of a command as a table, a wide table, JSON,
// YAML, by a template, as names, CSV, a dot graph, SARIF, JUnit or Markdown; package report writes pages. Every format comes from
// the same result value: JSON, YAML and templates from its fields, the others from the small interfaces below.
package render

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Format is an output format, as written after -o.
type Format string

// The output formats.
const (
	Table Format = "table"
	Wide  Format = "wide"
	JSON  Format = "json"
	YAML  Format = "yaml"
	Dot   Format = "dot"
	SARIF Format = "sarif"
	HTML  Format = "html"
	// JUnit is the XML that build servers read, and Markdown a comment for a pull request.
	JUnit    Format = "junit"
	Markdown Format = "markdown"
)

// ParseFormat checks a format against those that fit a result.
func ParseFormat(text string, fit []Format) (Format, error) {
	f := Format(text)
	switch {
	case slices.Contains(fit, f):
		return f, nil
	case f.hasTemplate() && slices.Contains(fit, JSON):
		if err := f.checkTemplate(); err != nil {
			return "", fmt.Errorf("--output %s: %w", f[:strings.Index(text, "=")], err)
		}
		return f, nil
	}
	return "", fmt.Errorf("--output %q: want %s", text, List(fit))
}

// List writes formats as people enumerate them: "table, json or yaml". What has a JSON form has templates too.
func List(formats []Format) string {
	words := FormatNames(formats)
	for i, word := range words {
		if strings.HasSuffix(word, "=") {
			words[i] += "TEMPLATE"
		}
	}
	return Join(words, "or")
}

// FormatNames are the formats as far as a shell completes them.
func FormatNames(formats []Format) []string {
	var words []string
	for _, f := range formats {
		words = append(words, string(f))
		if f == JSON {
			words = append(words, jsonPath, customColumns)
		}
	}
	return words
}

// Text is a result that people can read.
type Text interface {
	// Text writes the result to the page, in more detail if the page is wide.
	Text(*Page)
}

// DocumentVersion is the apiVersion of the documents that commands write. Within a version, fields
// and values are only added.
const DocumentVersion = "output.node-authorizer.io/v1alpha1"

// Document is a result with a JSON and a YAML form: an object with at least one field.
type Document interface {
	// DocumentKind is the kind of the document, in CamelCase. It has a schema in docs/reference/schemas.
	DocumentKind() string
}

// Drawing is a result that can be drawn.
type Drawing interface {
	Drawing() *Graph
}

// Findings is a result that tools for code review and security take.
type Findings interface {
	// SARIF is a log of the Static Analysis Results Interchange Format, version 2.1.0,
	// for JSON.
	SARIF() any
}

// Tests is a result that build servers take.
type Tests interface {
	// JUnit is a report of tests, for XML.
	JUnit() any
}

// Comment is a result that reviewers read in a pull request.
type Comment interface {
	Markdown() string
}

// Options say how to write a result.
type Options struct {
	Format Format
	// Colour adds ANSI colours to text.
	Colour bool
	// Width is the number of columns of the terminal to which text is fitted; 0 fits nothing.
	Width int
	// Program puts the program's name as the user writes it into text for people, except into
	// scripts; nil leaves texts as they are.
	Program func(string) string
	// Metadata is written into documents, SARIF and JUnit; nil leaves it out.
	Metadata *Metadata
}

// Write writes the result to w in the format asked for. Names that come from a
// cluster cannot smuggle control characters into text.
func Write(w io.Writer, result any, o Options) error {
	encoded, err := encode(result, o)
	if err != nil {
		return fmt.Errorf("writing the result as %s: %w", o.Format, err)
	}
	if _, err := w.Write(encoded); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

func encode(result any, o Options) ([]byte, error) {
	if d, ok := result.(Document); ok && o.Format.hasTemplate() {
		return encodeTemplate(d, o)
	}
	switch o.Format {
	case Name, CSV:
		l, ok := result.(Listing)
		if ok && o.Format == Name {
			return encodeNames(l), nil
		} else if ok {
			return encodeCSV(l)
		}
	case JSON:
		if d, ok := result.(Document); ok {
			return indentedJSON(documentJSON(d, o.Metadata))
		}
	case SARIF:
		if f, ok := result.(Findings); ok {
			return indentedJSON(compactJSON(o.Metadata.inLog(f.SARIF())))
		}
	case YAML:
		if d, ok := result.(Document); ok {
			return documentYAML(d, o.Metadata)
		}
	case JUnit:
		if t, ok := result.(Tests); ok {
			encoded, err := xml.MarshalIndent(o.Metadata.inSuite(t.JUnit()), "", "  ")
			return append([]byte(xml.Header), append(encoded, '\n')...), err
		}
	case Markdown:
		if c, ok := result.(Comment); ok {
			return []byte(c.Markdown()), nil
		}
	case Dot:
		if d, ok := result.(Drawing); ok {
			return d.Drawing().encode(), nil
		}
	case Table, Wide:
		if t, ok := result.(Text); ok {
			page := &Page{wide: o.Format == Wide, width: o.Width, program: o.Program}
			t.Text(page)
			page.linkCodes()
			return page.encode(o.Colour), nil
		}
	}
	return nil, fmt.Errorf("a %T has no such form", result)
}
