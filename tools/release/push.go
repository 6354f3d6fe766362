package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/authn/github"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/registry"
)

// push sends the files of a release to a registry, with the credentials of `docker login`, or, for
// GitHub's registry, of GITHUB_TOKEN.
type push struct {
	out, registry string
	log           io.Writer
}

var keychain = authn.NewMultiKeychain(authn.DefaultKeychain, github.Keychain)

func (p *push) push(ctx context.Context) error {
	if err := verifyChecksums(p.out); err != nil {
		return err
	}
	if err := p.pushImage(ctx); err != nil {
		return fmt.Errorf("pushing the image: %w", err)
	}
	if err := p.pushChart(ctx); err != nil {
		return fmt.Errorf("pushing the chart: %w", err)
	}
	return nil
}

// only returns the one file of the release whose name matches.
func (p *push) only(pattern string) (string, error) {
	found, err := filepath.Glob(filepath.Join(p.out, pattern))
	if err != nil {
		return "", err
	}
	if len(found) != 1 {
		return "", fmt.Errorf("%s has %d files %s, want 1", p.out, len(found), pattern)
	}
	return found[0], nil
}

// pushImage pushes each index of the OCI layout under its tag.
func (p *push) pushImage(ctx context.Context) error {
	archive, err := p.only("*_image.tar")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "layout")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := unpack(archive, dir); err != nil {
		return err
	}
	indexes, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return err
	}
	manifest, err := indexes.IndexManifest()
	if err != nil {
		return err
	}
	for _, d := range manifest.Manifests {
		if err := p.pushIndex(ctx, indexes, d); err != nil {
			return err
		}
	}
	return nil
}

func (p *push) pushIndex(ctx context.Context, indexes v1.ImageIndex, d v1.Descriptor) error {
	tag, err := name.NewTag(p.registry + "/" + programName + ":" + d.Annotations[refAnnotation])
	if err != nil {
		return err
	}
	index, err := indexes.ImageIndex(d.Digest)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.log, "%s@%s\n", tag, d.Digest)
	return remote.WriteIndex(tag, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(keychain))
}

// pushChart pushes the chart as Helm does, with the time of the chart's files.
func (p *push) pushChart(ctx context.Context) error {
	archive, err := p.only("*.tgz")
	if err != nil {
		return err
	}
	content, err := os.ReadFile(archive)
	if err != nil {
		return err
	}
	chart, err := loader.LoadArchive(bytes.NewReader(content))
	if err != nil {
		return err
	}
	client, err := p.helm(ctx)
	if err != nil {
		return err
	}
	ref := fmt.Sprintf("%s/charts/%s:%s", p.registry, chart.Metadata.Name, chart.Metadata.Version)
	_, err = client.Push(content, ref)
	return err
}

// helm returns Helm's client, with the credentials that the image is pushed with.
func (p *push) helm(ctx context.Context) (*registry.Client, error) {
	repository, err := name.NewRepository(p.registry + "/charts")
	if err != nil {
		return nil, err
	}
	authenticator, err := authn.Resolve(ctx, keychain, repository)
	if err != nil {
		return nil, err
	}
	credentials, err := authn.Authorization(ctx, authenticator)
	if err != nil {
		return nil, err
	}
	options := []registry.ClientOption{registry.ClientOptWriter(p.log)}
	if credentials.Username != "" {
		options = append(options, registry.ClientOptBasicAuth(credentials.Username, credentials.Password))
	}
	if repository.Scheme() == "http" { // on this machine
		options = append(options, registry.ClientOptPlainHTTP())
	}
	return registry.NewClient(options...)
}

// unpack unpacks a tar file that writeTar has made.
func unpack(path, dir string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	for archive := tar.NewReader(file); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !filepath.IsLocal(header.Name) {
			return fmt.Errorf("%s: %s is outside the folder", path, header.Name)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			return err
		}
		target := filepath.Join(dir, header.Name)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(target, content, 0o644); err != nil {
			return err
		}
	}
}
