package setup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// Journal has what each changed file was before. It is written before the files are.
type Journal struct {
	Files []Entry `json:"files"`
	// Options are the last ones.
	Mode Mode `json:"mode"`
	Port int  `json:"port"`
	// Address is where kube-apiserver listens on this node.
	Address string `json:"address"`
}

// Entry is a changed file.
type Entry struct {
	Path string `json:"path"`
	// Existed, Before, Mode and Owner describe the file before the change.
	Existed bool        `json:"existed"`
	Before  []byte      `json:"before,omitempty"`
	Mode    fs.FileMode `json:"mode,omitempty"`
	Owner   int         `json:"owner,omitempty"`
	// Written are the SHA-256 of what setup has written.
	Written []string `json:"written"`
}

func (j *Journal) entry(path string) *Entry {
	if i := slices.IndexFunc(j.Files, func(e Entry) bool { return e.Path == path }); i >= 0 {
		return &j.Files[i]
	}
	return nil
}

// original returns the manifest without the server: the one in the journal, or the current one if kubeadm or somebody
// else has written it since, without the server.
func (j *Journal) original(path string, current []byte, ours string) ([]byte, error) {
	e := j.entry(path)
	switch {
	case e != nil && e.Existed && e.wrote(current):
		return e.Before, nil
	case bytes.Contains(current, []byte("="+ours+"/")):
		return nil, fmt.Errorf("%s names files of node-authorizer, and was changed since setup wrote it: restore the manifest as it was "+
			"without node-authorizer, or run node-authorizer setup undo --force, and try again", path)
	}
	return current, nil
}

func (e *Entry) wrote(content []byte) bool { return slices.Contains(e.Written, sum(content)) }

func sum(content []byte) string {
	hash := sha256.Sum256(content)
	return hex.EncodeToString(hash[:])
}

// record adds the files that are about to be written.
func (j *Journal) record(files []File) error {
	for _, f := range files {
		current, err := os.ReadFile(f.Path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		e := j.entry(f.Path)
		if e == nil {
			j.Files = append(j.Files, Entry{Path: f.Path})
			e = &j.Files[len(j.Files)-1]
		}
		if len(e.Written) == 0 || err == nil && !e.wrote(current) {
			*e = Entry{Path: f.Path, Existed: err == nil, Before: current}
			if info, err := os.Stat(f.Path); err == nil {
				e.Mode, e.Owner = info.Mode().Perm(), owner(info)
			}
		}
		if !e.wrote(f.Content) {
			e.Written = append(e.Written, sum(f.Content))
		}
	}
	return nil
}

func owner(info fs.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid)
	}
	return 0
}

// Changed returns the files that are neither as setup has written them nor as they were before.
func (j *Journal) Changed() ([]string, error) {
	var changed []string
	for i := range j.Files {
		e := &j.Files[i]
		content, err := os.ReadFile(e.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if e.Existed {
				changed = append(changed, e.Path)
			}
		case err != nil:
			return nil, err
		case !e.wrote(content) && !(e.Existed && bytes.Equal(content, e.Before)):
			changed = append(changed, e.Path)
		}
	}
	return changed, nil
}

func journalPath(root string) string { return filepath.Join(root, folder, "setup", "journal.json") }

// ReadJournal reads the journal of a node. It is empty if there is none.
func ReadJournal(root string) (*Journal, error) {
	j := &Journal{}
	text, err := os.ReadFile(journalPath(root))
	if errors.Is(err, fs.ErrNotExist) {
		return j, nil
	}
	if err == nil {
		err = json.Unmarshal(text, j)
	}
	if err != nil {
		return nil, fmt.Errorf("read the journal of setup: %w", err)
	}
	return j, nil
}

func (j *Journal) write(root string) error {
	text, err := json.MarshalIndent(j, "", "  ")
	if err != nil {
		return err
	}
	return replace(root, File{Path: journalPath(root), Content: append(text, '\n'), Mode: 0o600})
}

// replace writes a file atomically. The temporary file is in the folder above the kubelet's folder of manifests, which
// reads each file in it.
func replace(root string, f File) error {
	if err := makeFolder(f); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(root, ".node-authorizer-")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name())
	defer temporary.Close()
	if _, err := temporary.Write(f.Content); err != nil {
		return err
	}
	if err := errors.Join(temporary.Chmod(f.Mode), temporary.Sync()); err != nil {
		return err
	}
	if f.Owner != os.Geteuid() {
		if err := temporary.Chown(f.Owner, f.Owner); err != nil {
			return fmt.Errorf("%w; run this as root", err)
		}
	}
	if err := temporary.Close(); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), f.Path)
}

// makeFolder makes the folder of a file. The server's folder belongs to the server.
func makeFolder(f File) error {
	dir := filepath.Dir(f.Path)
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if f.Owner == os.Geteuid() {
		return nil
	}
	// The server must reach its folder through the one above, which has no secrets itself.
	return errors.Join(os.Chmod(filepath.Dir(dir), 0o711), os.Chown(dir, f.Owner, f.Owner))
}

// restore puts a file back as it was, and removes it if there was none.
func (e *Entry) restore(root string) error {
	if e.Existed {
		current, err := os.ReadFile(e.Path)
		if err == nil && bytes.Equal(current, e.Before) {
			return nil
		}
		return replace(root, File{Path: e.Path, Content: e.Before, Mode: e.Mode, Owner: e.Owner})
	}
	if err := os.Remove(e.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// remove removes the journal and the folders that are empty then.
func (j *Journal) remove(root string) error {
	if err := os.Remove(journalPath(root)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, name := range []string{"server", "apiserver", "setup", ""} {
		// A folder with files of others stays.
		if err := os.Remove(filepath.Join(root, folder, name)); err != nil && !errors.Is(err, fs.ErrNotExist) &&
			!errors.Is(err, syscall.ENOTEMPTY) {
			return err
		}
	}
	return nil
}

// ReadFrom returns a Read of a folder of kubeadm.
func ReadFrom(root string) Read {
	return func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(root, name)) }
}
