package client

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// draft is a file that is being written, in its final folder.
type draft interface {
	Write([]byte) (int, error)
	// Sync flushes the content to the disk.
	Sync() error
	// link gives the file its name. If the name is taken, the error is fs.ErrExist, and
	// the other file is not changed.
	link(path string) error
	// discard closes the draft. The file is lost unless it was linked.
	discard()
}

// newDraft creates a draft in a folder, readable by its owner alone.
type newDraft func(folder string) (draft, error)

// exists reports whether the kubeconfig exists already.
func exists(path string) (bool, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); err == nil {
			return false, fmt.Errorf("%s is a symbolic link to a file that does not exist: "+
				"remove it or the machine cannot join", path)
		}
		return false, nil
	}
	switch {
	case err != nil:
		return false, fmt.Errorf("looking for a bootstrap kubeconfig: %w", err)
	case !info.Mode().IsRegular():
		return false, fmt.Errorf("%s is not a file", path)
	case info.Size() == 0:
		return false, fmt.Errorf("%s exists but is empty: remove it to let this machine join", path)
	}
	return true, nil
}

// draft creates the draft in the best way that its folder supports. It creates the folder
// if there is none.
func (c *client) draft() (draft, error) {
	folder := filepath.Dir(c.Kubeconfig)
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return nil, fmt.Errorf("making the folder of the bootstrap kubeconfig: %w", err)
	}
	var failed error
	for _, begin := range c.drafts {
		d, err := begin(folder)
		if err == nil {
			return d, nil
		}
		failed = err
	}
	return nil, fmt.Errorf("writing a bootstrap kubeconfig into %s: %w", folder, failed)
}

// publish writes the content and gives the file its name, in one step. It reports whether
// the file existed before.
func publish(d draft, path string, content []byte) (existed bool, err error) {
	if _, err = d.Write(content); err == nil {
		err = d.Sync()
	}
	if err == nil {
		err = d.link(path)
	}
	if errors.Is(err, fs.ErrExist) {
		// A file that appeared in the meantime is treated as one that existed before.
		if existed, failed := exists(path); existed || failed != nil {
			return existed, failed
		}
	}
	if err != nil {
		return false, fmt.Errorf("writing %s: %w; run this again when it can be written", path, err)
	}
	return false, nil
}

// named is a draft with a temporary name. A killed process leaves it behind.
type named struct{ *os.File }

func beginNamed(folder string) (draft, error) {
	file, err := os.CreateTemp(folder, ".bootstrap-kubeconfig-*")
	if err != nil {
		return nil, err
	}
	return named{file}, nil
}

func (n named) link(path string) error {
	if err := os.Link(n.Name(), path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

func (n named) discard() {
	n.Close()
	os.Remove(n.Name())
}
