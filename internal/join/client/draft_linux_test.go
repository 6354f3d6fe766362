package client

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// broken is a draft with one step that fails.
type broken struct {
	draft
	step string
}

var errBroken = errors.New("input/output error")

func (b broken) Write(p []byte) (int, error) {
	if b.step == "write" {
		_, _ = b.draft.Write(p[:len(p)/2])
		return len(p) / 2, errBroken
	}
	return b.draft.Write(p)
}

func (b broken) Sync() error {
	if b.step == "sync" {
		return errBroken
	}
	return b.draft.Sync()
}

func (b broken) link(path string) error {
	if b.step == "link" {
		return errBroken
	}
	return b.draft.link(path)
}

// eachDraft runs a test with each way to create a draft.
func eachDraft(t *testing.T, test func(t *testing.T, begin newDraft)) {
	t.Run("unnamed", func(t *testing.T) { test(t, draftsHere()[0]) })
	t.Run("named", func(t *testing.T) { test(t, beginNamed) })
}

func TestAFailingDiskLeavesNoFile(t *testing.T) {
	eachDraft(t, func(t *testing.T, begin newDraft) {
		for _, step := range []string{"write", "sync", "link"} {
			m := newMachine(t, grant)
			c, err := newClient(m.options)
			if err != nil {
				t.Fatal(err)
			}
			c.drafts = []newDraft{func(folder string) (draft, error) {
				d, err := begin(folder)
				return broken{d, step}, err
			}}
			_, err = c.join(t.Context())
			if !errors.Is(err, errBroken) || !strings.HasPrefix(err.Error(), "writing "+m.options.Kubeconfig+": ") {
				t.Errorf("%s: error %v", step, err)
			}
			m.checkNoToken(err)
			if got := m.files(); len(got) > 0 {
				t.Errorf("%s: the folder has %q", step, got)
			}
		}
	})
}

func TestAFullDiskLeavesNoFile(t *testing.T) {
	eachDraft(t, func(t *testing.T, begin newDraft) {
		m := newMachine(t, grant)
		folder := m.path("kubelet")
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount("tmpfs", folder, "tmpfs", 0, "size=64k"); err != nil {
			t.Skipf("mounting a small file system, which needs root: %v", err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(folder, unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
		filling, err := os.Create(folder + "/filling")
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = filling.Write(make([]byte, 4096))
		}
		filling.Close()
		c, err := newClient(m.options)
		if err != nil {
			t.Fatal(err)
		}
		c.drafts = []newDraft{begin}
		_, err = c.join(t.Context())
		if !errors.Is(err, unix.ENOSPC) {
			t.Errorf("error %v", err)
		}
		m.checkNoToken(err)
		if got := m.files(); !slices.Equal(got, []string{"filling"}) {
			t.Errorf("the folder has %q", got)
		}

		if err := os.Remove(folder + "/filling"); err != nil {
			t.Fatal(err)
		}
		if result, err := m.run(); err != nil || result.NodeName != "worker-1" {
			t.Errorf("with free space: got %+v, error %v", result, err)
		}
	})
}

func TestADraftDoesNotReplaceAFile(t *testing.T) {
	eachDraft(t, func(t *testing.T, begin newDraft) {
		folder := t.TempDir()
		path := folder + "/file"
		for i, want := range []error{nil, fs.ErrExist} {
			d, err := begin(folder)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := d.Write([]byte{byte('0' + i)}); err != nil {
				t.Fatal(err)
			}
			if err := d.link(path); !errors.Is(err, want) {
				t.Errorf("error %v, want %v", err, want)
			}
			d.discard()
		}
		if content, err := os.ReadFile(path); err != nil || string(content) != "0" {
			t.Errorf("the file has %q, error %v", content, err)
		}
	})
}

func TestAFolderWithoutUnnamedFilesGetsANamedDraft(t *testing.T) {
	m := newMachine(t, grant)
	c, err := newClient(m.options)
	if err != nil {
		t.Fatal(err)
	}
	c.drafts = []newDraft{func(string) (draft, error) { return nil, unix.EOPNOTSUPP }, beginNamed}
	if result, err := c.join(t.Context()); err != nil || result.NodeName != "worker-1" {
		t.Errorf("got %+v, error %v", result, err)
	}
	if got := m.files(); !slices.Equal(got, []string{"bootstrap-kubeconfig"}) {
		t.Errorf("the folder has %q", got)
	}
}

func TestAReadOnlyFolderIsFoundBeforeATokenIsRequested(t *testing.T) {
	m := newMachine(t, grant)
	c, err := newClient(m.options)
	if err != nil {
		t.Fatal(err)
	}
	c.drafts = []newDraft{func(string) (draft, error) { return nil, unix.EROFS }}
	if _, err := c.join(t.Context()); !errors.Is(err, unix.EROFS) {
		t.Errorf("error %v", err)
	}
	if len(m.asked) > 0 {
		t.Errorf("the service was asked %q", m.asked)
	}
}
