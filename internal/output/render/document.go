package render

import (
	"bytes"
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"
)

// head has the first fields of a document, in the order of their names.
type head struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Metadata   *Metadata `json:"metadata,omitempty"`
}

// documentJSON returns compact JSON with the version and the kind of the document and its metadata before its fields.
func documentJSON(d Document, m *Metadata) ([]byte, error) {
	first, err := compactJSON(head{DocumentVersion, d.DocumentKind(), m})
	if err != nil {
		return nil, err
	}
	fields, err := fieldsOf(d)
	if err != nil {
		return nil, err
	}
	first[len(first)-1] = ','
	return append(first, fields[1:]...), nil
}

// fieldsOf returns the fields of a document as compact JSON.
func fieldsOf(d Document) ([]byte, error) {
	fields, err := compactJSON(d)
	if err == nil && !bytes.HasPrefix(fields, []byte(`{"`)) {
		err = fmt.Errorf("a %T is no object with fields", d)
	}
	return fields, err
}

// documentYAML sorts the fields after the first ones by name.
func documentYAML(d Document, m *Metadata) ([]byte, error) {
	fields, err := fieldsOf(d)
	if err != nil {
		return nil, err
	}
	sorted, err := yaml.JSONToYAML(fields)
	if err != nil {
		return nil, err
	}
	first, err := yaml.Marshal(head{DocumentVersion, d.DocumentKind(), m})
	return append(first, sorted...), err
}

func compactJSON(value any) ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	err := e.Encode(value)
	return bytes.TrimSuffix(text.Bytes(), []byte{'\n'}), err
}

// indentedJSON has an entry of an object or list on each line.
func indentedJSON(compact []byte, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	err = json.Indent(&text, compact, "", "  ")
	text.WriteByte('\n')
	return text.Bytes(), err
}
