package setup

import (
	"archive/tar"
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
	"strings"
	"syscall"
)

// Journal has the former content of each changed file. It is written before the files are.
type Journal struct {
	// Mode, Port and Containment are the last options; Mode is empty if nothing is installed.
	Mode        Mode    `json:"mode"`
	Port        int     `json:"port"`
	Containment bool    `json:"containment,omitempty"`
	Files       []Entry `json:"files"`
}

// Entry is a changed file.
type Entry struct {
	Path string `json:"path"`
	// Existed, Before, Mode, User and Group describe the file before the change.
	Existed bool        `json:"existed"`
	Before  []byte      `json:"before,omitempty"`
	Mode    fs.FileMode `json:"mode,omitempty"`
	User    int         `json:"user,omitempty"`
	Group   int         `json:"group,omitempty"`
	// Written are the SHA-256 of all contents that setup has written.
	Written []string `json:"written"`
}

func (j *Journal) entry(path string) *Entry {
	if i := slices.IndexFunc(j.Files, func(e Entry) bool { return e.Path == path }); i >= 0 {
		return &j.Files[i]
	}
	return nil
}

// original returns the manifest without the server: the one in the journal, or the current one if kubeadm or somebody else
// has written it since without the server.
func (j *Journal) original(path string, current []byte, ours string) ([]byte, error) {
	e := j.entry(path)
	switch {
	case e != nil && e.Existed && e.wrote(current):
		return e.Before, nil
	case names(current, ours):
		return nil, fmt.Errorf("%s names files of node-authorizer, and was changed since setup wrote it: remove the change, or run "+
			"node-authorizer setup undo --force, and try again", path)
	}
	return current, nil
}

// names reports whether a manifest has a flag with a file of a folder.
func names(manifest []byte, folder string) bool {
	return bytes.Contains(manifest, []byte("="+folder+"/"))
}

func (e *Entry) wrote(content []byte) bool { return slices.Contains(e.Written, sum(content)) }

func sum(content []byte) string {
	hash := sha256.Sum256(content)
	return hex.EncodeToString(hash[:])
}

func (j *Journal) record(files []File) error {
	for i := range files {
		f := &files[i]
		now, err := stateOf(f.Path)
		if err != nil {
			return err
		}
		e := j.entry(f.Path)
		if e == nil {
			j.Files = append(j.Files, *now)
			e = &j.Files[len(j.Files)-1]
		} else if now.Existed && !e.wrote(now.Before) && !bytes.Equal(now.Before, e.Before) {
			*e = *now // somebody else has replaced the file since
		}
		if !e.wrote(f.Content) {
			e.Written = append(e.Written, sum(f.Content))
		}
	}
	return nil
}

// stateOf returns the entry of a file as it is. A link is an error, because setup would replace it and could not put it back.
func stateOf(path string) (*Entry, error) {
	e := &Entry{Path: path}
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return e, nil
	}
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is a link or another special file: replace it with a regular file, which setup can put back", path)
	}
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	header, err := tar.FileInfoHeader(info, "") // it has the owner on all systems
	if err != nil {
		return nil, err
	}
	e.Existed, e.Before, e.Mode, e.User, e.Group = true, content, info.Mode().Perm(), header.Uid, header.Gid
	return e, nil
}

// restore puts back all files, the last one first, and ends with the first failure: kube-apiserver's manifest is the last file,
// and needs the others until it is put back.
func (j *Journal) restore(dir string) error {
	for i := range slices.Backward(j.Files) {
		if err := j.Files[i].restore(dir); err != nil {
			return fmt.Errorf("put back %s: %w; correct this, and run node-authorizer setup undo", j.Files[i].Path, err)
		}
	}
	return nil
}

// Changed returns the files that are neither as setup has written them nor as they were before. kube-apiserver's manifest becomes
// the original if it names no file of ours, because kubeadm has written it again: its image may be newer.
func (j *Journal) Changed(ours string) ([]string, error) {
	var changed []string
	for i := range j.Files {
		e := &j.Files[i]
		now, err := stateOf(e.Path)
		if err != nil {
			return nil, err
		}
		switch {
		case !now.Existed || e.wrote(now.Before) || e.Existed && bytes.Equal(now.Before, e.Before):
		case strings.HasSuffix(e.Path, apiServerManifest) && !names(now.Before, ours):
			*e = *now
		default:
			changed = append(changed, e.Path)
		}
	}
	return changed, nil
}

func journalPath(dir string) string { return filepath.Join(dir, folder, "setup", "journal.json") }

// ReadJournal reads the journal of a node. It is empty if there is none.
func ReadJournal(dir string) (*Journal, error) {
	j := &Journal{}
	text, err := os.ReadFile(journalPath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return j, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the journal of setup: %w", err)
	}
	if err := json.Unmarshal(text, j); err != nil {
		return nil, fmt.Errorf("%s is not the journal that setup wrote: restore it from a backup", journalPath(dir))
	}
	return j, nil
}

func (j *Journal) write(dir string) error {
	text, err := json.MarshalIndent(j, "", "  ")
	if err != nil {
		return err
	}
	return replace(dir, &Entry{Path: journalPath(dir), Before: append(text, '\n'), Mode: 0o600, User: os.Geteuid(), Group: os.Getegid()})
}

func (f *File) entry() *Entry {
	return &Entry{Path: f.Path, Existed: true, Before: f.Content, Mode: f.Mode, User: f.Owner, Group: f.Owner}
}

// replace writes a file atomically, as the entry has it. The temporary file is not in the folder of manifests, in which the
// kubelet reads each file.
func replace(dir string, e *Entry) error {
	scratch := filepath.Join(dir, folder, "setup")
	if err := errors.Join(makeFolder(scratch, 0), makeFolder(filepath.Dir(e.Path), e.User)); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(scratch, "partial-")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name())
	defer temporary.Close()
	if _, err := temporary.Write(e.Before); err != nil {
		return err
	}
	if err := errors.Join(temporary.Chmod(e.Mode), give(temporary.Name(), e.User, e.Group), temporary.Sync()); err != nil {
		return err
	}
	return errors.Join(temporary.Close(), os.Rename(temporary.Name(), e.Path))
}

// give changes the owner. Only root can, and only root can write /etc/kubernetes: others write a copy, which belongs to them.
func give(path string, user, group int) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return os.Chown(path, user, group)
}

// makeFolder makes a folder of a user. A container sees it without the folders above.
func makeFolder(dir string, user int) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return give(dir, user, user)
}

// restore puts a file back as it was, and removes it if there was none.
func (e *Entry) restore(dir string) error {
	if e.Existed {
		now, err := stateOf(e.Path)
		same := err == nil && now.Existed && bytes.Equal(now.Before, e.Before)
		if same && now.Mode == e.Mode && now.User == e.User && now.Group == e.Group {
			return nil
		}
		return replace(dir, e)
	}
	if err := os.Remove(e.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// removeFolders removes the journal, and the folders of setup that have no other files.
func removeFolders(dir string) error {
	if err := os.RemoveAll(filepath.Join(dir, folder, "setup")); err != nil {
		return err
	}
	for _, name := range []string{"server", "apiserver", ""} {
		err := os.Remove(filepath.Join(dir, folder, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTEMPTY) {
			return err
		}
	}
	return nil
}
