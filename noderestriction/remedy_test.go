package noderestriction

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/node-authorizer/node-authorizer/verdict"
)

func TestEveryRefusalHasARemedy(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "codes.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	allowed, found := []verdict.Code{NotANode, NotRestricted, RestrictionsMet}, 0
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			found++
			code := verdict.Code(spec.Names[0].Name)
			if _, has := remedies[code]; has == slices.Contains(allowed, code) {
				t.Errorf("%s has a remedy: %v", code, has)
			}
		}
		return true
	})
	if found != len(remedies)+len(allowed) {
		t.Errorf("%d codes, %d remedies and %d allowed codes", found, len(remedies), len(allowed))
	}
}

// randomValue draws JSON with few keys and values, so that two of them have much in common.
func randomValue(r *rand.Rand, depth int) any {
	n := r.IntN(6)
	if depth == 0 {
		n = r.IntN(4)
	}
	switch n {
	case 0:
		return strconv.Itoa(r.IntN(2))
	case 1:
		return r.IntN(3)
	case 2:
		return r.IntN(2) == 0
	case 3:
		return []any{"x", map[string]any{"a/b": "~"}}[:r.IntN(3)]
	case 4:
		list := make([]any, r.IntN(4))
		for i := range list {
			list[i] = randomValue(r, depth-1)
		}
		return list
	}
	object := map[string]any{}
	for _, key := range []string{"a", "a/b", "~", "~1", "", "é", "-", "0"} {
		if r.IntN(2) == 0 {
			object[key] = randomValue(r, depth-1)
		}
	}
	return object
}

// TestDifferenceIsAPatch: a library for JSON patches makes the second object from the first.
func TestDifferenceIsAPatch(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		from, to := map[string]any{"v": randomValue(r, 3)}, map[string]any{"v": randomValue(r, 3)}
		changes := difference(from, to)
		type operation struct {
			Op    verdict.Op      `json:"op"`
			Path  string          `json:"path"`
			Value json.RawMessage `json:"value,omitempty"`
		}
		operations := make([]operation, len(changes))
		for i, c := range changes {
			operations[i] = operation{c.Op, c.Path, c.Value}
		}
		patch, err := jsonpatch.DecodePatch(encoded(operations))
		if err != nil {
			t.Fatal(err)
		}
		got, err := patch.Apply(encoded(from))
		if err != nil || !jsonpatch.Equal(got, encoded(to)) {
			t.Fatalf("from %s\nto   %s\ngot  %s (%v)\nby   %s", encoded(from), encoded(to), got, err, encoded(operations))
		}
	}
}
