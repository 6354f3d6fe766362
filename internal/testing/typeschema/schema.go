package typeschema

import (
	"bytes"
	"encoding/json"
)

// dialect is the version of JSON Schema.
const dialect = "https://json-schema.org/draft/2020-12/schema"

// schema is a JSON Schema with the keywords that Go types need.
type schema struct {
	Dialect     string     `json:"$schema,omitempty"`
	ID          string     `json:"$id,omitempty"`
	Title       string     `json:"title,omitempty"`
	Description string     `json:"description,omitempty"`
	Ref         string     `json:"$ref,omitempty"`
	AnyOf       []*schema  `json:"anyOf,omitempty"`
	Type        any        `json:"type,omitempty"`
	Const       string     `json:"const,omitempty"`
	Enum        []string   `json:"enum,omitempty"`
	Format      string     `json:"format,omitempty"`
	Pattern     string     `json:"pattern,omitempty"`
	Minimum     *int       `json:"minimum,omitempty"`
	Items       *schema    `json:"items,omitempty"`
	Properties  properties `json:"properties,omitempty"`
	Required    []string   `json:"required,omitempty"`
	// Additional is false, or the schema of a map's values.
	Additional any        `json:"additionalProperties,omitempty"`
	Defs       properties `json:"$defs,omitempty"`
}

// property is a named schema.
type property struct {
	name   string
	schema *schema
}

// properties keep their order.
type properties []property

// MarshalJSON implements json.Marshaler.
func (all properties) MarshalJSON() ([]byte, error) {
	b := bytes.NewBufferString("{")
	for i, p := range all {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(p.name)
		if err != nil {
			return nil, err
		}
		value, err := encode(p.schema)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// encode leaves <, > and & as they are.
func encode(s *schema) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(s)
	return b.Bytes(), err
}

// text is the schema as a file.
func (s *schema) text() ([]byte, error) {
	compact, err := encode(s)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = json.Indent(&b, compact, "", "  ")
	return b.Bytes(), err
}

// orNull also allows null.
func (s *schema) orNull() *schema {
	if name, ok := s.Type.(string); ok && s.Enum == nil {
		s.Type = []string{name, "null"}
		return s
	}
	return &schema{AnyOf: []*schema{s, {Type: "null"}}}
}
