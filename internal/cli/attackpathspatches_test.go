package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/verdict"
)

// patchOf reads operations such as "test /rules/0 a; remove /rules/0".
func patchOf(text string) (patch []verdict.Change) {
	for op := range strings.SplitSeq(text, "; ") {
		words := strings.Fields(op)
		if len(words) == 0 {
			continue
		}
		c := verdict.Change{Op: verdict.Op(words[0]), Path: words[1]}
		if len(words) > 2 {
			c.Value = json.RawMessage(`"` + words[2] + `"`)
		}
		patch = append(patch, c)
	}
	return patch
}

func patchText(patch []verdict.Change) string {
	var all []string
	for _, c := range patch {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %s", c.Op, c.Path, strings.Trim(string(c.Value), `"`))))
	}
	return strings.Join(all, "; ")
}

func TestPatchesOfOneObject(t *testing.T) {
	for _, c := range []struct{ rule, a, b, want string }{
		{
			rule: "the last entry comes first", a: "test /subjects/0 a; remove /subjects/0", b: "test /subjects/2 c; remove /subjects/2",
			want: "test /subjects/2 c; remove /subjects/2; test /subjects/0 a; remove /subjects/0",
		},
		{
			rule: "what follows a test stays with it", a: "test /rules/0 a; replace /rules/0/verbs b; add /rules/1 c",
			b:    "test /rules/1 d; remove /rules/1",
			want: "test /rules/1 d; remove /rules/1; test /rules/0 a; replace /rules/0/verbs b; add /rules/1 c",
		},
		{
			rule: "the same change is there once", a: "test /rules/0 a; remove /rules/0", b: "test /rules/0 a; remove /rules/0",
			want: "test /rules/0 a; remove /rules/0",
		},
		{
			rule: "annotations come last", a: "test /rules/0 a; remove /rules/0; add /metadata/annotations/x false",
			b:    "test /rules/1 b; remove /rules/1; add /metadata/annotations/x false",
			want: "test /rules/1 b; remove /rules/1; test /rules/0 a; remove /rules/0; add /metadata/annotations/x false",
		},
		{rule: "two changes of one entry", a: "test /rules/0 a; remove /rules/0", b: "test /rules/0 a; replace /rules/0/verbs b"},
		{rule: "two values of one field", a: "add /metadata/labels/x a", b: "add /metadata/labels/x b"},
		{rule: "another list", a: "test /spec/volumes/0 a; remove /spec/volumes/0", b: "test /rules/0 a; remove /rules/0"},
		{rule: "a deletion", a: "remove ", b: "test /rules/0 a; remove /rules/0"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			a := []verdict.Change{{Op: verdict.Remove}}
			if c.a != "remove " {
				a = patchOf(c.a)
			}
			got, ok := mergePatches(a, patchOf(c.b))
			if ok != (c.want != "") || patchText(got) != c.want {
				t.Errorf("got %q, %v, want %q", patchText(got), ok, c.want)
			}
		})
	}
}
