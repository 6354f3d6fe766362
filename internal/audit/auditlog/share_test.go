package auditlog

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestSharesAreTheFilesInOrder(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 6))
		var files []File
		var total, largest int64
		for i := range random.IntN(40) {
			f := File{Path: fmt.Sprint(i), Size: random.Int64N(1 << (1 + random.IntN(40)))}
			files, total, largest = append(files, f), total+f.Size+1, max(largest, f.Size+1)
		}
		count := 1 + random.IntN(20)
		var all []File
		for index := range count {
			share := Share(files, index, count)
			all = append(all, share...)
			var size int64
			for _, f := range share {
				size += f.Size + 1
			}
			if most := total/int64(count) + largest + 1; size > most {
				t.Fatalf("seed %d: part %d of %d has %d bytes, want at most %d", seed, index, count, size, most)
			}
		}
		if !slices.Equal(all, files) {
			t.Fatalf("seed %d: the %d parts have\n%v, want\n%v", seed, count, all, files)
		}
	}
}

func TestSharesOfVeryLargeFiles(t *testing.T) {
	files := []File{{Path: "a", Size: math.MaxInt64 / 8}, {Path: "b", Size: math.MaxInt64 / 8}}
	for index, want := range []string{"a", "b"} {
		if got := Share(files, index, 2); len(got) != 1 || got[0].Path != want {
			t.Errorf("part %d is %v", index, got)
		}
	}
}

func TestPatternsAreExpanded(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"b.log", "a.log", "x.txt", "odd[1].log"} {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for pattern, want := range map[string]string{
		"?.log":      "a.log b.log",
		"a.log":      "a.log",
		"gone.log":   "gone.log", // opening it explains
		"odd[1].log": "odd[1].log",
	} {
		got, err := Expand([]string{filepath.Join(folder, pattern)})
		for i := range got {
			got[i] = filepath.Base(got[i])
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: got %v, %v, want %s", pattern, got, err, want)
		}
	}
	for _, pattern := range []string{"*.gz", "[a"} {
		if got, err := Expand([]string{filepath.Join(folder, pattern)}); err == nil {
			t.Errorf("%s: got %v", pattern, got)
		}
	}
}
