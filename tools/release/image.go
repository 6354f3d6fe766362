package main

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	// authoritiesPath is where Go looks for root certificates on Linux.
	authoritiesPath = "etc/ssl/certs/ca-certificates.crt"
	// imagesName is the file with the digests of the image, in the format of sha256sum.
	imagesName = "images.txt"
	// refAnnotation names a manifest of an OCI layout; nameAnnotation does so for containerd.
	refAnnotation  = "org.opencontainers.image.ref.name"
	nameAnnotation = "io.containerd.image.name"
)

// variant is a form of the image, as a target of deploy/Dockerfile.
type variant struct{ suffix, user string }

// The default user has no rights. The units and the DaemonSet of kops need root.
var variants = []variant{{"", "65532:65532"}, {"-root", "0:0"}}

// repository is where the image is published.
func (r *release) repository() string { return r.registry + "/" + programName }

func (r *release) imageName() string { return programName + "_" + r.version + "_image.tar" }

// writeImage writes one OCI layout with an index for each variant, as a tar file. An index has an
// image for each Linux platform: the program and the root certificates, on no base image.
func (r *release) writeImage(dir string) error {
	indexes, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	layers, err := r.layers()
	if err != nil {
		return err
	}
	var digests bytes.Buffer
	for _, v := range variants {
		index, err := r.index(v, layers)
		if err != nil {
			return err
		}
		digest, err := index.Digest()
		if err != nil {
			return err
		}
		tag := r.version + v.suffix
		name := r.repository() + ":" + tag
		fmt.Fprintf(&digests, "%s  %s\n", digest.Hex, name)
		names := layout.WithAnnotations(map[string]string{refAnnotation: tag, nameAnnotation: name})
		if err := indexes.AppendIndex(index, names); err != nil {
			return err
		}
	}
	if err := r.write(imagesName, digests.Bytes()); err != nil {
		return err
	}
	return r.writeLayout(dir)
}

// platformLayers are the layers of the image for one platform.
type platformLayers struct {
	platform
	layers []v1.Layer
}

func (r *release) layers() ([]platformLayers, error) {
	authorities, err := r.layer(entry{authoritiesPath, 0o644, authorities()})
	if err != nil {
		return nil, err
	}
	var all []platformLayers
	for _, b := range r.binaries {
		if b.os != "linux" {
			continue
		}
		content, err := os.ReadFile(b.path)
		if err != nil {
			return nil, err
		}
		program, err := r.layer(entry{programName, 0o755, content})
		if err != nil {
			return nil, err
		}
		all = append(all, platformLayers{b.platform, []v1.Layer{authorities, program}})
	}
	return all, nil
}

func (r *release) layer(files ...entry) (v1.Layer, error) {
	var archive bytes.Buffer
	if err := writeTar(&archive, files, r.time); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}

// authorities returns Mozilla's root certificates as PEM. Roots that are trusted with a constraint
// are left out, because a PEM file cannot express it.
func authorities() []byte {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			// Writing to a buffer does not fail.
			_ = pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return text.Bytes()
}

func (r *release) index(v variant, layers []platformLayers) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, l := range layers {
		image, err := r.image(v, l)
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: l.os, Architecture: l.arch}},
		})
	}
	return mutate.Annotations(index, r.labels()).(v1.ImageIndex), nil
}

func (r *release) image(v variant, l platformLayers) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.ConfigFile(image, &v1.ConfigFile{
		OS: l.os, Architecture: l.arch, Created: v1.Time{Time: r.time},
		Config: v1.Config{User: v.user, Entrypoint: []string{"/" + programName}, Labels: r.labels()},
		RootFS: v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, err
	}
	for _, layer := range l.layers {
		history := v1.History{Created: v1.Time{Time: r.time}, CreatedBy: "tools/release"}
		if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: history}); err != nil {
			return nil, err
		}
	}
	return mutate.Annotations(image, r.labels()).(v1.Image), nil
}

// labels are the standard annotations of OCI.
func (r *release) labels() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       programName,
		"org.opencontainers.image.description": description,
		"org.opencontainers.image.source":      projectURL,
		"org.opencontainers.image.licenses":    license,
		"org.opencontainers.image.version":     r.version,
		"org.opencontainers.image.revision":    r.revision,
		"org.opencontainers.image.created":     r.time.Format("2006-01-02T15:04:05Z"),
	}
}

// writeLayout packs the folder of an OCI layout.
func (r *release) writeLayout(dir string) error {
	var files []entry
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error { // sorted
		if err != nil || e.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		files = append(files, entry{filepath.ToSlash(strings.TrimPrefix(path, dir+string(filepath.Separator))), 0o644, content})
		return err
	})
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	if err := writeTar(&archive, files, r.time); err != nil {
		return err
	}
	return r.write(r.imageName(), archive.Bytes())
}
