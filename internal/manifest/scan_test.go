package manifest

import (
	"strings"
	"testing"
)

// Text that arrives in many small parts costs no more than text that arrives at once.
func TestScanningResumesWhereItStopped(t *testing.T) {
	for rule, text := range map[string]string{
		"a string":               `"a\"b\\"`,
		"a string of quotes":     `"` + strings.Repeat(`\"`, 50) + `"`,
		"a string of escapes":    `"` + strings.Repeat(`\\`, 50) + `"`,
		"an object":              `{"a": {"b": ["]", "\"}", 1]}, "c": null}`,
		"an object with indents": "{\n        \"a\": [\n            1\n        ]\n}",
		"nested arrays":          strings.Repeat("[", 50) + strings.Repeat("]", 50),
	} {
		t.Run(rule, func(t *testing.T) {
			before := ` , `
			s := scan{begin: len(before), at: len(before)}
			for n := range len(before) + len(text) {
				if end := s.end([]byte((before + text)[:n])); end >= 0 {
					t.Fatalf("after %d bytes of %s it ends at %d", n, text, end)
				}
				if n > len(before) && s.at != n {
					t.Fatalf("after %d bytes of %s the scan resumes at %d", n, text, s.at)
				}
			}
			if end := s.end([]byte(before + text + text)); end != len(before)+len(text) {
				t.Errorf("%s ends at %d, want %d", text, end, len(before)+len(text))
			}
		})
	}
}

// The decoder bounds the depth; the splitter does not need to.
func TestDepthIsBounded(t *testing.T) {
	const deep = 1 << 20
	text := `{"apiVersion": "v1", "kind": "Pod", "x": ` + strings.Repeat("[", deep) + strings.Repeat("]", deep) + "}"
	wanted := func(string, string, []byte) bool { return true }
	_, err := Read(t.Context(), []string{"-"}, Options{Stdin: strings.NewReader(text), Wanted: wanted}, func(*Document) error {
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "stdin: document 1, line 1: not valid JSON: exceeded max depth") {
		t.Errorf("error is %v", err)
	}
}
