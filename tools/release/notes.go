package main

import (
	"fmt"
	"regexp"
	"strings"

	"golang.org/x/mod/semver"
)

const notesName = "notes.md"

// writeNotes writes the version's section of the changelog. A version without a prerelease must
// have one; others, of snapshots, get what is not released.
func (r *release) writeNotes() error {
	changelog, err := r.read("CHANGELOG.md")
	if err != nil {
		return err
	}
	name := r.number()
	if semver.Prerelease(r.version) != "" {
		name = "Unreleased"
	}
	notes, err := section(string(changelog), name)
	if err != nil {
		return err
	}
	return r.write(notesName, []byte(notes))
}

// section returns the text under the heading of a version. A released version has a date.
func section(changelog, name string) (string, error) {
	heading := `## \[` + regexp.QuoteMeta(name) + `\]`
	if name != "Unreleased" {
		heading += ` - [0-9]{4}-[0-9]{2}-[0-9]{2}`
	}
	at := regexp.MustCompile(`(?m)^`+heading+`$`).FindAllStringIndex(changelog, -1)
	if len(at) != 1 {
		return "", fmt.Errorf("CHANGELOG.md has %d sections with the heading ## [%s] and a date: want 1", len(at), name)
	}
	text := changelog[at[0][1]:]
	if next := regexp.MustCompile(`(?m)^(## |\[[^\]]+\]: )`).FindStringIndex(text); next != nil {
		text = text[:next[0]]
	}
	return strings.TrimSpace(text) + "\n", nil
}
