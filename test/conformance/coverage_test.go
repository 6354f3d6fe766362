package conformance

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/test/conformance/generate"
	"github.com/node-authorizer/node-authorizer/test/conformance/intree"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// writeCoverage counts the coverage of a run of writes, so that an untested rule fails
// the run.
type writeCoverage struct {
	total, documents, plugins, divergences int
	aims                                   map[string]*share
	branches                               map[string]int
	codes                                  map[verdict.Code]int
	codesOf                                map[string]map[verdict.Code]bool
	// listed counts the intended differences.
	listed map[string]int
}

func newWriteCoverage() *writeCoverage {
	return &writeCoverage{
		aims: make(map[string]*share), branches: make(map[string]int),
		codes: make(map[verdict.Code]int), codesOf: make(map[string]map[verdict.Code]bool),
		listed: make(map[string]int),
	}
}

func (c *writeCoverage) count(t *testing.T, w *generate.Write, ours noderestriction.Answer, theirs intree.Admitted) {
	t.Helper()
	c.total++
	if c.aims[w.Aim] == nil {
		c.aims[w.Aim] = &share{}
	}
	c.aims[w.Aim].asked++
	c.codes[ours.Code]++
	if theirs.Status == 200 {
		c.aims[w.Aim].allowed++
		return
	}
	branch, ok := branchOf(w, theirs)
	if !ok {
		t.Errorf("a refusal that is in no branch: %s: %s", w, theirs.Message)
		c.divergences++
		return
	}
	c.branches[branch]++
	if c.codesOf[branch] == nil {
		c.codesOf[branch] = make(map[verdict.Code]bool)
	}
	c.codesOf[branch][ours.Code] = true
}

// check prints how often each branch of the in-tree plugin, each of our codes and, in a
// full run, each aim of the writes was covered. It fails if one was covered too rarely,
// or did not have its possible outcomes.
func (c *writeCoverage) check(t *testing.T) {
	t.Helper()
	enough := max(1, c.total/40000)
	c.checkAims(t, enough)
	c.checkBranches(t, enough)
	c.checkCodes(t, enough)
	for _, difference := range slices.Sorted(maps.Keys(c.listed)) {
		t.Logf("difference that is meant to be, %d times: %s", c.listed[difference], difference)
	}
}

func (c *writeCoverage) checkAims(t *testing.T, enough int) {
	t.Helper()
	var table strings.Builder
	aims, rarest, least := generate.Aims(), "", c.total
	for _, aim := range slices.Sorted(maps.Keys(aims)) {
		s := c.aims[aim]
		if s == nil {
			s = &share{}
		}
		fmt.Fprintf(&table, "%-110s %7d asked %7d allowed\n", aim, s.asked, s.allowed)
		if s.asked < least {
			rarest, least = aim, s.asked
		}
		refused, outcome := s.asked-s.allowed, aims[aim]
		switch {
		case outcome != generate.Refused && s.allowed < enough:
			t.Errorf("%s: allowed %d times of %d, want %d at least", aim, s.allowed, s.asked, enough)
		case outcome != generate.Allowed && refused < enough:
			t.Errorf("%s: refused %d times of %d, want %d at least", aim, refused, s.asked, enough)
		case outcome == generate.Refused && s.allowed > 0:
			t.Errorf("%s: allowed %d times of %d, although it is meant to be refused", aim, s.allowed, s.asked)
		}
	}
	if several := c.aims["several at once"]; several != nil {
		fmt.Fprintf(&table, "%-110s %7d asked %7d allowed\n", "several at once", several.asked, several.allowed)
	}
	t.Logf("the writes have %d aims; the rarest, covered %d times, is %s", len(aims), least, rarest)
	if mode(t) != "" || t.Failed() {
		t.Logf("what the writes aim at:\n%s", table.String())
	}
}

func (c *writeCoverage) checkBranches(t *testing.T, enough int) {
	t.Helper()
	var table strings.Builder
	for _, b := range branches {
		codes := slices.Sorted(maps.Keys(c.codesOf[b.name]))
		fmt.Fprintf(&table, "%-75s %7d  %v\n", b.name, c.branches[b.name], codes)
		if c.branches[b.name] < enough {
			t.Errorf("in-tree refusal %q: covered %d times, want %d at least", b.name, c.branches[b.name], enough)
		}
	}
	t.Logf("refusals of the in-tree plugin, and our codes for them:\n%s", table.String())
}

func (c *writeCoverage) checkCodes(t *testing.T, enough int) {
	t.Helper()
	var table strings.Builder
	for _, code := range restrictionCodes(t) {
		fmt.Fprintf(&table, "%-30s %7d\n", code, c.codes[code])
		if c.codes[code] < enough {
			t.Errorf("%s: covered %d times, want %d at least", code, c.codes[code], enough)
		}
	}
	t.Logf("our codes:\n%s", table.String())
}

// restrictionCodes returns the codes in the source of package noderestriction.
func restrictionCodes(t *testing.T) []verdict.Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../noderestriction/codes.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var codes []verdict.Code
	ast.Inspect(file, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING && !strings.Contains(literal.Value, "/") {
			codes = append(codes, verdict.Code(strings.Trim(literal.Value, `"`)))
		}
		return true
	})
	if len(codes) < 20 {
		t.Fatalf("only %d codes found", len(codes))
	}
	return codes
}
