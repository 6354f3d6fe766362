package setup

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write writes a file of a test.
func write(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode))
	if err != nil {
		t.Fatal(err)
	}
}

func TestJournalPutsBackFiles(t *testing.T) {
	dir := t.TempDir()
	manifest, added := filepath.Join(dir, "manifests", "a.yaml"), filepath.Join(dir, folder, "server", "key")
	for _, tc := range []struct {
		rule    string
		between func(t *testing.T)
		changed string
		want    string
	}{
		{"after two setups", func(*testing.T) {}, "", "before"},
		{"after a change of others", func(t *testing.T) { write(t, manifest, "others", 0o644) }, manifest, "before"},
		{
			"after kubeadm has written it again", func(t *testing.T) {
				write(t, manifest, "upgraded", 0o600)
				record(t, dir, manifest, "third")
			},
			"", "upgraded",
		},
		{"after it was removed", func(t *testing.T) {
			if err := os.Remove(manifest); err != nil {
				t.Fatal(err)
			}
		}, "", "before"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			write(t, manifest, "before", 0o640)
			record(t, dir, manifest, "first")
			record(t, dir, added, "a key")
			record(t, dir, manifest, "second")
			tc.between(t)
			j, err := ReadJournal(dir)
			if err != nil {
				t.Fatal(err)
			}
			changed, err := j.Changed(filepath.Join(dir, folder))
			if err != nil || strings.Join(changed, " ") != tc.changed {
				t.Errorf("changed are %v, %v", changed, err)
			}
			for i := range j.Files {
				if err := j.Files[i].restore(dir); err != nil {
					t.Fatal(err)
				}
			}
			if text, err := os.ReadFile(manifest); err != nil || string(text) != tc.want {
				t.Errorf("the manifest is %s, %v", text, err)
			}
			if info, err := os.Stat(manifest); err != nil || tc.want == "before" && info.Mode() != 0o640 {
				t.Errorf("the manifest has the mode %v, %v", info.Mode(), err)
			}
			if err := removeFolders(dir); err != nil {
				t.Fatal(err)
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
				t.Errorf("what is left is %v, %v", entries, err)
			}
		})
	}
}

// record records a file, and writes it.
func record(t *testing.T, dir, path, text string) {
	t.Helper()
	j, err := ReadJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	f := File{Path: path, Content: []byte(text), Mode: 0o600}
	if err := errors.Join(j.record([]File{f}), j.write(dir), replace(dir, f.entry())); err != nil {
		t.Fatal(err)
	}
}

func TestABrokenJournalIsAnError(t *testing.T) {
	dir := t.TempDir()
	write(t, journalPath(dir), "{", 0o600)
	if _, err := ReadJournal(dir); err == nil {
		t.Error("it is read as empty")
	}
}

// TestACrashAtEachFileCanBeUndone stops after each number of files, and puts back what the journal has.
func TestACrashAtEachFileCanBeUndone(t *testing.T) {
	files := kubeadm(t)
	for written := 0; ; written++ {
		dir := t.TempDir()
		for name, text := range files {
			write(t, filepath.Join(dir, name), text, 0o640)
		}
		before := tree(t, dir)
		o := options(Replace)
		o.Dir = dir
		p, err := Kubeadm(o, ReadFrom(dir, dir), &Journal{})
		if err != nil {
			t.Fatal(err)
		}
		if written > len(p.Files) {
			return
		}
		j := &Journal{Mode: Replace}
		if err := errors.Join(j.record(p.Files), j.write(dir)); err != nil {
			t.Fatal(err)
		}
		for i := range p.Files[:written] {
			if err := replace(dir, p.Files[i].entry()); err != nil {
				t.Fatal(err)
			}
		}
		if j, err = ReadJournal(dir); err != nil {
			t.Fatal(err)
		}
		if changed, err := j.Changed(filepath.Join(dir, folder)); err != nil || len(changed) > 0 {
			t.Errorf("after %d files, %v count as changed by others: %v", written, changed, err)
		}
		for i := range j.Files {
			if err := j.Files[i].restore(dir); err != nil {
				t.Fatal(err)
			}
		}
		if err := removeFolders(dir); err != nil {
			t.Fatal(err)
		}
		if got := tree(t, dir); !maps.Equal(got, before) {
			t.Errorf("after %d files, undo leaves %v, want %v", written, got, before)
		}
	}
}

// tree returns the files below a folder, with their modes.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			files[path] = ""
			return err
		}
		e, err := stateOf(path)
		if err != nil {
			return err
		}
		files[path] = e.Mode.String() + string(e.Before)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
