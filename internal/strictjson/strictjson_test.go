package strictjson_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/strictjson"
)

type common struct {
	Version string `json:"version"`
}

type item struct {
	Name string `json:"name"`
}

type document struct {
	common
	Instance string            `json:"instanceId"`
	Pending  time.Time         `json:"pendingTime,omitempty"`
	Items    []item            `json:"items"`
	ByName   map[string]item   `json:"byName"`
	Labels   map[string]string `json:"labels"`
	Pointer  *item             `json:"pointer"`
	Data     []byte            `json:"data"`
	Any      any               `json:"any"`
	Plain    string
	Hidden   string `json:"-"`
}

func TestUnambiguousDocumentsAreDecoded(t *testing.T) {
	for _, tc := range []struct {
		rule, text string
		opts       strictjson.Options
		want       document
	}{
		{"fields by their names", `{"instanceId":"i-1","Plain":"p"}`, strictjson.Options{}, document{Instance: "i-1", Plain: "p"}},
		{"fields of what is embedded", `{"version":"1"}`, strictjson.Options{}, document{common: common{Version: "1"}}},
		{"white space around it", " {\"instanceId\":\"i-1\"}\n", strictjson.Options{}, document{Instance: "i-1"}},
		{"binary data as base64", `{"data":"AQI="}`, strictjson.Options{}, document{Data: []byte{1, 2}}},
		{
			"values that decode themselves", `{"pendingTime":"2026-01-02T03:04:05Z"}`,
			strictjson.Options{},
			document{Pending: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
		},
		{
			"keys of maps, in any case", `{"labels":{"a":"1","A":"2"}}`,
			strictjson.Options{},
			document{Labels: map[string]string{"a": "1", "A": "2"}},
		},
		{"objects behind pointers", `{"pointer":{"name":"a"}}`, strictjson.Options{}, document{Pointer: &item{Name: "a"}}},
		{
			"unknown keys, where they are allowed", `{"instanceId":"i-1","more":{"instanceId":[1]}}`,
			strictjson.Options{AllowUnknown: true},
			document{Instance: "i-1"},
		},
		{"nesting up to the limit", `{"any":[[1]]}`, strictjson.Options{MaxDepth: 3}, document{Any: []any{[]any{1.0}}}},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			var got document
			if err := strictjson.Unmarshal([]byte(tc.text), &got, tc.opts); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestAmbiguousDocumentsAreRefused(t *testing.T) {
	known, unknown := strictjson.Options{}, strictjson.Options{AllowUnknown: true}
	for _, tc := range []struct {
		rule, text string
		opts       strictjson.Options
		want       string
	}{
		{"a key twice", `{"instanceId":"i-1","instanceId":"i-2"}`, unknown, "instanceId: a field is given twice"},
		{"a key twice, once escaped", `{"instanceId":"i-1","instance\u0049d":"i-2"}`, unknown, "instanceId: a field is given twice"},
		{"an unknown key twice", `{"more":1,"more":1}`, unknown, "more: a field is given twice"},
		{"a key twice in what is ignored", `{"more":{"a":1,"a":1}}`, unknown, "more.a: a field is given twice"},
		{"a key in another case", `{"InstanceID":"i-1"}`, unknown, `instanceId: the key is written "InstanceID"`},
		{"a key in two cases", `{"instanceId":"i-1","instanceid":"i-2"}`, unknown, `instanceId: the key is written "instanceid"`},
		{
			"a key with letters that only look like it when case is ignored", `{"inſtanceId":"i-1"}`, unknown,
			`instanceId: the key is written "inſtanceId"`,
		},
		{"a key of what is embedded, in another case", `{"VERSION":"1"}`, unknown, `version: the key is written "VERSION"`},
		{"a key in a list, in another case", `{"items":[{"name":"a"},{"Name":"b"}]}`, unknown, `items[1].name: the key is written "Name"`},
		{"a key in a map, in another case", `{"byName":{"x":{"NAME":"b"}}}`, unknown, `byName.x.name: the key is written "NAME"`},
		{"an unknown key", `{"more":1}`, known, "more: there is no such field"},
		{"an unknown key inside", `{"items":[{"more":1}]}`, known, "items[0].more: there is no such field"},
		{"a field that is not for JSON", `{"Hidden":"x"}`, known, "Hidden: there is no such field"},
		{
			"a very long unknown key", `{"` + strings.Repeat("a", 1000) + `":1}`, known,
			strings.Repeat("a", 40) + "…: there is no such field",
		},
		{"nesting that is too deep", `{"any":[[1]]}`, strictjson.Options{MaxDepth: 2}, "nested more than 2 deep"},
		{"nesting that is too deep by default", strings.Repeat(`[`, 17) + strings.Repeat(`]`, 17), unknown, "nested more than 16 deep"},
		{"nesting that would exhaust a stack", `{"more":` + strings.Repeat(`[`, 1<<20), unknown, "nested more than 16 deep"},
		{"a second document", `{} {}`, unknown, "not valid JSON: text follows the document"},
		{"anything else after the end", `{}x`, unknown, "not valid JSON: invalid character 'x' at start of value"},
		{"text that is not UTF-8", "{\"instanceId\":\"\xff\"}", unknown, "not valid JSON: invalid UTF-8"},
		{"half of a surrogate pair", `{"instanceId":"\ud800"}`, unknown, "not valid JSON: invalid surrogate pair `\\ud800\"}` in string"},
		{"a byte order mark", "\ufeff{}", unknown, `not valid JSON: invalid character '\ufeff' at start of value`},
		{"no text", ``, unknown, "not valid JSON: there is no text"},
		{"half a text", `{"items":[`, unknown, "not valid JSON: text ends in the middle of an object"},
		{"a value of another kind", `{"instanceId":1}`, unknown, "instanceId: want a string, got a number"},
		{"a top of another kind", `[]`, unknown, "want an object, got a list"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			err := strictjson.Unmarshal([]byte(tc.text), &document{}, tc.opts)
			if err == nil {
				t.Fatal("decoded")
			}
			if err.Error() != tc.want {
				t.Errorf("got %q, want %q", err, tc.want)
			}
		})
	}
}

func TestObjectsOfStrings(t *testing.T) {
	for _, tc := range []struct{ rule, text, want string }{
		{"fields, and nothing of the rest", `{"a":"1","more":{"a":[1]},"b":"2"}`, ""},
		{"null is as good as nothing", `{"a":"1","b":"2","a\u0031":null}`, ""},
		{"escapes", `{"a":"\u0031","b":"2"}`, ""},
		{"many unknown fields", `{"a":"1",` + strings.Join(unknownFields(100), ",") + `,"b":"2"}`, ""},
		{
			"one of many unknown fields twice", `{"a":"1",` + strings.Join(append(unknownFields(100), `"x7":null`), ",") + `}`,
			"x7: a field is given twice",
		},
		{"a field twice", `{"a":"1","a":"2"}`, "a: a field is given twice"},
		{"a field twice, first as null", `{"a":null,"a":"2"}`, "a: a field is given twice"},
		{"an unknown field twice", `{"more":null,"more":null}`, "more: a field is given twice"},
		{"a comma at the end", `{"a":"1",}`, "not valid JSON: invalid character ',' at start of value"},
		{"a comma at the beginning", `{,"a":"1"}`, "not valid JSON: invalid character ',' at start of value"},
		{"no comma", `{"a":"1" "b":"2"}`, "not valid JSON: invalid character '\"' after object value (expecting ',' or '}')"},
		{"a control character", "{\"a\":\"\n\"}", "not valid JSON: invalid character '\\n' in string (expecting non-control character)"},
		{"a field in another case", `{"A":"1"}`, `a: the key is written "A"`},
		{"a field that is no string", `{"a":1}`, "a: want a string, got a number"},
		{"a field that is an object", `{"a":{}}`, "a: want a string, got an object"},
		{"nesting that is too deep", `{"more":` + strings.Repeat("[", 1000), "nested more than 16 deep"},
		{"more after it", `{}{}`, "not valid JSON: text follows the document"},
		{"no object", `["a"]`, "want an object, got a list"},
		{"no text", ``, "not valid JSON: there is no text"},
		{"half a text", `{"a":"1"`, "not valid JSON: text ends in the middle of an object"},
		{"half a field", `{"a":`, "not valid JSON: text ends in the middle of an object"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			var got struct {
				A string `json:"a"`
				B string `json:"b"`
			}
			err := strictjson.Unmarshal([]byte(tc.text), &got, strictjson.Options{AllowUnknown: true})
			switch {
			case err == nil && tc.want == "":
				if got.A != "1" || got.B != "2" {
					t.Errorf("got %+v", got)
				}
			case err == nil:
				t.Error("decoded")
			case err.Error() != tc.want:
				t.Errorf("got %q, want %q", err, tc.want)
			}
		})
	}
}

// unknownFields returns fields with unknown keys.
func unknownFields(n int) []string {
	var fields []string
	for i := range n {
		fields = append(fields, fmt.Sprintf(`"x%d":null`, i))
	}
	return fields
}

// FuzzUnmarshal: a text that is decoded strictly is decoded by other decoders to the
// same, and nothing makes it panic.
func FuzzUnmarshal(f *testing.F) {
	for _, seed := range []string{
		`{"instanceId":"i-1"}`, `{"items":[{"name":"a"}],"any":{"a":[1,true,null]}}`, `{"InstanceId":1}`, `{"a":1,"a":2}`, `[[[`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var first, second document
		if strictjson.Unmarshal(data, &first, strictjson.Options{}) != nil {
			return
		}
		if err := json.Unmarshal(data, &second); err != nil {
			t.Fatalf("only we can decode %q: %v", data, err)
		}
		if !reflect.DeepEqual(first, second) {
			t.Fatalf("%q is %+v to us, %+v to others", data, first, second)
		}
	})
}
