package render

import (
	"bytes"
	"fmt"

	"sigs.k8s.io/yaml"
)

// objectStart is how [encodeJSON] begins an object with fields.
const objectStart = "{\n"

// fields encodes the fields of a document: an object without the first brace.
func fields(d Document) ([]byte, error) {
	encoded, err := encodeJSON(d)
	if err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(encoded, []byte(objectStart)) {
		return nil, fmt.Errorf("a %T is no object with fields", d)
	}
	return encoded[len(objectStart):], nil
}

func documentJSON(d Document) ([]byte, error) {
	rest, err := fields(d)
	if err != nil {
		return nil, err
	}
	header := fmt.Sprintf("%s  \"apiVersion\": %q,\n  \"kind\": %q,\n", objectStart, DocumentVersion, d.DocumentKind())
	return append([]byte(header), rest...), nil
}

// documentYAML sorts the fields after the first two by name.
func documentYAML(d Document) ([]byte, error) {
	rest, err := fields(d)
	if err != nil {
		return nil, err
	}
	sorted, err := yaml.JSONToYAML(append([]byte(objectStart), rest...))
	if err != nil {
		return nil, err
	}
	return append(fmt.Appendf(nil, "apiVersion: %s\nkind: %s\n", DocumentVersion, d.DocumentKind()), sorted...), nil
}
