package render

import (
	"bytes"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"
)

// objectStart is how an object with fields begins in compact JSON.
const objectStart = `{"`

// documentJSON writes the version and the kind of the document and its metadata before its fields.
func documentJSON(w io.Writer, d Document, m *Metadata) error {
	return encodeJSON(&headed{to: w, document: d, metadata: m}, d)
}

// headed adds the first fields to an object.
type headed struct {
	to       io.Writer
	document Document
	metadata *Metadata
	begun    bool
}

// Write implements io.Writer. The first text has the beginning of the object.
func (h *headed) Write(text []byte) (int, error) {
	if h.begun {
		return h.to.Write(text)
	}
	h.begun = true
	fields, err := fieldsOf(h.document, text)
	if err != nil {
		return 0, err
	}
	if _, err := fmt.Fprintf(h.to, `{"apiVersion":%q,"kind":%q,`, DocumentVersion, h.document.DocumentKind()); err != nil {
		return 0, err
	}
	if h.metadata != nil {
		var encoded bytes.Buffer
		if err := encodeJSON(&encoded, h.metadata); err != nil {
			return 0, err
		}
		if _, err := fmt.Fprintf(h.to, `"metadata":%s,`, bytes.TrimSpace(encoded.Bytes())); err != nil {
			return 0, err
		}
	}
	_, err = h.to.Write(fields)
	return len(text), err
}

// fieldsOf returns an encoded document without its first brace.
func fieldsOf(d Document, encoded []byte) ([]byte, error) {
	if !bytes.HasPrefix(encoded, []byte(objectStart)) {
		return nil, fmt.Errorf("a %T is no object with fields", d)
	}
	return encoded[1:], nil
}

// documentYAML sorts the fields after the first ones by name.
func documentYAML(d Document, m *Metadata) ([]byte, error) {
	var encoded bytes.Buffer
	if err := encodeJSON(&encoded, d); err != nil {
		return nil, err
	}
	if _, err := fieldsOf(d, encoded.Bytes()); err != nil {
		return nil, err
	}
	sorted, err := yaml.JSONToYAML(encoded.Bytes())
	if err != nil {
		return nil, err
	}
	head := fmt.Appendf(nil, "apiVersion: %s\nkind: %s\n", DocumentVersion, d.DocumentKind())
	if m != nil {
		metadata, err := yaml.Marshal(map[string]*Metadata{"metadata": m})
		if err != nil {
			return nil, err
		}
		head = append(head, metadata...)
	}
	return append(head, sorted...), nil
}
