package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// `go install MODULE@VERSION` of the commit builds a program that says its version. The test compiles
// all packages of the module, so it runs only for a whole release.
func TestGoInstall(t *testing.T) {
	if os.Getenv("RELEASE_DIST") == "" {
		t.Skip("only for a whole release: make release-snapshot")
	}
	const path = "github.com/node-authorizer/node-authorizer"
	version := fmt.Sprintf("v0.0.1-test.%d", time.Now().UnixNano())
	proxy := t.TempDir()
	folder := filepath.Join(proxy, filepath.FromSlash(path), "@v")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	archive, err := os.Create(filepath.Join(folder, version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	committed := t.TempDir()
	command(t, root, nil, "bash", "-c", "set -o pipefail; git archive HEAD | tar -x -C "+committed)
	if err := zip.CreateFromDir(archive, module.Version{Path: path, Version: version}, committed); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		version + ".mod":  string(read(t, committed, "go.mod")),
		version + ".info": fmt.Sprintf(`{"Version": %q}`, version),
		"list":            version + "\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	settings := strings.Fields(command(t, ".", nil, "go", "env", "GOMODCACHE", "GOPROXY"))
	t.Cleanup(func() { removeModule(t, settings[0], path, version) })
	bin := t.TempDir()
	command(t, t.TempDir(), []string{
		"GOPROXY=file://" + proxy + "," + settings[1], "GONOSUMDB=" + path, "GOFLAGS=-modcacherw", "GOBIN=" + bin,
	}, "go", "install", path+"/cmd/node-authorizer@"+version)
	var said struct{ Version string }
	if err := json.Unmarshal([]byte(command(t, bin, nil, "./node-authorizer", "version", "-o", "json")), &said); err != nil {
		t.Fatal(err)
	}
	if said.Version != version {
		t.Errorf("the program says %s, want %s", said.Version, version)
	}
}

// removeModule removes a version from the cache of modules.
func removeModule(t *testing.T, cache, path, version string) {
	t.Helper()
	downloads := filepath.Join(cache, "cache", "download", filepath.FromSlash(path), "@v")
	found, err := filepath.Glob(filepath.Join(downloads, version+".*"))
	if err != nil {
		t.Error(err)
	}
	// The list of versions is fetched again when it is needed.
	for _, name := range append(found, filepath.Join(downloads, "list"), filepath.Join(cache, filepath.FromSlash(path)+"@"+version)) {
		if err := os.RemoveAll(name); err != nil {
			t.Error(err)
		}
	}
}
