package auditlog

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/filetext"
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

// open opens a file. It detects compression by the content, not by the name.
func (f File) open(stdin io.Reader) (*filetext.Text, error) {
	var file io.ReadCloser
	switch {
	case f.Path == Stdin && stdin == nil:
		return nil, errors.New("read the audit log: there is no standard input")
	case f.Path == Stdin:
		file = io.NopCloser(stdin)
	default:
		var err error
		if file, err = os.Open(f.Path); err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
	}
	text, err := filetext.New(file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", f.Name(), err)
	}
	return text, nil
}

// MaxShares is the maximum number of parts into which files are divided.
const MaxShares = 10_000

// Expand replaces patterns such as audit*.log* by the files that match, sorted. A program that
// no shell starts needs this. A path of a file that exists is no pattern.
func Expand(paths []string) ([]string, error) {
	var all []string
	for _, path := range paths {
		if _, err := os.Lstat(path); err == nil || !strings.ContainsAny(path, "*?[") {
			all = append(all, path)
			continue
		}
		matches, err := filepath.Glob(path)
		if err != nil {
			return nil, fmt.Errorf("pattern %s: %w", path, err)
		}
		if len(matches) == 0 {
			return nil, fmt.Errorf("no file matches %s", path)
		}
		slices.Sort(matches)
		all = append(all, matches...)
	}
	return all, nil
}

// Share returns the part of the files with an index from 0 to count-1. The parts follow each
// other and are of about the same size, so that most requests have both of their stages in
// one part. Programs that see the same files agree on the parts.
func Share(files []File, index, count int) []File {
	var total, before uint64
	for _, f := range files {
		total += weight(f)
	}
	from, to := len(files), len(files)
	for i, f := range files {
		// The middle of a file decides.
		high, low := bits.Mul64(2*before+weight(f), uint64(count))
		part, _ := bits.Div64(high, low, 2*total)
		if int(part) >= index {
			from = min(from, i)
		}
		if int(part) > index {
			to = min(to, i)
		}
		before += weight(f)
	}
	return files[from:max(from, to)]
}

// weight is the size of a file, and of an empty file 1, so that these are divided too.
func weight(f File) uint64 { return uint64(max(f.Size, 0)) + 1 }
