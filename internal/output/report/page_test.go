package report

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// dataOf is the JSON in a page.
func dataOf(t *testing.T, page []byte) []byte {
	t.Helper()
	found := regexp.MustCompile(`(?s)<script type="application/json" id="data" data-packing="json">(.*?)</script>`).FindSubmatch(page)
	if found == nil {
		t.Fatal("the page has no data")
	}
	return found[1]
}

func write(t *testing.T, p Page) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

var kinds = []Kind{KindAttackPaths, KindDiff, KindReach, KindDoctor}

func TestThePolicyAllowsItsOwnScriptAndStyleOnly(t *testing.T) {
	for _, kind := range kinds {
		page := string(write(t, Page{Kind: kind}))
		policy := regexp.MustCompile(`Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(page)
		if policy == nil {
			t.Fatalf("%s has no policy", kind)
		}
		script := regexp.MustCompile(`(?s)<script>(.*?)</script>`).FindStringSubmatch(page)[1]
		style := regexp.MustCompile(`(?s)<style>(.*?)</style>`).FindStringSubmatch(page)[1]
		want := "default-src 'none'; style-src " + hash(style) + "; script-src " + hash(script) + "; base-uri 'none'; form-action 'none'"
		if policy[1] != want {
			t.Errorf("%s: the policy is %s, want %s", kind, policy[1], want)
		}
	}
}

func TestHostileTextStaysData(t *testing.T) {
	for _, text := range []string{
		`</script><script>alert(1)</script>`, `<!--<script>`, `"><img src=x onerror=alert(1)>`, "\u2028\u2029", `' onload='x`,
		`&lt;script&gt;`,
		`{{script}}`, "]]>", "\x00\x1b[31m", "\u202etxt.exe", "\xff\xfe",
	} {
		page := write(t, Page{Kind: KindAttackPaths, Title: text, Data: []string{text}})
		plain := write(t, Page{Kind: KindAttackPaths, Title: "x", Data: []string{"x"}})
		for _, tag := range []string{"<script", "</script", "<!--", "<img", "</title", "<title"} {
			if got, want := bytes.Count(page, []byte(tag)), bytes.Count(plain, []byte(tag)); got != want {
				t.Errorf("%q: the page has %s %d times, want %d", text, tag, got, want)
			}
		}
		var data []string
		if err := json.Unmarshal(dataOf(t, page), &data); err != nil {
			t.Fatal(err)
		}
		if want := strings.ToValidUTF8(text, "\uFFFD"); data[0] != want && text != "\xff\xfe" {
			t.Errorf("the data is %q, want %q", data[0], want)
		}
		if bytes.ContainsAny(dataOf(t, page), "<>&\u2028\u2029") {
			t.Errorf("the data has characters that end it: %s", dataOf(t, page))
		}
	}
}

func TestLargeDataIsCompressed(t *testing.T) {
	data := []string{strings.Repeat("</script> ", largeData)}
	page := write(t, Page{Kind: KindAttackPaths, Data: data})
	found := regexp.MustCompile(`id="data" data-packing="gzip">([A-Za-z0-9+/=]*)</script>`).FindSubmatch(page)
	if found == nil {
		t.Fatal("the data is not compressed")
	}
	packed := base64.NewDecoder(base64.StdEncoding, bytes.NewReader(found[1]))
	plain, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := json.NewDecoder(plain).Decode(&got); err != nil || !slices.Equal(got, data) {
		t.Errorf("the data is not what was encoded: %v", err)
	}
}

// Every file of the page is used, and none ends the element that it is in.
func TestFiles(t *testing.T) {
	used := map[string]bool{"page.html": true, "style.css": true}
	for _, names := range scripts {
		for _, name := range names {
			used[name] = true
		}
	}
	entries, err := files.ReadDir("page")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !used[e.Name()] {
			t.Errorf("no page has %s", e.Name())
		}
		if e.Name() == "page.html" {
			continue
		}
		text := strings.ToLower(read(e.Name()))
		for _, end := range []string{"</script", "</style", "<!--"} {
			if strings.Contains(text, end) {
				t.Errorf("%s contains %s", e.Name(), end)
			}
		}
	}
}

// The scripts show their input as text, never as markup or code.
func TestScriptsParseNothing(t *testing.T) {
	forbidden := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|` +
		`\beval\b|new Function|fetch\(|XMLHttpRequest|WebSocket|importScripts|\bimport\b|setHTML|srcdoc|javascript:`)
	for _, names := range scripts {
		for _, name := range names {
			if found := forbidden.FindString(read(name)); found != "" {
				t.Errorf("%s uses %s", name, found)
			}
		}
	}
}

// golden compares with a file, or writes it.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got\n%s\nwant %s:\n%s", got, file, want)
	}
}
