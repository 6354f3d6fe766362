package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const checksumsName = "checksums.txt"

// entry is a file in an archive.
type entry struct {
	name    string
	mode    int64
	content []byte
}

// writeArchives writes one archive for each platform: zip for Windows, tar.gz for others. krew
// reads no links in archives, so they contain none.
func (r *release) writeArchives() error {
	shared, err := r.sharedFiles()
	if err != nil {
		return err
	}
	for _, b := range r.binaries {
		program, err := os.ReadFile(b.path)
		if err != nil {
			return err
		}
		write, extension, files := writeTarball, ".tar.gz", slices.Concat([]entry{{b.program(), 0o755, program}}, shared, r.manuals)
		if b.os == "windows" { // which has no manual pages
			write, extension, files = writeZip, ".zip", files[:len(files)-len(r.manuals)]
		}
		var archive bytes.Buffer
		if err := write(&archive, files, r.time); err != nil {
			return err
		}
		name := r.fileName(b.platform, extension)
		if err := r.write(name, archive.Bytes()); err != nil {
			return err
		}
		r.archives = append(r.archives, name)
	}
	return nil
}

// sharedFiles returns the files that each archive has beside the program.
func (r *release) sharedFiles() ([]entry, error) {
	var files []entry
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		content, err := r.read(name)
		if err != nil {
			return nil, err
		}
		files = append(files, entry{name, 0o644, content})
	}
	return files, nil
}

func writeTarball(w io.Writer, files []entry, at time.Time) error {
	compressed, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := writeTar(compressed, files, at); err != nil {
		return err
	}
	return compressed.Close()
}

// writeTar writes files that belong to root.
func writeTar(w io.Writer, files []entry, at time.Time) error {
	archive := tar.NewWriter(w)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: at, Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(f.content); err != nil {
			return err
		}
	}
	return archive.Close()
}

func writeZip(w io.Writer, files []entry, at time.Time) error {
	archive := zip.NewWriter(w)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at}
		header.SetMode(os.FileMode(f.mode))
		file, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := file.Write(f.content); err != nil {
			return err
		}
	}
	return archive.Close()
}

// writeChecksums writes the SHA-256 of each file in a folder, in the format of sha256sum.
func writeChecksums(dir string) error {
	var sums bytes.Buffer
	entries, err := os.ReadDir(dir) // sorted
	if err != nil {
		return err
	}
	for _, e := range entries {
		sum, err := checksum(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%s  %s\n", sum, e.Name())
	}
	return os.WriteFile(filepath.Join(dir, checksumsName), sums.Bytes(), 0o644)
}

func checksum(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// verifyChecksums compares the files in a folder with its checksums: none may be missing or added.
func verifyChecksums(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, checksumsName))
	if err != nil {
		return err
	}
	expected := map[string]string{}
	for line := range strings.Lines(string(text)) {
		sum, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		expected[name] = sum
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == checksumsName {
			continue
		}
		sum, err := checksum(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		if expected[e.Name()] != sum {
			return fmt.Errorf("%s: %s is not as in %s", dir, e.Name(), checksumsName)
		}
		delete(expected, e.Name())
	}
	for name := range expected {
		return fmt.Errorf("%s: %s of %s is missing", dir, name, checksumsName)
	}
	return nil
}
