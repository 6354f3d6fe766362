package client

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// draftsHere are the ways to create a draft, the best first. NFS, for example, does not
// support files without a name.
func draftsHere() []newDraft { return []newDraft{beginUnnamed, beginNamed} }

// unnamed is a draft without a name (open(2), O_TMPFILE). If the process is killed, the
// draft and the token are gone.
type unnamed struct {
	*os.File
	// handle is the path under which the file can be linked.
	handle string
}

func beginUnnamed(folder string) (draft, error) {
	fd, err := unix.Open(folder, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, &os.PathError{Op: "create a file in", Path: folder, Err: err}
	}
	u := unnamed{os.NewFile(uintptr(fd), filepath.Join(folder, "(unnamed)")), fmt.Sprintf("/proc/self/fd/%d", fd)}
	if _, err := os.Lstat(u.handle); err != nil {
		u.discard()
		return nil, err
	}
	return u, nil
}

func (u unnamed) link(path string) error {
	if err := unix.Linkat(unix.AT_FDCWD, u.handle, unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW); err != nil {
		return &os.PathError{Op: "link", Path: path, Err: err}
	}
	return syncFolder(filepath.Dir(path))
}

func (u unnamed) discard() { u.Close() }

// syncFolder flushes a new name in a folder to the disk.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}
