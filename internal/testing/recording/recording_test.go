package recording

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

func write(t *testing.T, scenes ...Scene) string {
	t.Helper()
	var picture bytes.Buffer
	if err := Write(&picture, "commands & answers", scenes, 0); err != nil {
		t.Fatal(err)
	}
	return picture.String()
}

func TestThePictureIsXMLWithoutScriptsOrReferences(t *testing.T) {
	picture := write(t, Scene{Comment: "a < b", Command: `echo "<script>" & exit`, Output: "<image href='http://example.com'>\n"})
	decoder := xml.NewDecoder(strings.NewReader(picture))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		element, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if slices.Contains([]string{"script", "image", "a", "use", "foreignObject"}, element.Name.Local) {
			t.Errorf("the picture has the element %s", element.Name.Local)
		}
		for _, attribute := range element.Attr {
			if attribute.Name.Local == "href" || strings.HasPrefix(attribute.Name.Local, "on") {
				t.Errorf("the element %s has the attribute %s", element.Name.Local, attribute.Name.Local)
			}
		}
	}
}

func TestLinesAreThoseOfATerminal(t *testing.T) {
	for _, test := range []struct {
		name, output string
		want         []string
	}{
		{"one line", "yes\n", []string{"yes"}},
		{"an empty line stays", "a\n\nb\n", []string{"a", "", "b"}},
		{"a wide line is broken", strings.Repeat("é", Columns+2) + "\n", []string{strings.Repeat("é", Columns), "éé"}},
		{
			"what does not fit is left out, and the last line says so", strings.Repeat("a\n", Rows),
			append(slices.Repeat([]string{"a"}, Rows-4), "…"),
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := (&Scene{Output: test.output}).lines(); !slices.Equal(got, test.want) {
				t.Errorf("lines %q, want %q", got, test.want)
			}
		})
	}
}

func TestEachSceneBeginsWhenTheLastOneEnds(t *testing.T) {
	picture := write(t, Scene{Command: "a", Output: "1\n"}, Scene{Command: "a", Output: "1\n"})
	for _, want := range []string{
		"@keyframes scene0 { 0% { opacity: 1 } 0.000% { opacity: 1 } 50.000% { opacity: 0 } }",
		"@keyframes scene1 { 0% { opacity: 0 } 50.000% { opacity: 1 } 100.000% { opacity: 0 } }",
	} {
		if !strings.Contains(picture, want) {
			t.Errorf("the picture lacks %q:\n%s", want, picture)
		}
	}
}

func TestReadersWhoPreferReducedMotionSeeOneScene(t *testing.T) {
	picture := write(t, Scene{Command: "a", Output: "1\n"})
	_, reduced, found := strings.Cut(picture, "prefers-reduced-motion: reduce")
	if !found || !strings.Contains(reduced, "animation: none") || !strings.Contains(reduced, "#scene0, #output0 { opacity: 1 }") {
		t.Errorf("the picture does not stand still:\n%s", picture)
	}
}
