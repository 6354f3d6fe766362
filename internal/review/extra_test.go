package review

import (
	"reflect"
	"testing"

	"github.com/go-json-experiment/json"
)

// FuzzExtra compares the decoder of extra values with the default one.
func FuzzExtra(f *testing.F) {
	for _, seed := range []string{
		`{"authentication.kubernetes.io/node-name":["a"],"authentication.kubernetes.io/pod-name":["web"],"other":["x","y"]}`,
		`null`, `{}`, `[]`, `{"a":null}`, `{"a":[null,"b"]}`, `{"a":[1]}`, `{"a":"b"}`, `{"a":[]}`, `{"a":["x"],"a":["y","z"]}`,
		`{"a\u0062":["\u0041é"]}`, "{\"a\":[\"\xff\"]}", `{"a":["x"]`, `{"authentication.kubernetes.io/node-name\u0000":["a"]}`, `7`,
		`{"a":[["x"]]}`, `{"a":["x"],"b":[]}`,
		`{"a":["x","y"],"b":["[]{},:"],"":[""]}`, `{"a": ["x"]}`, `{"a":["x" ,"y"]}`, `{"a":["x"] }`, `{}}`,
		`{"a":["x"],"a":["y"],"b":["1","2","3","4","5","6","7"]}`, `{"a":["x"]}}`, `{"a":["x"],}`,
		`{"abcdefgh\":["x"]}`, `{"a":["é1234567"]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		var got struct {
			Extra extraValues `json:"extra"`
		}
		var want struct {
			Extra plainExtra `json:"extra"`
		}
		text := append(append([]byte(`{"extra":`), document...), '}')
		gotErr, wantErr := json.Unmarshal(text, &got, accessOptions), json.Unmarshal(text, &want, asKubernetes())
		if (gotErr == nil) != (wantErr == nil) {
			t.Fatalf("got %v, want %v", gotErr, wantErr)
		}
		if wantErr == nil && !reflect.DeepEqual(got.Extra, extraValues(want.Extra)) {
			t.Errorf("got %#v, want %#v", got.Extra, want.Extra)
		}
	})
}
