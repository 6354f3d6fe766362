package source

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/node-authorizer/node-authorizer/internal/badjson"
)

// maxListDepth bounds how lists may lie in lists.
const maxListDepth = 8

// object is one kept object of a file.
type object struct {
	kind kind
	api  apiObject
	// encoded is the object as it stands in a snapshot, if that was asked for.
	encoded []byte
	// Where it is, for messages; the line is that of its document if that is a
	// list in YAML.
	doc, item, line int
}

// content is what documents turned out to hold.
type content struct {
	objects []object
	skipped []string // kinds, with group
	headers []*snapshotHeader
}

// decoder turns documents into trimmed objects.
type decoder struct {
	retain bool
	content
}

// decode adds what the document holds.
func (d *decoder) decode(doc *document) error {
	p, empty, err := doc.whole()
	if empty || err != nil {
		return err
	}
	return d.element(p, 0)
}

// whole is all of the document. It is empty if YAML says nothing.
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
	offset  int // of json in the document's text, if that is JSON
	pointer jsontext.Pointer
	parent  head
}

// element adds one object, or the items of a list.
func (d *decoder) element(p part, depth int) error {
	h, err := p.head()
	if err != nil {
		return err
	}
	switch {
	case h.Kind == "":
		return p.fail(0, "", errors.New("document has no kind"))
	case h.APIVersion == "":
		return p.fail(0, "", fmt.Errorf("%s has no apiVersion", h.Kind))
	case h.isList():
		return p.items(h, depth, func(item part) error { return d.element(item, depth+1) })
	case h.group() == snapshotGroup:
		return d.header(p, h)
	}
	k, kept := kindOf(h.group(), h.Kind)
	if !kept {
		d.skipped = append(d.skipped, kindAndGroup(h))
		return p.validate()
	}
	if versions := k.describe().versions; !slices.Contains(versions, h.version()) {
		return p.fail(0, p.describe(h), fmt.Errorf("apiVersion %s is not supported; supported versions are %s",
			h.APIVersion, strings.Join(versions, ", ")))
	}
	return d.object(p, k, h)
}

// head is how the part introduces itself, or is introduced by its list. The part is
// an object; one that does not say what it is has been validated.
func (p part) head() (head, error) {
	if kind := jsontext.Value(p.json).Kind(); kind != jsontext.KindBeginObject {
		return head{}, p.fail(0, "", fmt.Errorf("want an object, got %s", badjson.KindNoun(kind)))
	}
	h := readHead(p.json)
	if inherited := p.parent.element(); h.Kind == "" && inherited.Kind != "" {
		h = inherited
	}
	if h.Kind == "" || h.APIVersion == "" {
		return h, p.validate()
	}
	return h, nil
}

func kindAndGroup(h head) string {
	if group := h.group(); group != "" {
		return h.Kind + "." + group
	}
	return h.Kind
}

// object adds an object of a kept kind.
func (d *decoder) object(p part, k kind, h head) error {
	s := newShape(k)
	if err := json.Unmarshal(p.json, s); err != nil {
		return p.jsonError(h, err)
	}
	o := s.object()
	if o.GetName() == "" {
		return p.fail(0, h.Kind, errors.New("metadata.name is empty"))
	}
	switch namespaced := k.describe().namespaced; {
	case !namespaced:
		o.SetNamespace("")
	case o.GetNamespace() == "":
		o.SetNamespace("default")
	}
	trim(o)
	out := object{kind: k, api: o, doc: p.number, item: p.item, line: p.line}
	if !p.yaml {
		out.line += countLines(p.text[:p.offset])
	}
	if d.retain {
		encoded, err := encode(k, o)
		if err != nil {
			return p.fail(0, p.describe(h), err)
		}
		out.encoded = encoded
	}
	d.objects = append(d.objects, out)
	return nil
}

// items calls a function with each item of a list that lies in as many others as
// depth says.
func (p part) items(h head, depth int, visit func(part) error) error {
	if depth == maxListDepth {
		return p.fail(0, h.Kind, fmt.Errorf("lists are nested more than %d deep", maxListDepth))
	}
	if err := p.validate(); err != nil {
		return err
	}
	for m, ok := nextMember(p.json, skipSpace(p.json, 0)+1); ok; m, ok = nextMember(p.json, m.end) {
		if string(m.name) != "items" || p.json[m.start] != '[' {
			continue
		}
		at := m.start + 1
		for i := 0; ; i++ {
			if at = skipSpace(p.json, at); p.json[at] == ',' {
				at = skipSpace(p.json, at+1)
			}
			if p.json[at] == ']' {
				break
			}
			end := skipValue(p.json, at)
			item := part{
				document: p.itemDocument(i + 1), json: p.json[at:end], offset: p.offset + at, parent: h,
				pointer: p.pointer.AppendToken("items").AppendToken(fmt.Sprint(i)),
			}
			if err := visit(item); err != nil {
				return err
			}
			at = end
		}
	}
	return nil
}

// itemDocument is the document, for messages about an item of it.
func (p part) itemDocument(item int) *document {
	if p.item > 0 {
		return p.document // items of an item are not counted
	}
	doc := *p.document
	doc.item = item
	return &doc
}

// validate reports where the text is not JSON.
func (p part) validate() error {
	if err := json.Unmarshal(p.json, &struct{}{}); err != nil {
		return p.jsonError(head{}, err)
	}
	return nil
}

// jsonError says what a decoding error means, and where it is.
func (p part) jsonError(h head, err error) error {
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		return p.fail(int(syntax.ByteOffset), "", badjson.What(syntax))
	}
	var semantic *json.SemanticError
	if !errors.As(err, &semantic) {
		return p.fail(0, p.describe(h), err)
	}
	located := p.locate(int(semantic.ByteOffset), semantic.JSONPointer, badjson.What(semantic))
	located.Object = p.describe(h)
	located.Field = badjson.FieldPath(semantic.JSONPointer)
	return located
}

func (p part) fail(offset int, object string, err error) error {
	located := p.locate(offset, "", err)
	located.Object = object
	return located
}

// locate finds the line: in JSON by the offset, in YAML, where the offset is
// that in converted text, by the pointer.
func (p part) locate(offset int, pointer jsontext.Pointer, err error) *InputError {
	if p.yaml {
		return p.errorOnLine(p.line+yamlLine(p.text, p.pointer+pointer)-1, err)
	}
	// Decoders stop before the space in front of a value.
	if at := skipSpace(p.json, min(offset, len(p.json))); at > offset && pointer != "" {
		offset = at
	}
	return p.errorAt(p.offset+offset, err)
}

// describe names the object: "Pod shop/api".
func (p part) describe(h head) string {
	if h.Kind == "" {
		return ""
	}
	for m, ok := nextMember(p.json, skipSpace(p.json, 0)+1); ok; m, ok = nextMember(p.json, m.end) {
		if string(m.name) != "metadata" {
			continue
		}
		var id struct{ Name, Namespace any }
		_ = json.Unmarshal(p.json[m.start:m.end], &id, json.MatchCaseInsensitiveNames(true))
		name, _ := id.Name.(string)
		if namespace, _ := id.Namespace.(string); namespace != "" {
			name = namespace + "/" + name
		}
		return strings.TrimSpace(h.Kind + " " + name)
	}
	return h.Kind
}
