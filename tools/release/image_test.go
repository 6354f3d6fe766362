package main

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// indexes returns the indexes of the image's OCI layout by tag.
func indexes(t *testing.T) map[string]v1.ImageIndex {
	t.Helper()
	dir := t.TempDir()
	if err := unpack(filepath.Join(built.out, built.imageName()), dir); err != nil {
		t.Fatal(err)
	}
	all, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := all.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	byTag := map[string]v1.ImageIndex{}
	for _, d := range manifest.Manifests {
		tag := d.Annotations["org.opencontainers.image.ref.name"]
		if name := d.Annotations["io.containerd.image.name"]; name != "ghcr.io/node-authorizer/node-authorizer:"+tag {
			t.Errorf("the name of %s is %s", tag, name)
		}
		if byTag[tag], err = all.ImageIndex(d.Digest); err != nil {
			t.Fatal(err)
		}
	}
	return byTag
}

// dockerfile returns the facts of deploy/Dockerfile about its two images: the paths of files, the entry
// point, the users of the default image and of that for root.
func dockerfile(t *testing.T) (paths []string, entrypoint, user, root string) {
	t.Helper()
	text := string(read(t, "../../deploy/Dockerfile"))
	for _, m := range regexp.MustCompile(`(?m)^COPY .* (\S+)$`).FindAllStringSubmatch(text, -1) {
		paths = append(paths, strings.TrimPrefix(m[1], "/"))
	}
	users := regexp.MustCompile(`(?m)^USER (\S+)$`).FindAllStringSubmatch(text, -1)
	return paths, regexp.MustCompile(`ENTRYPOINT \["(.*)"\]`).FindStringSubmatch(text)[1], users[1][1], users[0][1]
}

// The image is built as by deploy/Dockerfile, for each Linux platform.
func TestImage(t *testing.T) {
	paths, entrypoint, user, root := dockerfile(t)
	byTag := indexes(t)
	if len(byTag) != 2 {
		t.Errorf("there are %d indexes", len(byTag))
	}
	for tag, wantUser := range map[string]string{built.version: user, built.version + "-root": root} {
		index := byTag[tag]
		if index == nil {
			t.Fatalf("there is no index %s", tag)
		}
		if err := validate.Index(index); err != nil {
			t.Errorf("%s: %v", tag, err)
		}
		digest, err := index.Digest()
		if err != nil {
			t.Fatal(err)
		}
		line := digest.Hex + "  ghcr.io/node-authorizer/node-authorizer:" + tag + "\n"
		if !strings.Contains(string(read(t, built.out, imagesName)), line) {
			t.Errorf("%s does not have %q", imagesName, line)
		}
		manifest, err := index.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		var platforms []platform
		for _, d := range manifest.Manifests {
			p := platform{d.Platform.OS, d.Platform.Architecture}
			platforms = append(platforms, p)
			image, err := index.Image(d.Digest)
			if err != nil {
				t.Fatal(err)
			}
			checkConfig(t, image, p, entrypoint, wantUser)
			files := imageFiles(t, image)
			var names []string
			for _, f := range files {
				names = append(names, f.name)
			}
			if !slices.Equal(names, paths) {
				t.Errorf("%s of %s has the files %q, want %q", tag, p, names, paths)
			}
			inArchive, _ := unpackedArchive(t, p)
			if program := files[1]; program.mode != 0o755 || !bytes.Equal(program.content, inArchive[0].content) {
				t.Errorf("%s of %s has another program than the archive, with mode %o", tag, p, program.mode)
			}
			checkAuthorities(t, files[0])
		}
		if !slices.Equal(platforms, linuxPlatforms()) {
			t.Errorf("%s is for %v, want %v", tag, platforms, linuxPlatforms())
		}
	}
}

func checkConfig(t *testing.T, image v1.Image, p platform, entrypoint, user string) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.OS != p.os || config.Architecture != p.arch || config.Config.User != user ||
		!slices.Equal(config.Config.Entrypoint, []string{entrypoint}) || !config.Created.Equal(built.time) {
		t.Errorf("the configuration for %s is %+v", p, config)
	}
	if got := config.Config.Labels["org.opencontainers.image.revision"]; got != built.revision {
		t.Errorf("the revision is %s", got)
	}
}

func imageFiles(t *testing.T, image v1.Image) (files []entry) {
	t.Helper()
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	for _, layer := range layers {
		content, err := layer.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, untar(t, content)...)
		if err := content.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// checkAuthorities looks for the root certificates of AWS, and for roots that are trusted only with a
// constraint.
func checkAuthorities(t *testing.T, file entry) {
	t.Helper()
	if file.mode != 0o644 {
		t.Errorf("the mode of %s is %o", file.name, file.mode)
	}
	constrained := map[string]bool{}
	for root := range bundle.Roots() {
		constrained[string(root.Certificate)] = root.Constraint != nil
	}
	var names []string
	for rest := file.content; len(rest) > 0; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			t.Fatalf("%s ends with %d bytes that are no certificate", file.name, len(rest))
		}
		if bad, known := constrained[string(block.Bytes)]; bad || !known {
			t.Errorf("a certificate is trusted with a constraint: %v; known: %v", bad, known)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, certificate.Subject.CommonName)
	}
	for _, name := range []string{
		"Amazon Root CA 1", "Amazon Root CA 2", "Amazon Root CA 3", "Amazon Root CA 4",
		"Starfield Services Root Certificate Authority - G2",
	} {
		if !slices.Contains(names, name) {
			t.Errorf("%s is missing among %d certificates", name, len(names))
		}
	}
}
