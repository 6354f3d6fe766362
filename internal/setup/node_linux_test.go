package setup

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
)

// TestAFullDiskLeavesKubeAPIServerAsItWas makes the folder of kubeadm larger page by page, until setup succeeds in it.
func TestAFullDiskLeavesKubeAPIServerAsItWas(t *testing.T) {
	m := newMachine(t)
	files := tree(t, m.dir)
	failures := 0
	for pages := 8; ; pages += 2 {
		mount(t, m.dir, pages)
		for name, text := range kubeadm(t) {
			write(t, m.path(name), text, 0o640)
		}
		before := tree(t, m.dir)
		if len(before) != len(files) {
			t.Fatalf("the folder has %d files and folders, want %d", len(before), len(files))
		}
		err := m.setup(t.Context(), Observe)
		if err == nil {
			break
		}
		failures++
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("with %d pages: %v", pages, err)
		}
		m.unchanged(before)
		if left := m.left(); len(left) > 0 {
			t.Errorf("with %d pages, the cluster still has %v", pages, left)
		}
	}
	if failures < 5 {
		t.Errorf("setup failed with %d sizes only", failures)
	}
}

// mount mounts an empty file system with a number of pages in place of the one that was mounted before.
func mount(t *testing.T, dir string, pages int) {
	t.Helper()
	_ = syscall.Unmount(dir, 0)
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", pages*os.Getpagesize())); err != nil {
		t.Skipf("a small file system cannot be mounted: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, 0) })
}
