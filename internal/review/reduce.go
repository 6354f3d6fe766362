package review

import (
	"bytes"
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Rules about updates compare two objects. Values that are equal byte for byte are not
// decoded, so that a million equal labels or list entries take no memory.

// value is a field that rules compare as a whole.
type value[T any] struct {
	part
	decoded T
}

// UnmarshalJSONFrom skips the value if it is of the right JSON kind.
func (v *value[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	return skipOf[T](d, &v.part)
}

// resolve decodes the value unless the old one is equal. Without an old object it always
// decodes the value.
func (v *value[T]) resolve(p *pairing, field string, old *value[T]) {
	if old != nil && bytes.Equal(p.text(v.part), p.oldText(old.part)) {
		return
	}
	p.decode(p.text(v.part), &v.decoded, field, false)
	if old != nil {
		p.decode(p.oldText(old.part), &old.decoded, field, true)
	}
}

// list is a field whose entries rules compare one by one. Only the first entries that differ
// are decoded. Without an old object, the list is not decoded: no rule reads it then.
type list[T any] struct {
	part
	decoded []T
}

// UnmarshalJSONFrom skips the list.
func (l *list[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	return skipOf[[]T](d, &l.part)
}

func (l *list[T]) resolve(p *pairing, field string, old *list[T]) {
	if old == nil || p.err != nil {
		return
	}
	text, oldText := p.text(l.part), p.oldText(old.part)
	if bytes.Equal(text, oldText) {
		return
	}
	entries, oldEntries := entriesOf(text), entriesOf(oldText)
	for i := 0; p.err == nil; i++ {
		entry, oldEntry := entries.next(), oldEntries.next()
		switch {
		case entry == nil && oldEntry == nil:
			return
		case bytes.Equal(entry, oldEntry):
			continue
		}
		at := fmt.Sprintf("%s[%d]", field, i)
		var first, oldFirst []T
		if entry != nil {
			first = make([]T, 1)
			p.decode(entry, &first[0], at, false)
		}
		if oldEntry != nil {
			oldFirst = make([]T, 1)
			p.decode(oldEntry, &oldFirst[0], at, true)
		}
		if !equality.Semantic.DeepEqual(first, oldFirst) {
			l.decoded, old.decoded = first, oldFirst
			return
		}
	}
}

// entries iterates over the entries of a list that is valid JSON.
type entries struct{ decoder *jsontext.Decoder }

func entriesOf(text []byte) *entries {
	if len(text) == 0 {
		return &entries{}
	}
	e := &entries{jsontext.NewDecoder(bytes.NewBuffer(text), asKubernetes())}
	if _, err := e.decoder.ReadToken(); err != nil {
		return &entries{}
	}
	return e
}

// next returns nil after the last entry.
func (e *entries) next() []byte {
	if e.decoder == nil || e.decoder.PeekKind() == jsontext.KindEndArray {
		return nil
	}
	entry, err := e.decoder.ReadValue()
	if err != nil {
		return nil
	}
	return entry
}

// pairing is the object and the old object, if any, while they are resolved.
type pairing struct {
	object, old []byte
	// err is the first error, ofOld whether it is of the old object.
	err   error
	ofOld bool
}

func (p *pairing) text(of part) []byte    { return p.object[of.start:of.end] }
func (p *pairing) oldText(of part) []byte { return p.old[of.start:of.end] }

func (p *pairing) decode(text []byte, into any, field string, ofOld bool) {
	if p.err != nil || len(text) == 0 {
		return
	}
	err := json.Unmarshal(text, into, quantityOptions)
	if err == nil {
		return
	}
	broken := newObjectError(err)
	if broken.field != "" && broken.field[0] != '[' {
		field += "."
	}
	broken.field = field + broken.field
	p.err, p.ofOld = broken, ofOld
}

// skipOf skips null or a value of the JSON kind of T. For another kind it returns the error
// of decoding it.
func skipOf[T any](d *jsontext.Decoder, into *part) error {
	*into = part{}
	switch d.PeekKind() {
	case jsontext.KindNull, kindOf(reflect.TypeFor[T]()):
		return into.UnmarshalJSONFrom(d)
	}
	return json.UnmarshalDecode(d, new(T))
}

func kindOf(t reflect.Type) jsontext.Kind {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Slice {
		return jsontext.KindBeginArray
	}
	return jsontext.KindBeginObject
}

// eachEntry decodes the entries of a list one by one into the same memory. Null is an empty list. It never decodes
// a []T, which may be the type whose decoding called it.
func eachEntry[T any](d *jsontext.Decoder, see func(*T)) error {
	begin, err := d.ReadToken()
	switch {
	case err != nil:
		return err
	case begin.Kind() == jsontext.KindNull:
		return nil
	case begin.Kind() != jsontext.KindBeginArray:
		return &json.SemanticError{JSONPointer: d.StackPointer(), JSONKind: begin.Kind(), GoType: reflect.TypeFor[[]T]()}
	}
	entry, zero := new(T), *new(T)
	for d.PeekKind() != jsontext.KindEndArray {
		*entry = zero
		if err := json.UnmarshalDecode(d, entry); err != nil {
			return err
		}
		see(entry)
	}
	_, err = d.ReadToken()
	return err
}

// eachMember iterates over the members of an object. The callback reads the value.
func eachMember(d *jsontext.Decoder, see func(name string) error) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != jsontext.KindEndObject {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		if err := see(name.String()); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

// maxQuantity is the maximum length of a quantity in bytes, because the time to parse one
// grows faster than its length. API servers write quantities in their shortest form, of less
// than 30 bytes.
const maxQuantity = 64

var errQuantityTooLong = fmt.Errorf("the quantity is longer than %d bytes", maxQuantity)

// quantityOptions are made once, because they note how each type is decoded.
var quantityOptions = json.JoinOptions(asKubernetes(), boundedQuantities())

func boundedQuantities() json.Options {
	return json.WithUnmarshalers(json.UnmarshalFromFunc(func(d *jsontext.Decoder, q *resource.Quantity) error {
		text, err := d.ReadValue()
		switch {
		case err != nil:
			return err
		case len(text) > maxQuantity:
			return errQuantityTooLong
		}
		return q.UnmarshalJSON(text)
	}))
}
