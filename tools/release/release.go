package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

const (
	programName     = "node-authorizer"
	description     = "Says what Kubernetes nodes may do, and why"
	projectURL      = "https://github.com/node-authorizer/node-authorizer"
	license         = "Apache-2.0"
	defaultRegistry = "ghcr.io/node-authorizer"
)

// release is a release to build.
type release struct {
	// version is a semantic version with the prefix v.
	version  string
	revision string
	// time is the time of all files.
	time      time.Time
	platforms []platform
	// source is the repository, out the folder for the files.
	source, out string
	registry    string
	log         io.Writer

	// binaries are the programs that were built.
	binaries []binary
	// manuals are the manual pages, and packagedManuals the paths of the compressed ones.
	manuals         []entry
	packagedManuals []string
	// archives are the names of their archives, in the same order.
	archives []string
}

// check validates the flags before anything is built.
func (r *release) check() error {
	if !semver.IsValid(r.version) || semver.Canonical(r.version) != r.version {
		return fmt.Errorf("-version %q: want a version such as v0.1.0", r.version)
	}
	if r.revision == "" {
		return errors.New("-revision is missing")
	}
	if r.time.Unix() <= 0 {
		return errors.New("-time is missing")
	}
	entries, err := os.ReadDir(r.out)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s is not empty: remove it first, because all files in it become part of the release", r.out)
	}
	return nil
}

// build makes all files of the release.
func (r *release) build(ctx context.Context) error {
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	for _, step := range []struct {
		name string
		run  func() error
	}{
		{"notes", r.writeNotes},
		{"programs", func() error { return r.buildPrograms(ctx, work) }},
		{"manual pages", func() error { return r.writeManuals(work) }},
		{"archives", r.writeArchives},
		{"bills of materials", r.writeBills},
		{"packages", func() error { return r.writePackages(work) }},
		{"image", func() error { return r.writeImage(filepath.Join(work, "layout")) }},
		{"chart", r.writeChart},
		{"manifest for krew", r.writeKrew},
		{"checksums", func() error { return writeChecksums(r.out) }},
	} {
		fmt.Fprintf(r.log, "%s %s\n", r.version, step.name)
		if err := step.run(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

// fileName returns the name of a file for a platform.
func (r *release) fileName(p platform, extension string) string {
	return fmt.Sprintf("%s_%s_%s_%s%s", programName, r.version, p.os, p.arch, extension)
}

// write writes a file of the release.
func (r *release) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(r.out, name), content, 0o644)
}

// read reads a file of the repository.
func (r *release) read(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(r.source, filepath.FromSlash(name)))
}

// number is the version without the prefix v, for formats that have none.
func (r *release) number() string { return strings.TrimPrefix(r.version, "v") }
