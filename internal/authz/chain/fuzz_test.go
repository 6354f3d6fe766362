package chain

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apiserver/pkg/apis/apiserver/load"
)

// FuzzParse: a refused configuration has problems, and an accepted one is accepted by
// Kubernetes' loader too.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/valid/*.yaml", "testdata/invalid/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, path := range files {
			text, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	f.Add([]byte(configurationHeader + "- {type: Node, name: node}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Parse(text)
		if err != nil {
			var problems Problems
			if c != nil || !errors.As(err, &problems) || len(problems) == 0 {
				t.Fatalf("got %v, %v", c, err)
			}
			return
		}
		if _, err := load.LoadFromData(text); err != nil {
			t.Fatalf("accepted, but Kubernetes says %v", err)
		}
		if len(c.Names()) == 0 {
			t.Fatal("accepted without authorizers")
		}
	})
}
