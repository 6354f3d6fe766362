package build

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

const localplaneModule = "github.com/node-authorizer/node-authorizer/test/localplane"

// pins is the module with the pinned versions, read from its folder.
type pins struct {
	dir string
	// versions has the versions by module path.
	versions map[string]string
	// linkerFlags are the flags for every program.
	linkerFlags string
	// sum depends on all versions and contents, the linker's flags and our own sources.
	sum string
}

// pinsDir finds the folder of the module with the pins. It is a separate module, so it
// cannot be embedded into this one. A program built in a checkout has the path of its
// source. One built with -trimpath does not, and then pinsDir runs the go command in the
// working directory, which works for tests of any module that requires localplane.
func pinsDir(ctx context.Context) (string, error) {
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) {
		dir := filepath.Join(filepath.Dir(file), "..", "..", "binaries")
		if isModule(dir) {
			return dir, nil
		}
	}
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", localplaneModule).Output()
	if err == nil {
		dir := filepath.Join(strings.TrimSpace(string(out)), "binaries")
		if isModule(dir) {
			return dir, nil
		}
	}
	return "", fmt.Errorf("find the folder test/localplane/binaries, which pins the versions of the control plane: "+
		"run from a checkout, in a module that replaces %s with its folder", localplaneModule)
}

func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

func readPins(ctx context.Context, dir string) (*pins, error) {
	p := &pins{dir: dir, versions: map[string]string{}}
	hash := sha256.New()
	sources, err := filepath.Glob(filepath.Join(dir, machineKubelet, "*.go"))
	if err != nil {
		return nil, fmt.Errorf("find the sources of %s: %w", machineKubelet, err)
	}
	for _, path := range append(sources, filepath.Join(dir, "go.mod"), filepath.Join(dir, "go.sum")) {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read the pinned versions: %w", err)
		}
		hash.Write(text)
	}
	cmd := exec.CommandContext(ctx, "go", "mod", "edit", "-json")
	cmd.Dir = dir
	out, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return nil, errors.New("the go command is not in PATH; it builds the control plane: install Go from https://go.dev/dl/")
	}
	if err != nil {
		return nil, fmt.Errorf("read the pinned versions in %s: %w", dir, err)
	}
	var mod struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		return nil, fmt.Errorf("read the pinned versions in %s: %w", dir, err)
	}
	for _, require := range mod.Require {
		p.versions[require.Path] = require.Version
	}
	for _, program := range Programs() {
		if p.versions[program.Module] == "" {
			return nil, fmt.Errorf("%s/go.mod does not require %s", dir, program.Module)
		}
	}
	flags, err := linkerFlags(p.versions[kubernetes])
	if err != nil {
		return nil, err
	}
	p.linkerFlags = flags
	hash.Write([]byte(flags))
	p.sum = fmt.Sprintf("%x", hash.Sum(nil)[:6])
	return p, nil
}

// key returns the name of the folder in the cache.
func (p *pins) key() string {
	return fmt.Sprintf("kubernetes-%s-etcd-%s-%s-%s-%s",
		p.versions[kubernetes], p.versions["go.etcd.io/etcd/server/v3"], p.sum, runtime.GOOS, runtime.GOARCH)
}
