package nodeauthz

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/verdict"
)

// TestReasonsPageQuotesTheSentenceOfEachCode compares the fixed sentences that
// Authorize answers with, which people search for, with the page that explains
// them.
func TestReasonsPageQuotesTheSentenceOfEachCode(t *testing.T) {
	page, err := os.ReadFile("../docs/reference/reasons/node-authorizer.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range declaredCodes(t) {
		if code == NotANode { // other authorizers decide
			if got := Summary(code); got != "" {
				t.Errorf("users that are not nodes get %q, want an empty text", got)
			}
			continue
		}
		sentence := Summary(code)
		if sentence == "" {
			t.Errorf("%s has no sentence", code)
		}
		if !strings.Contains(string(page), "### `"+string(code)+"`\n\n> "+sentence+"\n") {
			t.Errorf("docs/reference/reasons/node-authorizer.md does not quote %q under %s", sentence, code)
		}
	}
}

// declaredCodes returns the constants of codes.go.
func declaredCodes(t *testing.T) []verdict.Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "codes.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var codes []verdict.Code
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			literal := spec.Values[0].(*ast.BasicLit).Value
			code, err := strconv.Unquote(literal)
			if err != nil || code != spec.Names[0].Name {
				t.Errorf("constant %s has the value %s", spec.Names[0].Name, literal)
			}
			codes = append(codes, verdict.Code(code))
		}
		return true
	})
	if len(codes) == 0 {
		t.Fatal("codes.go declares no codes")
	}
	return codes
}
