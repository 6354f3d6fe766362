package build

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
)

func TestPinsAreFound(t *testing.T) {
	dir, err := pinsDir(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p, err := readPins(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	key := p.key()
	for _, part := range []string{"kubernetes-" + p.versions[kubernetes], "etcd-v3."} {
		if !strings.Contains(key, part) {
			t.Errorf("the key %s of the cache does not name %s", key, part)
		}
	}
}

func TestKeyDependsOnTheSums(t *testing.T) {
	dir, err := pinsDir(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	other := t.TempDir()
	keyWith := func(sum string) string {
		for name, text := range map[string][]byte{"go.mod": mod, "go.sum": []byte(sum)} {
			if err := os.WriteFile(filepath.Join(other, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		p, err := readPins(t.Context(), other)
		if err != nil {
			t.Fatal(err)
		}
		return p.key()
	}
	if one, two := keyWith("one"), keyWith("two"); one == two {
		t.Errorf("the key is %s with either go.sum", one)
	}
}

func TestLinkerFlagsSetTheVersion(t *testing.T) {
	flags, err := linkerFlags("v1.37.1")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"k8s.io/component-base/version.gitVersion=v1.37.1",
		"k8s.io/component-base/version.gitMajor=1",
		"k8s.io/component-base/version.gitMinor=37",
	} {
		if !strings.Contains(flags, want) {
			t.Errorf("%q is not in %s", want, flags)
		}
	}
	if _, err := linkerFlags("latest"); err == nil {
		t.Error("an invalid version was accepted")
	}
}

func TestSecondBuildWaitsForTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "lock")
		var progress bytes.Buffer
		unlock, err := lock(t.Context(), path, &progress)
		if err != nil {
			t.Fatal(err)
		}
		locked := make(chan error)
		go func() {
			unlock, err := lock(context.WithoutCancel(t.Context()), path, &progress)
			if err == nil {
				unlock()
			}
			locked <- err
		}()
		synctest.Wait()
		if !strings.Contains(progress.String(), "waiting") {
			t.Errorf("there is no message about waiting: %q", progress.String())
		}
		unlock()
		if err := <-locked; err != nil {
			t.Error(err)
		}
	})
}

func TestWaitForBuildEndsWithTheContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := lock(ctx, path, &bytes.Buffer{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
