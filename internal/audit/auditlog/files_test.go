package auditlog

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestFilesSortsByTimeOfWriting(t *testing.T) {
	for name, test := range map[string]struct {
		there, given, want []string
		leftOut            []string
	}{
		"the file that is being written comes last": {
			given: []string{"audit.log", "audit-2026-01-31T12-30-00.000.log"},
			want:  []string{"audit-2026-01-31T12-30-00.000.log", "audit.log"},
		},
		"rotated files are sorted by time, compressed or not": {
			given: []string{
				"audit.log", "audit-2026-02-01T00-00-00.000.log", "audit-2025-12-31T23-59-59.999.log.gz",
				"audit-2026-01-31T12-30-00.001.log.gz", "audit-2026-01-31T12-30-00.000.log",
			},
			want: []string{
				"audit-2025-12-31T23-59-59.999.log.gz", "audit-2026-01-31T12-30-00.000.log",
				"audit-2026-01-31T12-30-00.001.log.gz", "audit-2026-02-01T00-00-00.000.log", "audit.log",
			},
		},
		"a log whose name has no extension": {
			given: []string{"audit", "audit-2026-01-31T12-30-00.000"},
			want:  []string{"audit-2026-01-31T12-30-00.000", "audit"},
		},
		"different logs keep the order of the arguments": {
			given: []string{"b.log", "a.log", "b-2026-01-31T12-30-00.000.log"},
			want:  []string{"b-2026-01-31T12-30-00.000.log", "b.log", "a.log"},
		},
		"names without a valid time are separate logs": {
			given: []string{"audit-2026-01-31.log", "audit-2026-13-31T12-30-00.000.log", "audit.log"},
			want:  []string{"audit-2026-01-31.log", "audit-2026-13-31T12-30-00.000.log", "audit.log"},
		},
		"a file that is being compressed counts once": {
			given: []string{"audit-2026-01-31T12-30-00.000.log.gz", "audit-2026-01-31T12-30-00.000.log"},
			want:  []string{"audit-2026-01-31T12-30-00.000.log"},
			leftOut: []string{
				"DIR/audit-2026-01-31T12-30-00.000.log.gz is left out: " +
					"DIR/audit-2026-01-31T12-30-00.000.log is the same, and not compressed",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var paths []string
			for _, name := range test.given {
				path := filepath.Join(dir, name)
				if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
					t.Fatal(err)
				}
				paths = append(paths, path)
			}
			files, leftOut, err := Files(paths)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range files {
				got = append(got, filepath.Base(f.Path))
				if f.Size != 1 {
					t.Errorf("%s has size %d", f.Path, f.Size)
				}
			}
			for i := range leftOut {
				leftOut[i] = strings.ReplaceAll(leftOut[i], dir, "DIR")
			}
			if want, got := any(test.want), any(got); !reflect.DeepEqual(got, want) {
				t.Errorf("got\n%v, want\n%v", got, want)
			}
			if want, got := any(test.leftOut), any(leftOut); !reflect.DeepEqual(got, want) {
				t.Errorf("got\n%v, want\n%v", got, want)
			}
		})
	}
}

func TestFilesRejectsOtherPaths(t *testing.T) {
	dir := t.TempDir()
	for want, paths := range map[string][]string{
		"no audit log given: name its files, or - for standard input":                      nil,
		"stdin is given twice, and its requests would count twice":                         {"-", "-"},
		"read the audit log: DIR/none.log: no such file":                                   {filepath.Join(dir, "none.log")},
		"read the audit log: DIR is a folder: name its files, for example DIR/audit*.log*": {dir},
	} {
		_, _, err := Files(paths)
		if err == nil || strings.ReplaceAll(err.Error(), dir, "DIR") != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
