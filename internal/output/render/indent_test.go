package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// indented indents compact JSON that comes in pieces of a size.
func indented(compact []byte, size int) string {
	var got bytes.Buffer
	w := newIndenter(&got)
	for len(compact) > 0 {
		n := min(size, len(compact))
		w.Write(compact[:n])
		compact = compact[n:]
	}
	w.flush()
	return got.String()
}

// FuzzIndentedJSONIsThatOfPackageJSON compares with json.Indent.
func FuzzIndentedJSONIsThatOfPackageJSON(f *testing.F) {
	for _, text := range []string{
		`{}`, `[]`, `{"a":{},"b":[]}`, `[[[]]]`, `[{}]`, `{"a":[1,-2.5e3,true,null,"x"],"b":{"c":"d"}}`,
		`"\"\\"`, `["\\","{[,:]}","\u003c"]`, `7`, `null`, strings.Repeat(`[{"a":`, 40) + `1` + strings.Repeat(`}]`, 40),
	} {
		f.Add(text, 1)
		f.Add(text, 1000)
	}
	f.Fuzz(func(t *testing.T, text string, size int) {
		var compact, want bytes.Buffer
		if json.Compact(&compact, []byte(text)) != nil {
			t.Skip()
		}
		compact.WriteByte('\n')
		if err := json.Indent(&want, compact.Bytes(), "", "  "); err != nil {
			t.Fatal(err)
		}
		if got := indented(compact.Bytes(), max(1, size)); got != want.String() {
			t.Errorf("got\n%s\nwant\n%s", got, want.String())
		}
	})
}

// log is a result as SARIF.
type log struct{ value any }

func (l log) SARIF() any { return l.value }

func TestResultsOfAnySizeAreIndented(t *testing.T) {
	value := map[string][]sample{}
	for _, key := range []string{"a<", "b\u2028", "c"} {
		for range 300 {
			value[key] = append(value[key], newSample())
		}
	}
	var got, want bytes.Buffer
	if err := Write(&got, log{value}, Options{Format: SARIF}); err != nil {
		t.Fatal(err)
	}
	e := json.NewEncoder(&want)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(value); err != nil {
		t.Fatal(err)
	}
	if want.Len() < 2*indentedChunk {
		t.Fatalf("the result has only %d bytes", want.Len())
	}
	if got.String() != want.String() {
		t.Error("the result is not what package json writes")
	}
}

// full fails when it has been given some bytes.
type full struct{ left int }

var errFull = errors.New("no space left")

func (f *full) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestErrorsOfWriting(t *testing.T) {
	large := strings.Repeat("x", 3*indentedChunk)
	for _, tc := range []struct {
		rule   string
		result Findings
		left   int
		want   string
	}{
		{"the output is full at once", log{large}, 0, "writing the result: no space left"},
		{"the output is full later", log{large}, 2 * indentedChunk, "writing the result: no space left"},
		{"what cannot be encoded is not written at all", log{func() {}}, 0, "writing the result as sarif: json: unsupported type: func()"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			err := Write(&full{tc.left}, tc.result, Options{Format: SARIF})
			if err == nil || err.Error() != tc.want {
				t.Errorf("err = %v, want %s", err, tc.want)
			}
		})
	}
}
