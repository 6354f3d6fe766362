package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// built is the release that the tests check: the one of RELEASE_DIST if it is set (RELEASE_VERSION,
// RELEASE_REVISION, RELEASE_TIME and RELEASE_PLATFORMS say how it was built), else one for Linux on this architecture.
var built = &release{
	version: "v0.1.0", revision: strings.Repeat("ab", 20), time: time.Unix(1763872000, 0).UTC(),
	platforms: []platform{{"linux", runtime.GOARCH}}, source: "../..", registry: defaultRegistry, log: os.Stderr,
}

// folders is a folder for all tests.
var folders string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if folders, err = os.MkdirTemp("", "release-test"); err == nil {
			defer os.RemoveAll(folders)
			err = prepare()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

func prepare() error {
	if built.out = os.Getenv("RELEASE_DIST"); built.out == "" {
		built.out = filepath.Join(folders, "dist")
		again := *built
		return again.build(context.Background())
	}
	built.version, built.revision = os.Getenv("RELEASE_VERSION"), os.Getenv("RELEASE_REVISION")
	seconds, err := strconv.ParseInt(os.Getenv("RELEASE_TIME"), 10, 64)
	built.time = time.Unix(seconds, 0).UTC()
	built.platforms = nil
	platforms := allPlatforms
	if some := os.Getenv("RELEASE_PLATFORMS"); some != "" {
		platforms = strings.Split(some, ",")
	}
	for _, text := range platforms {
		p, unknown := parsePlatform(text)
		built.platforms, err = append(built.platforms, p), errors.Join(err, unknown)
	}
	return err
}

func linuxPlatforms() (found []platform) {
	for _, p := range built.platforms {
		if p.os == "linux" {
			found = append(found, p)
		}
	}
	return found
}

// read reads a file.
func read(t *testing.T, path ...string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// command runs a program and returns what it prints.
func command(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s%s", cmd, err, output, stderr.Bytes())
	}
	return string(output)
}

// A build in another folder, with other settings of the user, gives the same bytes.
func TestReproducible(t *testing.T) {
	source := filepath.Join(t.TempDir(), "another", "folder")
	copySource(t, source)
	t.Setenv("GOFLAGS", "-race")
	t.Setenv("TZ", "Pacific/Auckland")
	t.Setenv("SOURCE_DATE_EPOCH", "1")
	again := *built
	again.platforms = []platform{{"linux", runtime.GOARCH}}
	again.source, again.out = source, filepath.Join(t.TempDir(), "dist")
	if err := again.build(t.Context()); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, e := range readDir(t, again.out) {
		// Files about all platforms differ if there are more of them.
		if shared := !strings.Contains(e, "_linux_"); shared && len(built.platforms) > 1 && !strings.HasSuffix(e, ".tgz") {
			continue
		}
		compared++
		if !bytes.Equal(read(t, again.out, e), read(t, built.out, e)) {
			t.Errorf("%s differs", e)
		}
	}
	if compared < 5 {
		t.Errorf("%d files were compared", compared)
	}
}

func readDir(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// copySource copies the main module and the chart, without git's data.
func copySource(t *testing.T, to string) {
	t.Helper()
	root := filepath.Clean("../..")
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if e.IsDir() {
			if strings.HasPrefix(name, ".") && name != "." || slices.Contains([]string{"bin", "dist", "test", "tools"}, name) {
				return filepath.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, name), 0o755)
		}
		if !e.Type().IsRegular() {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), content, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestBuildIsRefused(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "old"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	valid := []string{"-version", "v0.1.0", "-revision", "abc", "-time", "1", "-out", filepath.Join(full, "new")}
	if _, err := parseBuild(valid, t.Output()); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"without the prefix v":      {[]string{"-version", "0.1.0"}, `-version "0.1.0": want a version such as v0.1.0`},
		"of two numbers":            {[]string{"-version", "v0.1"}, `-version "v0.1": want a version such as v0.1.0`},
		"with build metadata":       {[]string{"-version", "v0.1.0+dirty"}, `-version "v0.1.0+dirty": want a version such as v0.1.0`},
		"without a commit":          {[]string{"-revision", ""}, "-revision is missing"},
		"without a time":            {[]string{"-time", "0"}, "-time is missing"},
		"over files of another one": {[]string{"-out", full}, "is not empty"},
		"for an unknown platform":   {[]string{"-platforms", "plan9/amd64"}, `unknown platform "plan9/amd64"`},
		"with an argument":          {[]string{"all"}, `unexpected argument "all"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseBuild(append(slices.Clone(valid), c.args...), t.Output())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v, want %q", err, c.want)
			}
		})
	}
}

func TestNotes(t *testing.T) {
	const changelog = `# Changelog

## [Unreleased]

## [0.2.0] - 2027-01-02

### Added

- a command

## [0.1.0]

- no date

## [0.0.1] - 2026-01-02

- the first

[0.2.0]: https://example.com
`
	for name, c := range map[string]struct{ want, err string }{
		"0.2.0":      {want: "### Added\n\n- a command\n"},
		"0.0.1":      {want: "- the first\n"},
		"Unreleased": {want: "\n"},
		"0.1.0":      {err: "CHANGELOG.md has 0 sections with the heading ## [0.1.0] and a date: want 1"},
		"0.3.0":      {err: "CHANGELOG.md has 0 sections with the heading ## [0.3.0] and a date: want 1"},
		"0x2.0":      {err: "CHANGELOG.md has 0 sections with the heading ## [0x2.0] and a date: want 1"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := section(changelog, name)
			if c.err != "" {
				if err == nil || err.Error() != c.err {
					t.Errorf("error is %v, want %q", err, c.err)
				}
				return
			}
			if err != nil || got != c.want {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
}
