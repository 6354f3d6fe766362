package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

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
	large := strings.Repeat("x", 200_000)
	for _, tc := range []struct {
		rule   string
		result Findings
		left   int
		want   string
	}{
		{"the output is full at once", log{large}, 0, "writing the result: no space left"},
		{"the output is full later", log{large}, 100_000, "writing the result: no space left"},
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
