package auditlog

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Stdin is the path that means standard input.
const Stdin = "-"

// File is a file to read.
type File struct {
	// Path is the path as the user gave it; [Stdin] for standard input.
	Path string
	// Size is the stored size in bytes; 0 if unknown.
	Size int64
}

func (f File) Name() string {
	if f.Path == Stdin {
		return "stdin"
	}
	return f.Path
}

// Files sorts files by the time at which they were written. It returns one line for each
// file that it skips.
//
// When kube-apiserver rotates audit.log (--audit-log-maxsize), it renames it to
// audit-2026-01-31T12-30-00.000.log, and may compress that to a name that ends in
// .log.gz (--audit-log-compress). The rotated files of a log are sorted by these times; the
// file that is being written comes last. Different logs, such as the logs of several API
// servers, keep the order of the arguments.
//
// If a compressed file and its original both exist, the compressed one is skipped: it is
// still being written.
func Files(paths []string) (files []File, leftOut []string, err error) {
	if len(paths) == 0 {
		return nil, nil, errors.New("no audit log given: name its files, or - for standard input")
	}
	var found []rotated
	logs := map[string]int{}
	seen := map[string]bool{}
	for _, path := range paths {
		if seen[filepath.Clean(path)] {
			return nil, nil, fmt.Errorf("%s is given twice, and its requests would count twice", File{Path: path}.Name())
		}
		seen[filepath.Clean(path)] = true
		file, err := statFile(path)
		if err != nil {
			return nil, nil, err
		}
		r := rotationOf(file)
		if _, known := logs[r.log]; !known {
			logs[r.log] = len(logs)
		}
		r.order = logs[r.log]
		found = append(found, r)
	}
	found = slices.DeleteFunc(found, func(r rotated) bool {
		plain, compressed := strings.CutSuffix(r.file.Path, compressedSuffix)
		twice := compressed && seen[filepath.Clean(plain)]
		if twice {
			leftOut = append(leftOut, fmt.Sprintf("%s is left out: %s is the same, and not compressed", r.file.Path, plain))
		}
		return twice
	})
	slices.SortStableFunc(found, rotated.compare)
	for _, r := range found {
		files = append(files, r.file)
	}
	return files, leftOut, nil
}

func statFile(path string) (File, error) {
	if path == Stdin {
		return File{Path: path}, nil
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return File{}, fmt.Errorf("read the audit log: %s: no such file", path)
	case err != nil:
		return File{}, fmt.Errorf("read the audit log: %w", err)
	case info.IsDir():
		example := filepath.Join(path, "audit*.log*")
		return File{}, fmt.Errorf("read the audit log: %s is a folder: name its files, for example %s", path, example)
	}
	file := File{Path: path}
	if info.Mode().IsRegular() {
		file.Size = info.Size()
	}
	return file, nil
}

const (
	compressedSuffix = ".gz"
	// rotationTime is the format of the time, in UTC, that kube-apiserver puts into the
	// names of rotated files.
	rotationTime = "2006-01-02T15-04-05.000"
)

// rotated is a file with its position in a log.
type rotated struct {
	file File
	// log is the path of the log that kube-apiserver writes.
	log   string
	order int
	// at is the time of the rotation; zero for the file that is being written.
	at time.Time
}

func rotationOf(file File) rotated {
	plain := strings.TrimSuffix(filepath.Clean(file.Path), compressedSuffix)
	extension := filepath.Ext(plain)
	stem := strings.TrimSuffix(plain, extension)
	// If the log's name has no extension, the dot in the time is not one either.
	for _, split := range [][2]string{{stem, extension}, {plain, ""}} {
		if cut := len(split[0]) - len(rotationTime) - 1; cut >= 0 && split[0][cut] == '-' {
			if at, err := time.Parse(rotationTime, split[0][cut+1:]); err == nil {
				return rotated{file: file, log: split[0][:cut] + split[1], at: at}
			}
		}
	}
	return rotated{file: file, log: plain}
}

func (r rotated) compare(other rotated) int {
	written := func(r rotated) int {
		if r.at.IsZero() {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(r.order, other.order), cmp.Compare(written(r), written(other)), r.at.Compare(other.at))
}
