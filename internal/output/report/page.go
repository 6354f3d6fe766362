package report

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

// Kind says which result a page shows.
type Kind string

// The kinds of pages.
const (
	KindAttackPaths Kind = "attack-paths"
	KindDiff        Kind = "diff"
	KindReach       Kind = "reach"
	KindDoctor      Kind = "doctor"
)

// Page is a result to show.
type Page struct {
	Kind Kind
	// Title is the title of the document.
	Title string
	// Metadata says how the page was made.
	Metadata *render.Metadata
	// Data is encoded as JSON, for the scripts.
	Data any
}

//go:embed page
var files embed.FS

// scripts are the files of each kind of page, in the order in which they run.
var scripts = map[Kind][]string{
	KindAttackPaths: {
		"text.js", "dom.js", "link.js", "frame.js", "remedy.js", "steps.js", "paths.js", "grid.js", "names.js", "filter.js", "rank.js",
		"matrix.js", "drawn.js", "csv.js", "advice.js", "details.js", "print.js", "attackpaths.js",
	},
	KindDiff:   {"text.js", "dom.js", "link.js", "frame.js", "remedy.js", "steps.js", "search.js", "diff.js"},
	KindReach:  {"text.js", "dom.js", "link.js", "frame.js", "remedy.js", "steps.js", "search.js", "reach.js"},
	KindDoctor: {"text.js", "dom.js", "link.js", "frame.js", "search.js", "doctor.js"},
}

// policy is the page's Content-Security-Policy: its own style and script, and nothing else.
const policy = "default-src 'none'; style-src %s; script-src %s; base-uri 'none'; form-action 'none'"

// Write writes a page. The same page is the same bytes.
func Write(w io.Writer, p Page) error {
	page, err := p.encode()
	if err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	if _, err := w.Write(page); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

func (p Page) encode() ([]byte, error) {
	data, packing, err := encodeData(p.Data)
	if err != nil {
		return nil, err
	}
	metadata, err := json.Marshal(p.Metadata)
	if err != nil {
		return nil, err
	}
	style, script := read("style.css"), p.script()
	return []byte(strings.NewReplacer(
		"{{policy}}", fmt.Sprintf(policy, hash(style), hash(script)), "{{title}}", html.EscapeString(p.Title),
		"{{kind}}", string(p.Kind), "{{style}}", style, "{{script}}", script,
		"{{packing}}", packing, "{{data}}", string(data), "{{metadata}}", string(metadata),
	).Replace(read("page.html"))), nil
}

// largeData is how many bytes of JSON are compressed.
const largeData = 512 << 10

// encodeData encodes data as JSON, and says how the page reads it. Neither form can end the element
// that it is in: JSON escapes <, >, &, U+2028 and U+2029.
func encodeData(data any) (text []byte, packing string, err error) {
	plain, err := json.Marshal(data)
	if err != nil || len(plain) < largeData {
		return plain, "json", err
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(plain); err != nil {
		return nil, "", err
	}
	if err := w.Close(); err != nil {
		return nil, "", err
	}
	return base64.StdEncoding.AppendEncode(nil, packed.Bytes()), "gzip", nil
}

// script is one script of all files: they share one scope, which nothing else sees.
func (p Page) script() string {
	var b strings.Builder
	b.WriteString("(async () => {\n'use strict';\n")
	for _, name := range scripts[p.Kind] {
		b.WriteString(read(name))
	}
	b.WriteString("})();\n")
	return b.String()
}

func read(name string) string {
	text, err := files.ReadFile("page/" + name)
	if err != nil {
		panic("a file of the page is not embedded: " + err.Error())
	}
	return string(text)
}

// hash is how a policy names an inline script or style.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
