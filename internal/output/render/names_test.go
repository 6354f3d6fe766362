package render_test

import (
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

func TestListsOfNames(t *testing.T) {
	for _, tc := range []struct {
		names      []string
		two, files string
	}{
		{[]string{"a"}, "a", "file a"},
		{[]string{"a", "b"}, "a, b", "files a, b"},
		{[]string{"a", "b", "c"}, "a, b and 1 more", "files a, b, c"},
		{[]string{"a", "b", "c", "d", "e"}, "a, b and 3 more", "files a, b, c and 2 more"},
	} {
		if got := render.Names(tc.names, 2); got != tc.two {
			t.Errorf("%q, 2 of them: %q, want %q", tc.names, got, tc.two)
		}
		if got := render.Files(tc.names); got != tc.files {
			t.Errorf("the files %q: %q, want %q", tc.names, got, tc.files)
		}
	}
}
