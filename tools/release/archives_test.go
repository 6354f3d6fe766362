package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// untar returns the files of a tar archive.
func untar(t *testing.T, archive io.Reader) (files []entry) {
	t.Helper()
	for reader := tar.NewReader(archive); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		if !header.ModTime.Equal(built.time) || header.Uid != 0 || header.Gid != 0 {
			t.Errorf("%s is of %s and of user %d, group %d", header.Name, header.ModTime, header.Uid, header.Gid)
		}
		files = append(files, entry{header.Name, header.Mode, content})
	}
}

func gunzip(t *testing.T, content []byte) io.Reader {
	t.Helper()
	reader, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	return reader
}

func unzip(t *testing.T, content []byte) (files []entry) {
	t.Helper()
	archive, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.File {
		reader, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, entry{f.Name, int64(f.Mode().Perm()), content})
	}
	return files
}

// unpackedArchive returns the files of the archive for a platform, and a folder with them.
func unpackedArchive(t *testing.T, p platform) (files []entry, dir string) {
	t.Helper()
	if p.os == "windows" {
		files = unzip(t, read(t, built.out, built.fileName(p, ".zip")))
	} else {
		files = untar(t, gunzip(t, read(t, built.out, built.fileName(p, ".tar.gz"))))
	}
	dir = t.TempDir()
	for _, f := range files {
		path := filepath.Join(dir, f.name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, f.content, os.FileMode(f.mode))); err != nil {
			t.Fatal(err)
		}
	}
	return files, dir
}

func TestArchives(t *testing.T) {
	for _, p := range built.platforms {
		files, _ := unpackedArchive(t, p)
		if pages := manualPages(files); p.os != "windows" {
			checkManuals(t, built, p, pages)
			files = files[:len(files)-len(pages)]
		}
		var names []string
		for _, f := range files {
			names = append(names, f.name)
			want := int64(0o644)
			if f.name == p.program() {
				want = 0o755
			} else if !bytes.Equal(f.content, read(t, "../..", f.name)) {
				t.Errorf("%s: %s is not that of the repository", p, f.name)
			}
			if f.mode != want {
				t.Errorf("%s: the mode of %s is %o, want %o", p, f.name, f.mode, want)
			}
		}
		if want := []string{p.program(), "LICENSE", "README.md", "CHANGELOG.md"}; !slices.Equal(names, want) {
			t.Errorf("%s: the archive has %q, want %q", p, names, want)
		}
	}
}

func TestZip(t *testing.T) {
	files := []entry{{"node-authorizer.exe", 0o755, []byte("program")}, {"LICENSE", 0o644, []byte("text")}}
	var archive bytes.Buffer
	if err := writeZip(&archive, files, time.Unix(1763872000, 0).UTC()); err != nil {
		t.Fatal(err)
	}
	same := func(a, b entry) bool {
		return a.name == b.name && a.mode == b.mode && bytes.Equal(a.content, b.content)
	}
	if got := unzip(t, archive.Bytes()); !slices.EqualFunc(got, files, same) {
		t.Errorf("the archive has %v", got)
	}
}

// sha256sum reads the checksums, of each file of the release.
func TestChecksums(t *testing.T) {
	checked := strings.Count(command(t, built.out, []string{"LC_ALL=C"}, "sha256sum", "--check", "--strict", checksumsName), ": OK\n")
	if want := len(readDir(t, built.out)) - 1; checked != want {
		t.Errorf("%d files have checksums, want %d", checked, want)
	}
}

func TestVerifyChecksums(t *testing.T) {
	for name, c := range map[string]struct {
		change func(dir string) error
		want   string
	}{
		"unchanged": {func(string) error { return nil }, ""},
		"changed": {
			func(dir string) error { return os.WriteFile(filepath.Join(dir, "a"), []byte("x"), 0o600) }, "a is not as in checksums.txt",
		},
		"added": {
			func(dir string) error { return os.WriteFile(filepath.Join(dir, "b"), nil, 0o600) }, "b is not as in checksums.txt",
		},
		"removed":           {func(dir string) error { return os.Remove(filepath.Join(dir, "a")) }, "a of checksums.txt is missing"},
		"without checksums": {func(dir string) error { return os.Remove(filepath.Join(dir, checksumsName)) }, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			made := os.WriteFile(filepath.Join(dir, "a"), []byte("a"), 0o600)
			if err := errors.Join(made, writeChecksums(dir), c.change(dir)); err != nil {
				t.Fatal(err)
			}
			err := verifyChecksums(dir)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error is %v, want %q", err, c.want)
			}
		})
	}
}
