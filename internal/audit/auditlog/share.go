package auditlog

import (
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

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
