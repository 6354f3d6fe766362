package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// A release has the program that `make build` makes.
func TestFlagsAreThoseOfMakeBuild(t *testing.T) {
	makefile := string(read(t, "../../Makefile"))
	for name, want := range map[string]string{"TAGS": buildTags, "LDFLAGS": linkerFlags, "CLI": linkedTo} {
		found := regexp.MustCompile(`(?m)^` + name + ` := (.*)$`).FindStringSubmatch(makefile)
		if found == nil || found[1] != want {
			t.Errorf("%s of the Makefile is %v, want %s", name, found, want)
		}
	}
}

func TestProgramSaysItsVersion(t *testing.T) {
	_, dir := unpackedArchive(t, platform{"linux", runtime.GOARCH})
	var said struct {
		Version, Revision, Platform string
		Modified                    bool
	}
	if err := json.Unmarshal([]byte(command(t, dir, nil, "./node-authorizer", "version", "-o", "json")), &said); err != nil {
		t.Fatal(err)
	}
	if said.Version != built.version || said.Revision != built.revision || said.Platform != "linux/"+runtime.GOARCH || said.Modified {
		t.Errorf("the program says %+v, want %s of %s", said, built.version, built.revision)
	}
}

// `make build` takes the version from tags.
func TestVersionOfMake(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "Makefile"), read(t, "../../Makefile"), 0o600); err != nil {
		t.Fatal(err)
	}
	git := func(args ...string) string {
		return strings.TrimSpace(command(t, dir, []string{
			"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a",
			"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a",
		}, "git", args...))
	}
	linked := func() string {
		commands := command(t, dir, []string{"MAKEFLAGS=", "VERSION=v9.9.9"}, "make", "-n", "build")
		found := regexp.MustCompile(`linkedVersion=(\S*) `).FindStringSubmatch(commands)
		if found == nil {
			t.Fatal("make build links no version")
		}
		return found[1]
	}
	expect := func(state, want string) {
		t.Helper()
		if got := linked(); got != want {
			t.Errorf("%s: the version is %q, want %q", state, got, want)
		}
	}
	expect("without git", "")
	git("init", "-q")
	git("add", ".")
	git("commit", "-qm", "first")
	expect("without a tag", "v0.0.0-g"+git("rev-parse", "--short", "HEAD"))
	git("tag", "other")
	expect("with another tag", "v0.0.0-g"+git("rev-parse", "--short", "HEAD"))
	git("tag", "v0.1.0")
	expect("at a tag", "v0.1.0")
	if err := os.WriteFile(filepath.Join(dir, "Makefile"), append(read(t, "../../Makefile"), '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	expect("with changes", "v0.1.0-dirty")
	git("commit", "-qam", "second")
	expect("after a tag", "v0.1.0-1-g"+git("rev-parse", "--short", "HEAD"))
}
