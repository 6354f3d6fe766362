package setup

import (
	"bytes"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Output returns the files of a plan and its objects as files, for a folder that is copied to the node: cluster.yaml is
// applied before the server starts, webhook.yaml when kube-apiserver has its files.
func (p *Plan) Output() ([]File, error) {
	webhook, err := p.webhookFor(map[string]Member{"": p.member()})
	if err != nil {
		return nil, err
	}
	files := p.Files
	for _, f := range []struct {
		name    string
		objects []*unstructured.Unstructured
	}{{"cluster.yaml", p.Objects}, {"webhook.yaml", []*unstructured.Unstructured{webhook}}} {
		var text bytes.Buffer
		for _, object := range f.objects {
			document, err := yaml.Marshal(object.Object)
			if err != nil {
				return nil, err
			}
			text.WriteString("---\n")
			text.Write(document)
		}
		files = append(files, File{Path: f.name, Content: text.Bytes(), Mode: 0o644})
	}
	return files, nil
}

// WriteTo writes files below a folder.
func WriteTo(dir string, files []File) error {
	for i := range files {
		f := &files[i]
		path := filepath.Join(dir, f.Path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, f.Content, f.Mode); err != nil {
			return err
		}
	}
	return nil
}
