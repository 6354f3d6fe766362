package main

import (
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const krewName = programName + ".krew.yaml"

// plugin is the manifest of a plugin of kubectl, as krew reads it: kind Plugin of
// krew.googlecontainertools.github.com/v1alpha2.
type plugin struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        pluginMetadata `json:"metadata"`
	Spec            pluginSpec     `json:"spec"`
}

type pluginMetadata struct {
	Name string `json:"name"`
}

type pluginSpec struct {
	Version          string           `json:"version"`
	Homepage         string           `json:"homepage"`
	ShortDescription string           `json:"shortDescription"`
	Description      string           `json:"description"`
	Platforms        []pluginPlatform `json:"platforms"`
}

type pluginPlatform struct {
	Selector metav1.LabelSelector `json:"selector"`
	URI      string               `json:"uri"`
	SHA256   string               `json:"sha256"`
	// Bin is the program in the archive, to which krew links.
	Bin string `json:"bin"`
}

func (r *release) writeKrew() error {
	manifest := plugin{
		TypeMeta: metav1.TypeMeta{APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin"},
		Metadata: pluginMetadata{Name: programName},
		Spec: pluginSpec{
			Version: r.version, Homepage: projectURL, ShortDescription: description,
			Description: `Decides what the credential of a Kubernetes node may read and write, exactly as
Kubernetes does, from a live cluster or from files, and names the path that
grants each right. "doctor" finds settings that undo Node authorization,
"attack-paths" says what the holder of a node can come to own.
`,
		},
	}
	for i, b := range r.binaries {
		sum, err := checksum(filepath.Join(r.out, r.archives[i]))
		if err != nil {
			return err
		}
		manifest.Spec.Platforms = append(manifest.Spec.Platforms, pluginPlatform{
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{"os": b.os, "arch": b.arch}},
			URI:      projectURL + "/releases/download/" + r.version + "/" + r.archives[i],
			SHA256:   sum, Bin: b.program(),
		})
	}
	text, err := yaml.Marshal(manifest)
	if err != nil {
		return err
	}
	return r.write(krewName, text)
}
