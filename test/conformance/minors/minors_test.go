package minors

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOraclesShareTheirText fails when a shared file was changed and the oracles
// were not: run go generate.
func TestOraclesShareTheirText(t *testing.T) {
	for _, file := range []string{"oracle.go", "restriction.go"} {
		text, err := os.ReadFile(file + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		copies, err := filepath.Glob("v1.*/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if len(copies) != 7 {
			t.Errorf("%d copies of %s, want one for each minor from 1.30 to 1.36", len(copies), file)
		}
		for _, path := range copies {
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(string(got), string(text)) {
				t.Errorf("%s differs from %s.txt: run go generate ./minors", path, file)
			}
		}
	}
}
