// Package reference holds the pages of this folder that explain codes: a program prints the text of the page, and links to it.
package reference

import (
	"embed"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

//go:embed reasons/*.md findings/*.md techniques/*.md
var pages embed.FS

// URL is the address of the folder. It ends with a slash.
const URL = "https://github.com/node-authorizer/node-authorizer/blob/main/docs/reference/"

// Kind says what a code stands for.
type Kind string

// The kinds of codes: of an answer, of the doctor, and of a step of an attack path.
const (
	Reason    Kind = "reason"
	Finding   Kind = "finding"
	Technique Kind = "technique"
)

// Kinds are all kinds, in the order of the index.
func Kinds() []Kind { return []Kind{Reason, Finding, Technique} }

// Section explains a code.
type Section struct {
	// Code is the code, as commands print it.
	Code string `json:"code"`
	// Kind is reason, finding or technique. A few codes are two of them, and have a section for each.
	Kind Kind `json:"kind"`
	// Link is the address of the section in the documentation.
	Link string `json:"link"`
	// Text is the section without its heading, in Markdown. Its links are absolute.
	Text string `json:"text"`
}

// heading is the heading of a code's section: the code alone, in backquotes.
var heading = regexp.MustCompile("(?m)^(##+) `([A-Za-z0-9]+)`\n")

// Sections returns the sections of all codes, sorted by code and kind.
func Sections() []Section {
	var all []Section
	for _, kind := range Kinds() {
		for file, text := range pagesOf(kind) {
			for _, at := range heading.FindAllStringSubmatchIndex(text, -1) {
				code := text[at[4]:at[5]]
				all = append(all, Section{code, kind, anchor(file, code), absolute(file, body(text[at[1]:], at[3]-at[2]))})
			}
		}
	}
	slices.SortFunc(all, func(a, b Section) int {
		return strings.Compare(a.Code+" "+string(a.Kind), b.Code+" "+string(b.Kind))
	})
	return all
}

// Link returns the address of a code's section; empty if the code has none, as techniques of a file do.
func Link(kind Kind, code string) string {
	for file, text := range pagesOf(kind) {
		if strings.Contains(text, "\n## `"+code+"`\n") || strings.Contains(text, "\n### `"+code+"`\n") {
			return anchor(file, code)
		}
	}
	return ""
}

// pagesOf returns the pages of a kind by their paths.
func pagesOf(kind Kind) map[string]string {
	found := map[string]string{}
	files, _ := fs.Glob(pages, string(kind)+"s/*.md") // the pattern is valid
	for _, file := range files {
		text, _ := pages.ReadFile(file) // it is embedded
		found[file] = string(text)
	}
	return found
}

func anchor(file, code string) string { return URL + file + "#" + strings.ToLower(code) }

// body returns a text up to the next heading of the level or above.
func body(text string, level int) string {
	next := regexp.MustCompile("(?m)^#{1," + string(rune('0'+level)) + "} ").FindStringIndex(text)
	if next != nil {
		text = text[:next[0]]
	}
	return strings.TrimSpace(text)
}

var relativeLink = regexp.MustCompile(`\]\(([^):]+)\)`)

// absolute makes the links of a page's text absolute.
func absolute(file, text string) string {
	return relativeLink.ReplaceAllStringFunc(text, func(link string) string {
		target, section, _ := strings.Cut(relativeLink.FindStringSubmatch(link)[1], "#")
		if target == "" {
			target = path.Base(file)
		}
		to := path.Join("docs/reference", path.Dir(file), target)
		if section != "" {
			to += "#" + section
		}
		return "](" + strings.TrimSuffix(URL, "docs/reference/") + to + ")"
	})
}
