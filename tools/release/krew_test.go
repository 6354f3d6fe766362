package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/mod/semver"
	"sigs.k8s.io/yaml"
)

// The rules come from krew's documentation and its validation of manifests.
func TestKrewManifest(t *testing.T) {
	var manifest plugin
	if err := yaml.UnmarshalStrict(read(t, built.out, krewName), &manifest); err != nil {
		t.Fatal(err)
	}
	if manifest.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || manifest.Kind != "Plugin" {
		t.Errorf("the manifest is a %s of %s", manifest.Kind, manifest.APIVersion)
	}
	if !regexp.MustCompile(`^[\w-]+$`).MatchString(manifest.Metadata.Name) || manifest.Metadata.Name != programName {
		t.Errorf("the plugin is called %s", manifest.Metadata.Name)
	}
	spec := manifest.Spec
	if !semver.IsValid(spec.Version) || spec.Version != built.version {
		t.Errorf("the version is %s", spec.Version)
	}
	if spec.ShortDescription == "" || len(spec.ShortDescription) > 50 || strings.ContainsAny(spec.ShortDescription, "\r\n") {
		t.Errorf("the short description is %q", spec.ShortDescription)
	}
	if len(spec.Platforms) != len(built.platforms) {
		t.Fatalf("the manifest has %d platforms, want %d", len(spec.Platforms), len(built.platforms))
	}
	for i, p := range spec.Platforms {
		checkKrewPlatform(t, p, built.platforms[i])
	}
}

// checkKrewPlatform does what krew does to install a plugin: it takes the archive by its address and
// checksum, and links to a file of it.
func checkKrewPlatform(t *testing.T, p pluginPlatform, want platform) {
	t.Helper()
	labels := p.Selector.MatchLabels
	if len(labels) != 2 || labels["os"] != want.os || labels["arch"] != want.arch {
		t.Errorf("the selector for %s is %v", want, labels)
	}
	name, ok := strings.CutPrefix(p.URI, "https://github.com/node-authorizer/node-authorizer/releases/download/"+built.version+"/")
	if !ok {
		t.Fatalf("the address for %s is %s", want, p.URI)
	}
	sum, err := checksum(filepath.Join(built.out, name))
	if err != nil || sum != p.SHA256 {
		t.Errorf("the checksum of %s is %s, %v; want %s", name, sum, err, p.SHA256)
	}
	files, _ := unpackedArchive(t, want)
	for _, f := range files {
		if f.name == p.Bin && f.mode&0o111 != 0 {
			return
		}
	}
	t.Errorf("%s has no program %s", name, p.Bin)
}
