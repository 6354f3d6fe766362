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

// Error is a mistake in a file, with its position.
type Error struct {
	// File as it was given or found; "stdin" for standard input.
	File string
	Position
	// Object is the object of the document, if known: "Pod shop/api".
	Object string
	// Field is the path of the field in question: "spec.containers[0].name".
	Field string
	// Err is the mistake.
	Err error
}

// Position is a place in a file.
type Position struct {
	// Document counts the documents of the file from 1; 0 when the error is not
	// about one document.
	Document int
	// Item counts the items of a list document from 1; 0 outside of lists.
	Item int
	// Line in the file, from 1; 0 when unknown. In a compressed file it is the
	// line in the decompressed text.
	Line int
}

// Error renders "cluster.yaml: document 3, line 57: Pod shop/api: spec.nodeName:
// want a string, got a number".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File + ": ")
	var place []string
	if e.Document > 0 {
		place = append(place, fmt.Sprintf("document %d", e.Document))
	}
	if e.Item > 0 {
		place = append(place, fmt.Sprintf("item %d", e.Item))
	}
	if e.Line > 0 {
		place = append(place, fmt.Sprintf("line %d", e.Line))
	}
	if len(place) > 0 {
		b.WriteString(strings.Join(place, ", ") + ": ")
	}
	if e.Object != "" {
		b.WriteString(e.Object + ": ")
	}
	if e.Field != "" {
		b.WriteString(e.Field + ": ")
	}
	b.WriteString(e.Err.Error())
	return b.String()
}

// Unwrap returns the mistake.
func (e *Error) Unwrap() error { return e.Err }

// Type is the type that an object or its list states. A field is empty if neither
// states it.
type Type struct {
	APIVersion, Kind string
}

// Group is the API group; empty for the core group.
func (t Type) Group() string {
	group, _, found := strings.Cut(t.APIVersion, "/")
	if !found {
		return ""
	}
	return group
}

// Version is the version within the group: "v1".
func (t Type) Version() string {
	if _, version, found := strings.Cut(t.APIVersion, "/"); found {
		return version
	}
	return t.APIVersion
}

// isList reports whether the object holds items: a v1 List, or a list of one
// kind such as PodList.
func (t Type) isList() bool { return strings.HasSuffix(t.Kind, "List") }

// element returns the type of items without a type of their own, as in responses of
// the API.
func (t Type) element() Type {
	if t.Kind == "List" {
		return Type{}
	}
	return Type{APIVersion: t.APIVersion, Kind: strings.TrimSuffix(t.Kind, "List")}
}

// readType reads apiVersion and kind of an object. A field that is missing or not a
// string stays empty.
func readType(object []byte) (t Type) {
	decoder := lenient(bytes.NewBuffer(object))
	if _, err := decoder.ReadToken(); err != nil {
		return t
	}
	for t.APIVersion == "" || t.Kind == "" {
		name, err := decoder.ReadToken()
		if err != nil || name.Kind() != jsontext.KindString {
			return t
		}
		key := name.String()
		value, err := decoder.ReadValue()
		if err != nil {
			return t
		}
		t.set(key, value)
	}
	return t
}

// set sets a field of the type from one member of an object.
func (t *Type) set(name string, value jsontext.Value) {
	if value.Kind() != jsontext.KindString {
		return
	}
	switch name {
	case "apiVersion":
		text, _ := jsontext.AppendUnquote(nil, value)
		t.APIVersion = string(text)
	case "kind":
		text, _ := jsontext.AppendUnquote(nil, value)
		t.Kind = string(text)
	}
}
