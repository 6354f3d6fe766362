package strictjson_test

import (
	encodingjson "encoding/json"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/node-authorizer/node-authorizer/internal/strictjson"
)

func TestExplain(t *testing.T) {
	type inner struct {
		Names []string          `json:"names"`
		Keys  map[string]string `json:"keys"`
		Count int               `json:"count"`
		On    bool              `json:"on"`
	}
	type outer struct {
		Spec *inner `json:"spec"`
	}
	for _, tc := range []struct{ rule, text, want string }{
		{"a number for a string", `{"spec":{"names":["a",1]}}`, "spec.names[1]: want a string, got a number"},
		{"a string for a list", `{"spec":{"names":"a"}}`, "spec.names: want a list, got a string"},
		{"a list for an object", `{"spec":{"keys":[]}}`, "spec.keys: want an object, got a list"},
		{"a field name with a dot", `{"spec":{"keys":{"a.b/c":true}}}`, "spec.keys[a.b/c]: want a string, got true or false"},
		{"a string for a number", `{"spec":{"count":"1"}}`, "spec.count: want a number, got a string"},
		{"null needs no complaint", `{"spec":null}`, ""},
		{"an object for a bool", `{"spec":{"on":{}}}`, "spec.on: want true or false, got an object"},
		{"a top of another kind", `[]`, "want an object, got a list"},
		{"a name twice", `{"spec":{"keys":{"a":"1","a":"2"}}}`, "spec.keys.a: a field is given twice"},
		{"the middle of an object", `{"spec":{`, "not valid JSON: text ends in the middle of an object"},
		{"no JSON", `{"spec":}`, "not valid JSON: missing value after object name"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			err := json.Unmarshal([]byte(tc.text), &outer{})
			if tc.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil {
				t.Fatal("decoded")
			}
			if got := strictjson.Explain(err).Error(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestExplainErrorsOfOtherDecoders(t *testing.T) {
	type outer struct {
		Spec struct {
			Name  string   `json:"name"`
			Names []string `json:"names"`
		} `json:"spec"`
	}
	for text, want := range map[string]string{
		"":                         "it is empty",
		`{"spec":{`:                "not valid JSON: text ends in the middle of an object",
		`a`:                        "not valid JSON: invalid character 'a' looking for beginning of value",
		`[]`:                       "want an object, got a list",
		`{"spec":{"name":[]}}`:     "spec.name: want a string, got a list",
		`{"spec":{"name":true}}`:   "spec.name: want a string, got true or false",
		`{"spec":{"names":1.5}}`:   "spec.names: want a list, got a number",
		`{"spec":{"names":"a b"}}`: "spec.names: want a list, got a string",
	} {
		err := encodingjson.NewDecoder(strings.NewReader(text)).Decode(&outer{})
		if err == nil {
			t.Fatalf("%s: decoded", text)
		}
		if got := strictjson.Explain(err).Error(); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
