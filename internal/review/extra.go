package review

import (
	"bytes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// extraValues are the extra values of a user. The default decoder takes twice the time, and every review
// about a service account has some.
type extraValues = map[string]authorizationv1.ExtraValue

// plainExtra is decoded by the default decoder.
type plainExtra map[string]authorizationv1.ExtraValue

// readExtra decodes extra values as the default decoder does: the last of repeated names counts.
func readExtra(d *jsontext.Decoder, into *extraValues) error {
	if d.PeekKind() != jsontext.KindBeginObject {
		return json.UnmarshalDecode(d, (*plainExtra)(into)) // null, or an error
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	*into = extraValues{}
	// Most keys have one value: the lists of these share memory.
	shared := make([]string, 0, len(knownExtra))
	for d.PeekKind() != jsontext.KindEndObject {
		name, err := d.ReadValue()
		if err != nil {
			return err
		}
		key := knownName(name)
		from := len(shared)
		if d.PeekKind() != jsontext.KindBeginArray {
			var values authorizationv1.ExtraValue
			if err := json.UnmarshalDecode(d, &values); err != nil { // null, or an error
				return err
			}
			(*into)[key] = values
			continue
		}
		if shared, err = appendStrings(d, shared); err != nil {
			return err
		}
		(*into)[key] = shared[from:len(shared):len(shared)]
	}
	_, err := d.ReadToken()
	return err
}

// appendStrings reads a list.
func appendStrings(d *jsontext.Decoder, to []string) ([]string, error) {
	if _, err := d.ReadToken(); err != nil {
		return to, err
	}
	for d.PeekKind() != jsontext.KindEndArray {
		if d.PeekKind() != jsontext.KindString {
			var text string
			if err := json.UnmarshalDecode(d, &text); err != nil { // null, or an error
				return to, err
			}
			to = append(to, text)
			continue
		}
		value, err := d.ReadValue()
		if err != nil {
			return to, err
		}
		to = append(to, unquoted(value))
	}
	_, err := d.ReadToken()
	return to, err
}

// knownExtra are the keys that kube-apiserver sets. They need no memory of their own.
var knownExtra = [...]string{
	nodeidentity.ExtraNode, nodeidentity.ExtraNodeUID, nodeidentity.ExtraPod, nodeidentity.ExtraPodUID, nodeidentity.ExtraCredential,
	nodeidentity.ExtraAssociatedNodeKeys,
}

func knownName(quoted jsontext.Value) string {
	for _, key := range knownExtra {
		if len(quoted) == len(key)+2 && string(quoted[1:len(quoted)-1]) == key {
			return key
		}
	}
	return unquoted(quoted)
}

// unquoted returns the text of a JSON string.
func unquoted(quoted jsontext.Value) string {
	text := quoted[1 : len(quoted)-1]
	if !bytes.ContainsFunc(text, func(r rune) bool { return r == '\\' || r >= 0x7f }) {
		return string(text)
	}
	var decoded string
	_ = json.Unmarshal(quoted, &decoded, asKubernetes()) // the decoder has checked the syntax
	return decoded
}
