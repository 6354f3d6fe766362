package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Attack paths of many pods take seconds, and are only followed if the user asks for them.
func TestReachOfLargeFilesFollowsNoPathsUnasked(t *testing.T) {
	for _, test := range []struct {
		rule string
		pods int
		want string
	}{
		{"20,000 pods", 20_000, "in total  cluster-admin is unknown"},
		{"one more", 20_001, "in total  use --in-total, which takes some seconds"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			var files strings.Builder
			for i := range test.pods {
				fmt.Fprintf(&files, `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"a","name":"p%d"},`, i)
				files.WriteString(`"spec":{"nodeName":"worker"}}` + "\n")
			}
			dir := t.TempDir()
			text, binary := filepath.Join(dir, "pods.json"), filepath.Join(dir, "pods.snapshot")
			if err := os.WriteFile(text, []byte(files.String()), 0o600); err != nil {
				t.Fatal(err)
			}
			runMain(t, "snapshot", "--from", text, "-o", binary)
			for _, from := range []string{text, binary} {
				for option, want := range map[string]string{
					"--output=table": test.want, "--in-total": "in total  cluster-admin is unknown", "--in-total=false": "",
				} {
					got := runMain(t, "reach", "worker", "--from", from, option)
					if want == "" && strings.Contains(got, "in total") || !strings.Contains(got, want) {
						t.Errorf("%s %s: want %q in\n%.400s", filepath.Base(from), option, want, got)
					}
				}
			}
		})
	}
}

// runMain runs a command and returns what it prints.
func runMain(t *testing.T, args ...string) string {
	t.Helper()
	var out, stderr bytes.Buffer
	if status := Main(append([]string{binaryName}, args...), strings.NewReader(""), &out, &stderr); status != 0 {
		t.Fatalf("%v: status %d: %s", args, status, &stderr)
	}
	return out.String()
}
