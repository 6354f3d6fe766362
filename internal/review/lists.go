package review

import (
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/api/resource"
)

// A list of empty objects takes a hundred times the memory of its text. The functions here say how lists of a type are
// decoded instead.

// skip leaves values of a type empty, and accepts any JSON for them.
func skip[T any]() reading {
	return reading{reflect.TypeFor[T](), json.UnmarshalFromFunc(func(d *jsontext.Decoder, _ *T) error {
		_, err := d.ReadValue() // SkipValue would go from token to token
		return err
	})}
}

// atMost keeps the first n entries of lists.
func atMost[T any](n int) reading {
	return entries(func() func(*T) bool {
		kept := 0
		return func(*T) bool {
			kept++
			return kept <= n
		}
	})
}

// first keeps the first entry that counts.
func first[T any](counts func(*T) bool) reading {
	return firstOfEach(func(entry *T) bool { return counts(entry) })
}

// firstOfEach keeps the first entry of each kind, except for those whose kind is the zero value.
func firstOfEach[T any, K comparable](kindOf func(*T) K) reading {
	return entries(func() func(*T) bool {
		seen := map[K]bool{*new(K): true}
		return func(entry *T) bool {
			kind := kindOf(entry)
			known := seen[kind]
			seen[kind] = true
			return !known
		}
	})
}

// entries keeps the entries of each list for which keep returns true.
func entries[T any](newList func() (keep func(*T) bool)) reading {
	return reading{reflect.TypeFor[[]T](), json.UnmarshalFromFunc(func(d *jsontext.Decoder, into *[]T) error {
		keep := newList()
		*into = nil
		return eachEntry(d, func(entry *T) error {
			if keep(entry) {
				*into = append(*into, *entry)
			}
			return nil
		})
	})}
}

const (
	// freeEntries is the memory in bytes that the entries of any list may take.
	freeEntries = 64 << 10
	// maxExpansion is the maximum memory of the entries of a larger list, per byte of their text. API servers
	// write the fields of all these entries, so that what they send takes less.
	maxExpansion = 8
)

var errTooManyEntries = fmt.Errorf(
	"the entries of the list take more than %d times the memory of their text: leave empty ones out", maxExpansion,
)

// bounded refuses lists of entries that take much more memory than their text.
func bounded[T any]() reading {
	size := int64(reflect.TypeFor[T]().Size())
	return reading{reflect.TypeFor[[]T](), json.UnmarshalFromFunc(func(d *jsontext.Decoder, into *[]T) error {
		*into = nil
		begin := d.InputOffset()
		return eachEntry(d, func(entry *T) error {
			if *into = append(*into, *entry); int64(len(*into))*size > freeEntries+maxExpansion*(d.InputOffset()-begin) {
				return errTooManyEntries
			}
			return nil
		})
	})}
}

// eachEntry decodes the entries of a list one by one into the same memory. Null is an empty list. It never decodes
// a []T, which may be the type whose decoding called it.
func eachEntry[T any](d *jsontext.Decoder, see func(*T) error) error {
	begin, err := d.ReadToken()
	switch {
	case err != nil:
		return err
	case begin.Kind() == jsontext.KindNull:
		return nil
	case begin.Kind() != jsontext.KindBeginArray:
		return wrongKind[[]T](d, begin.Kind())
	}
	entry, zero := new(T), *new(T)
	for d.PeekKind() != jsontext.KindEndArray {
		*entry = zero
		if err := json.UnmarshalDecode(d, entry); err != nil {
			return err
		}
		if err := see(entry); err != nil {
			return err
		}
	}
	_, err = d.ReadToken()
	return err
}

// eachMember iterates over the members of an object, of which null has none. The callback reads the value.
func eachMember(d *jsontext.Decoder, see func(name string) error) error {
	begin, err := d.ReadToken()
	switch {
	case err != nil:
		return err
	case begin.Kind() == jsontext.KindNull:
		return nil
	case begin.Kind() != jsontext.KindBeginObject:
		return wrongKind[struct{}](d, begin.Kind())
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
	_, err = d.ReadToken()
	return err
}

// wrongKind is the error of a token that does not begin a T.
func wrongKind[T any](d *jsontext.Decoder, got jsontext.Kind) error {
	return &json.SemanticError{JSONPointer: d.StackPointer(), JSONKind: got, GoType: reflect.TypeFor[T]()}
}

// maxQuantity is the maximum length of a quantity in bytes, because the time to parse one
// grows faster than its length. API servers write quantities in their shortest form, of less
// than 30 bytes.
const maxQuantity = 64

var errQuantityTooLong = fmt.Errorf("the quantity is longer than %d bytes", maxQuantity)

// shortQuantities refuses quantities that take long to parse.
func shortQuantities() reading {
	return reading{reflect.TypeFor[resource.Quantity](), json.UnmarshalFromFunc(func(d *jsontext.Decoder, q *resource.Quantity) error {
		text, err := d.ReadValue()
		switch {
		case err != nil:
			return err
		case len(text) > maxQuantity:
			return errQuantityTooLong
		}
		return q.UnmarshalJSON(text)
	})}
}
