package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/node-authorizer/node-authorizer/internal/strictjson"
)

// maxListDepth bounds the nesting of lists.
const maxListDepth = 8

// document is the text of one object of a file.
type document struct {
	file   string
	number int // in the file, from 1
	item   int // in its list, from 1; 0 outside of lists
	line   int // in the file, of the first byte of text
	text   []byte
	yaml   bool
	dash   bool // YAML text begins with the dash of the item
	// list is the type of the list if the text is an item of one.
	list Type
	// outline holds the lines of YAML; it is computed on demand.
	outline *outline
}

// errorAt makes an error about the document, at a byte offset of its text.
func (d *document) errorAt(offset int, err error) *Error {
	return d.errorOnLine(d.line+countLines(d.text[:min(offset, len(d.text))]), err)
}

func (d *document) errorOnLine(line int, err error) *Error {
	return &Error{File: d.file, Position: Position{Document: d.number, Item: d.item, Line: line}, Err: err}
}

// whole returns the whole document as a part. It is empty if the YAML has no content.
func (d *document) whole() (p part, empty bool, err error) {
	if !d.yaml || isJSON(d.text) {
		plain := *d
		plain.yaml = false
		return part{document: &plain, json: d.text, parent: d.list}, false, nil
	}
	text, err := yamlToJSON(d.text)
	if err != nil {
		return part{}, false, d.yamlError(err)
	}
	d.outline = &outline{}
	p = part{document: d, json: text, parent: d.list}
	if d.dash { // a list of this one item
		p.json, p.pointer = bytes.TrimSuffix(bytes.TrimPrefix(text, []byte("[")), []byte("]")), "/0"
		return p, false, nil
	}
	return p, string(text) == "null", nil
}

// part is a document, or an item of one that is a list, as JSON.
type part struct {
	*document
	json    []byte
	lines   int // of the document's text that end before json, if that is JSON
	pointer jsontext.Pointer
	parent  Type
}

// each calls a function with the object, or with each item if the part is a list.
// depth is the nesting of the list in others.
func (p part) each(depth int, visit func(*Document) error) error {
	t, err := p.typeOf()
	switch {
	case err != nil:
		return err
	case t.isList() && t.APIVersion != "":
		return p.items(t, depth, func(item part) error { return item.each(depth+1, visit) })
	}
	return visit(&Document{Type: t, part: p})
}

// typeOf returns the type that the part or its list states. The part is an object; if
// its type is unknown, it has been validated.
func (p part) typeOf() (Type, error) {
	if kind := jsontext.Value(p.json).Kind(); kind != jsontext.KindBeginObject {
		return Type{}, p.fail(0, "", fmt.Errorf("want an object, got %s", strictjson.KindNoun(kind)))
	}
	t := readType(p.json)
	if inherited := p.parent.element(); t.Kind == "" && inherited.Kind != "" {
		t = inherited
	}
	if t.Kind == "" || t.APIVersion == "" {
		return t, p.validate()
	}
	return t, nil
}

// items calls a function with each item of a list. depth is the nesting of the list
// in others.
func (p part) items(t Type, depth int, visit func(part) error) error {
	if depth == maxListDepth {
		return p.fail(0, t.Kind, fmt.Errorf("lists are nested more than %d deep", maxListDepth))
	}
	if err := p.validate(); err != nil {
		return err
	}
	decoder := lenient(bytes.NewBuffer(p.json))
	_, err := decoder.ReadToken()
	for err == nil && decoder.PeekKind() != jsontext.KindEndObject {
		var name jsontext.Token
		if name, err = decoder.ReadToken(); err != nil {
			break
		}
		isItems, kind := name.String() == "items", decoder.PeekKind()
		switch {
		case isItems && kind == jsontext.KindBeginArray:
			err = p.itemsOf(decoder, t, visit)
		case isItems && kind != jsontext.KindNull:
			value, _ := decoder.ReadValue()
			wrong := p.locate(int(decoder.InputOffset())-len(value), "/items", fmt.Errorf("want a list, got %s", strictjson.KindNoun(kind)))
			wrong.Object, wrong.Field = t.Kind, "items"
			err = wrong
		default:
			err = decoder.SkipValue()
		}
	}
	return err
}

// itemsOf calls a function with each item of the list that the decoder reads next.
func (p part) itemsOf(decoder *jsontext.Decoder, t Type, visit func(part) error) error {
	if _, err := decoder.ReadToken(); err != nil {
		return err
	}
	lines, counted := p.lines, 0 // each line is counted once
	for i := 0; decoder.PeekKind() != jsontext.KindEndArray; i++ {
		value, err := decoder.ReadValue()
		if err != nil {
			return err
		}
		end := int(decoder.InputOffset())
		at := end - len(value)
		lines, counted = lines+countLines(p.json[counted:at]), at
		item := part{
			document: p.itemDocument(i + 1), json: p.json[at:end], lines: lines, parent: t,
			pointer: p.pointer.AppendToken("items").AppendToken(fmt.Sprint(i)),
		}
		if err := visit(item); err != nil {
			return err
		}
	}
	_, err := decoder.ReadToken()
	return err
}

// itemDocument returns the document with the position of an item, for error messages.
func (p part) itemDocument(item int) *document {
	if p.item > 0 {
		return p.document // items of an item are not counted
	}
	doc := *p.document
	doc.item = item
	return &doc
}

// validate returns an error with the position where the text is not valid JSON.
func (p part) validate() error {
	if err := json.Unmarshal(p.json, &struct{}{}); err != nil {
		return p.jsonError(Type{}, err)
	}
	return nil
}

// jsonError returns the error with its position for a decoding error.
func (p part) jsonError(t Type, err error) error {
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		return p.fail(int(syntax.ByteOffset), "", strictjson.ExplainWithoutPlace(syntax))
	}
	var semantic *json.SemanticError
	if !errors.As(err, &semantic) {
		return p.fail(0, p.describe(t), err)
	}
	located := p.locate(int(semantic.ByteOffset), semantic.JSONPointer, strictjson.ExplainWithoutPlace(semantic))
	located.Object = p.describe(t)
	located.Field = strictjson.FieldPath(semantic.JSONPointer)
	return located
}

func (p part) fail(offset int, object string, err error) error {
	located := p.locate(offset, "", err)
	located.Object = object
	return located
}

// locate sets the line: in JSON by the offset; in YAML by the pointer, because the
// offset is that in the converted text.
func (p part) locate(offset int, pointer jsontext.Pointer, err error) *Error {
	if p.yaml {
		_, line := p.node(p.pointer + pointer)
		return p.errorOnLine(line, err)
	}
	// Decoders report the offset before the space in front of a value.
	if text := p.json[min(offset, len(p.json)):]; pointer != "" {
		offset += len(text) - len(trimSpace(text))
	}
	return p.errorOnLine(p.line+p.lines+countLines(p.json[:min(offset, len(p.json))]), err)
}

// describe returns the name of the object: "Pod shop/api".
func (p part) describe(t Type) string {
	if t.Kind == "" {
		return ""
	}
	var o struct {
		Metadata struct{ Name, Namespace any }
	}
	_ = json.Unmarshal(p.json, &o, json.MatchCaseInsensitiveNames(true)) // what comes before a mistake
	name, _ := o.Metadata.Name.(string)
	if namespace, _ := o.Metadata.Namespace.(string); namespace != "" {
		name = namespace + "/" + name
	}
	return strings.TrimSpace(t.Kind + " " + name)
}

func countLines(b []byte) int { return bytes.Count(b, []byte{'\n'}) }
