package paths

import (
	"encoding/xml"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
)

// manyRows is a result with more rows than a comment has room for, with names as long as they may be.
func manyRows(rows int) *DiffResult {
	r := &DiffResult{Verdict: DiffWidened}
	long := strings.Repeat("<@_|.", 50)
	for i := range rows {
		node := attackpaths.Holding{Kind: attackpaths.Node, Name: fmt.Sprint(long, i)}
		secret := attackpaths.Holding{Kind: attackpaths.Secret, Namespace: long, Name: fmt.Sprint(long, i)}
		r.Widened = append(r.Widened, diffRow{
			Kind: attackpaths.Secret, After: attackpaths.Certain, StartKind: attackpaths.Node,
			Starts: []attackpaths.Holding{node}, Reached: []attackpaths.Holding{secret},
			Path: []attackpaths.Step{{Technique: attackpaths.SecretRead, From: node, To: secret, Because: long}},
		})
		r.Notes = append(r.Notes, long)
		r.Missing = append(r.Missing, command.Missing{Resource: long, Reason: long})
		r.Changes = append(r.Changes, diffChange{Action: "Added", Object: changedObject{Kind: "Role", Name: long}, File: long, Line: i})
	}
	return r
}

func TestMarkdownFitsIntoAComment(t *testing.T) {
	for _, rows := range []int{0, 1, 10, 40, 2000} {
		text := manyRows(rows).Markdown()
		if n := utf8.RuneCountInString(text); n > 65536 {
			t.Errorf("%d rows take %d characters", rows, n)
		}
		if strings.Count(text, "<details>") != strings.Count(text, "</details>") {
			t.Errorf("%d rows: a row is cut", rows)
		}
		shown := strings.Count(text, "<b><code>")
		counted := fmt.Sprintf("**%s more rows do not fit", thousandsOf(rows-shown))
		if shown < rows && !strings.Contains(text, counted) {
			t.Errorf("%d of %d rows are shown, and the rest is not counted", shown, rows)
		}
	}
}

func thousandsOf(n int) string {
	if n >= 1000 {
		return fmt.Sprintf("%d,%03d", n/1000, n%1000)
	}
	return fmt.Sprint(n)
}

func FuzzEscaped(f *testing.F) {
	for _, seed := range []string{"a", "</code>", "@all", "[x](y)", "www.x.example", "a\x00b\u202e", "`", "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := escaped(text)
		if strings.ContainsAny(got, "<>`*_[]|@.:\n\\\"'") {
			t.Errorf("%q became %q", text, got)
		}
		if err := xml.Unmarshal([]byte("<a>"+got+"</a>"), new(string)); err != nil {
			t.Errorf("%q became %q: %v", text, got, err)
		}
	})
}
