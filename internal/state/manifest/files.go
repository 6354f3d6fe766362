package manifest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/internal/filetext"
)

// File is one file to read.
type File struct {
	Name string // for messages
	Path string // "-" for standard input
	Size int64  // in bytes as stored; 0 when unknown
}

// Files lists the files of the paths, with folders walked in sorted order.
func Files(paths []string) ([]File, error) {
	if len(paths) == 0 {
		return nil, errors.New("no input given: name a file, a folder, or - for standard input")
	}
	var found []File
	for _, path := range paths {
		if path == "-" {
			if slices.ContainsFunc(found, func(in File) bool { return in.Path == "-" }) {
				return nil, errors.New("standard input (-) is given twice, but can be read only once")
			}
			found = append(found, File{Name: "stdin", Path: "-"})
			continue
		}
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("read %s: no such file or folder", path)
		case err != nil:
			return nil, fmt.Errorf("read input: %w", err)
		case !info.IsDir():
			found = append(found, File{Name: path, Path: path, Size: regularSize(info)})
			continue
		}
		files, err := folder(path)
		if err != nil {
			return nil, err
		}
		found = append(found, files...)
	}
	return found, nil
}

func regularSize(info fs.FileInfo) int64 {
	if info.Mode().IsRegular() {
		return info.Size()
	}
	return 0
}

// folder lists the files of a folder and its subfolders that are manifests or snapshots
// by their names. Hidden files and folders are left out.
func folder(root string) ([]File, error) {
	var found []File
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("read folder: %w", err)
		}
		if path != root && strings.HasPrefix(entry.Name(), ".") {
			if entry.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if entry.IsDir() || !isManifest(entry.Name()) && entry.Type()&fs.ModeSymlink == 0 {
			return nil
		}
		info, err := os.Stat(path) // follows links
		switch {
		case err != nil && entry.Type()&fs.ModeSymlink != 0:
			return fmt.Errorf("read %s: the link's target does not exist; remove it or name the files one by one", path)
		case err != nil:
			return fmt.Errorf("read folder: %w", err)
		case info.IsDir():
			return fmt.Errorf("read %s: links to folders are not followed; name the folder that it leads to", path)
		case !isManifest(entry.Name()):
			return nil
		case !info.Mode().IsRegular():
			return fmt.Errorf("read %s: not a regular file", path)
		}
		found = append(found, File{Name: path, Path: path, Size: info.Size()})
		return nil
	})
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("read %s: no manifests or snapshots in this folder (looked for names ending in %s)",
			root, strings.Join(manifestSuffixes(), ", "))
	}
	return found, err
}

func manifestSuffixes() []string {
	return []string{".yaml", ".yml", ".json", ".jsonl", ".ndjson", ".snapshot"}
}

// isManifest reports whether a file is a manifest or snapshot by its name, compressed
// or not.
func isManifest(name string) bool {
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst")
	return slices.Contains(manifestSuffixes(), filepath.Ext(name))
}

// stream is the text of a file.
type stream struct {
	*bufio.Reader
	file *filetext.Text
}

// Close closes the file.
func (s *stream) Close() error { return s.file.Close() }

// open opens a file, which may be compressed regardless of its name.
func (f File) open(stdin io.Reader) (*stream, error) {
	var file io.ReadCloser
	switch {
	case f.Path == "-" && stdin == nil:
		return nil, errors.New("read stdin: there is no standard input")
	case f.Path == "-":
		file = io.NopCloser(stdin)
	default:
		var err error
		if file, err = os.Open(f.Path); err != nil {
			return nil, fmt.Errorf("read input: %w", err)
		}
	}
	text, err := filetext.New(file)
	if err != nil {
		return nil, &Error{File: f.Name, Err: err}
	}
	s := &stream{Reader: bufio.NewReaderSize(text.Reader, windowSize), file: text}
	if err := s.skipByteOrderMark(f.Name); err != nil {
		return nil, errors.Join(err, text.Close())
	}
	return s, nil
}

// skipByteOrderMark skips the mark of UTF-8, and refuses UTF-16, which some shells
// write when output is redirected.
func (s *stream) skipByteOrderMark(name string) error {
	mark, err := s.Peek(3)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return &Error{File: name, Err: fmt.Errorf("read: %w", err)}
	case bytes.Equal(mark, []byte{0xef, 0xbb, 0xbf}):
		_, _ = s.Discard(3)
	case bytes.HasPrefix(mark, []byte{0xff, 0xfe}), bytes.HasPrefix(mark, []byte{0xfe, 0xff}):
		return &Error{File: name, Err: errors.New("text is UTF-16; save it as UTF-8")}
	}
	return nil
}
