package setup

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Diff returns what writing the files changes, as a unified diff without keys; empty if nothing changes. The files are
// written below a folder, which is empty for the node itself. A file that is not there yet is compared with the one of the node.
func Diff(below string, files []File) (string, error) {
	var text strings.Builder
	for i := range files {
		f := &files[i]
		now, err := stateOf(filepath.Join(below, f.Path))
		if err == nil && !now.Existed && filepath.IsAbs(f.Path) {
			now, err = stateOf(f.Path)
		}
		if err != nil {
			return "", err
		}
		switch {
		case now.Existed && bytes.Equal(now.Before, f.Content):
		case f.Secret:
			fmt.Fprintf(&text, "diff %s\n+ (a private key, not shown)\n", f.Path)
		default:
			text.Write(diff.Diff(f.Path, now.Before, f.Path, f.Content))
		}
	}
	return text.String(), nil
}

// Diff returns what a plan changes in the cluster, as a unified diff; empty if nothing changes.
func (c *Cluster) Diff(ctx context.Context, p *Plan, node string) (string, error) {
	members, err := c.Members(ctx)
	if err != nil {
		return "", err
	}
	members[node] = p.member()
	webhook, err := p.webhookFor(members)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, object := range append(p.Objects, webhook) {
		before, after, err := c.change(ctx, object, []string{metav1.DryRunAll})
		if err != nil {
			return "", err
		}
		name := object.GetKind() + " " + object.GetName()
		text.Write(diff.Diff(name, shown(before), name, shown(after)))
	}
	return text.String(), nil
}

// shown returns an object as a person would write it; nil for none.
func shown(object *unstructured.Unstructured) []byte {
	if object == nil {
		return nil
	}
	object = object.DeepCopy()
	for _, field := range []string{"managedFields", "resourceVersion", "uid", "generation", "creationTimestamp"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(object.Object, "status")
	text, err := yaml.Marshal(object.Object)
	if err != nil {
		panic(err) // it came as JSON
	}
	return text
}

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
