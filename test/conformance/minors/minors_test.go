package minors

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOraclesShareTheirText fails when oracle.go.txt was changed and the
// oracles were not: run go generate.
func TestOraclesShareTheirText(t *testing.T) {
	text, err := os.ReadFile("oracle.go.txt")
	if err != nil {
		t.Fatal(err)
	}
	oracles, err := filepath.Glob("v1.*/oracle.go")
	if err != nil {
		t.Fatal(err)
	}
	if len(oracles) != 7 {
		t.Errorf("%d oracles, want one for each minor from 1.30 to 1.36", len(oracles))
	}
	for _, path := range oracles {
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(string(got), string(text)) {
			t.Errorf("%s differs from oracle.go.txt: run go generate ./minors", path)
		}
	}
}
