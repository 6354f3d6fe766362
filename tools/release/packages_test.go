package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/blakesmith/ar"
	"github.com/sassoftware/go-rpmutils"
)

// packaged are the files of a package, by path. A link has its target as content.
type packaged map[string]string

func (p packaged) check(t *testing.T, name string, of platform) {
	t.Helper()
	files, _ := unpackedArchive(t, of)
	want := packaged{
		"/usr/bin/node-authorizer":                 string(files[0].content),
		"/usr/bin/kubectl-node_authorizer":         "node-authorizer",
		"/usr/share/doc/node-authorizer/copyright": string(files[1].content),

		"/usr/share/man/man1/kubectl-node_authorizer.1.gz": "node-authorizer.1.gz",
	}
	for _, page := range manualPages(files) {
		path := "/usr/share/" + page.name + ".gz"
		content, err := io.ReadAll(gunzip(t, []byte(p[path])))
		if err != nil || !bytes.Equal(content, page.content) {
			t.Errorf("%s: %s is not the page of the archive: %v", name, path, err)
		}
		want[path] = p[path]
	}
	more, err := packagedFiles(built.source)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range more {
		if strings.HasSuffix(name, f.format) {
			want[f.path] = string(f.content)
		}
	}
	// zsh reads another folder in Debian than elsewhere.
	zsh := map[string]string{".deb": "/usr/share/zsh/vendor-completions/", ".rpm": "/usr/share/zsh/site-functions/"}[filepath.Ext(name)]
	if !strings.HasPrefix(p[zsh+"_"+programName], "#compdef "+programName) {
		t.Errorf("%s has no completion in %s", name, zsh)
	}
	for path, content := range want {
		if p[path] != content {
			t.Errorf("%s: %s is not as expected", name, path)
		}
	}
	if len(p) != len(want) {
		t.Errorf("%s has %d files, want %d", name, len(p), len(want))
	}
}

// packageVersion is the version of packages. A tilde sorts before everything: a prerelease goes before
// its release.
func packageVersion() string { return strings.Replace(built.number(), "-", "~", 1) }

func TestDebianPackages(t *testing.T) {
	for _, p := range linuxPlatforms() {
		name := built.fileName(p, ".deb")
		found, control := packaged{}, ""
		for reader := ar.NewReader(bytes.NewReader(read(t, built.out, name))); ; {
			header, err := reader.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			content, err := io.ReadAll(reader)
			if err != nil {
				t.Fatal(err)
			}
			switch header.Name {
			case "control.tar.gz":
				for _, f := range untar(t, gunzip(t, content)) {
					if f.name == "./control" {
						control = string(f.content)
					}
				}
			case "data.tar.gz":
				found = debianFiles(t, content)
			}
		}
		lines := []string{"Package: node-authorizer\n", "Architecture: " + p.arch + "\n", "Version: " + packageVersion() + "\n"}
		for _, line := range lines {
			if !strings.Contains(control, line) {
				t.Errorf("%s: %q is missing in\n%s", name, line, control)
			}
		}
		found.check(t, name, p)
	}
}

func TestRPMPackages(t *testing.T) {
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}
	for _, p := range linuxPlatforms() {
		name := built.fileName(p, ".rpm")
		rpm, err := rpmutils.ReadRpm(bytes.NewReader(read(t, built.out, name)))
		if err != nil {
			t.Fatal(err)
		}
		nevra, err := rpm.Header.GetNEVRA()
		if err != nil {
			t.Fatal(err)
		}
		if nevra.Name != programName || nevra.Version != packageVersion() || nevra.Arch != arch[p.arch] {
			t.Errorf("%s is %v", name, nevra)
		}
		reader, err := rpm.PayloadReaderExtended()
		if err != nil {
			t.Fatal(err)
		}
		found := packaged{}
		for {
			file, err := reader.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			content, err := io.ReadAll(reader)
			if err != nil {
				t.Fatal(err)
			}
			if found[file.Name()] = string(content); file.Linkname() != "" {
				found[file.Name()] = file.Linkname()
			}
			if int64(file.Mtime()) != built.time.Unix() {
				t.Errorf("%s: %s is of %d", name, file.Name(), file.Mtime())
			}
		}
		found.check(t, name, p)
	}
}

// debianFiles returns the files and links of data.tar.gz, which names folders too.
func debianFiles(t *testing.T, content []byte) packaged {
	t.Helper()
	found := packaged{}
	for reader := tar.NewReader(gunzip(t, content)); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		switch path := strings.TrimPrefix(header.Name, "."); header.Typeflag {
		case tar.TypeReg:
			found[path] = string(content)
		case tar.TypeSymlink:
			found[path] = header.Linkname
		}
	}
}
