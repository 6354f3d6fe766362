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
const URL = project + folder

const project, folder = "https://github.com/node-authorizer/node-authorizer/blob/main/", "docs/reference/"

// Kind says whether a code is a reason of an answer, a finding of the doctor or a technique of attack paths.
type Kind string

// The kinds of codes.
const (
	Reason    Kind = "reason"
	Finding   Kind = "finding"
	Technique Kind = "technique"
)

// Section explains a code.
type Section struct {
	// Code is the code, as commands print it.
	Code string `json:"code"`
	// Kind is reason, finding or technique. A code that is two of them has two sections.
	Kind Kind `json:"kind"`
	// Link is the address of the section in the documentation.
	Link string `json:"link"`
	// Text is the section without its heading, in Markdown. Its links are absolute.
	Text string `json:"text"`
}

var (
	// heading is the heading of a section: the code alone, in backquotes.
	heading      = regexp.MustCompile("(?m)^##+ `([A-Za-z0-9]+)`\n")
	nextHeading  = regexp.MustCompile("(?m)^#{1,3} ")
	relativeLink = regexp.MustCompile(`\]\(([^):#]*)(#[^)]*)?\)`)
)

// Sections returns the sections of all codes, sorted by code and kind.
func Sections() []Section {
	var all []Section
	for _, kind := range []Kind{Finding, Reason, Technique} {
		for file, page := range pagesOf(kind) {
			for _, at := range heading.FindAllStringSubmatchIndex(page, -1) {
				code, text := page[at[2]:at[3]], page[at[1]:]
				if end := nextHeading.FindStringIndex(text); end != nil {
					text = text[:end[0]]
				}
				all = append(all, Section{code, kind, anchor(file, code), absolute(file, strings.TrimSpace(text))})
			}
		}
	}
	slices.SortFunc(all, func(a, b Section) int { return strings.Compare(a.Code+" "+string(a.Kind), b.Code+" "+string(b.Kind)) })
	return all
}

// Link returns the address of a code's section; empty if the code has none, as techniques of a file do.
func Link(kind Kind, code string) string {
	for file, text := range pagesOf(kind) {
		if strings.Contains(text, "## `"+code+"`\n") {
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

// absolute makes the links of a page's text absolute.
func absolute(file, text string) string {
	return relativeLink.ReplaceAllStringFunc(text, func(link string) string {
		to := relativeLink.FindStringSubmatch(link)
		if to[1] == "" {
			to[1] = path.Base(file)
		}
		return "](" + project + path.Join(folder, path.Dir(file), to[1]) + to[2] + ")"
	})
}
