package chain

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// folder returns a folder with the kubeconfigs that the files in testdata name.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"webhook.kubeconfig":       kubeconfig("https://127.0.0.1:1/authorize", ""),
		"no-yaml.kubeconfig":       "clusters: [",
		"empty.kubeconfig":         "apiVersion: v1\nkind: Config\n",
		"no-authority.kubeconfig":  kubeconfig("https://127.0.0.1:1/authorize", "certificate-authority: "+filepath.Join(dir, "none.crt")),
		"bad-authority.kubeconfig": kubeconfig("https://127.0.0.1:1/authorize", "certificate-authority-data: Tm90aGluZw=="),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// kubeconfig returns one for a webhook, with an additional line about the server.
func kubeconfig(address, line string) string {
	return `apiVersion: v1
kind: Config
clusters:
- name: webhook
  cluster:
    server: ` + address + `
    ` + line + `
users:
- name: apiserver
contexts:
- name: webhook
  context: {cluster: webhook, user: apiserver}
current-context: webhook
`
}

// configuration reads a file of testdata with $FOLDER replaced.
func configuration(t *testing.T, path, dir string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return []byte(strings.ReplaceAll(string(text), "$FOLDER", dir))
}

// TestInvalidConfigurations compares the problems of each file with its golden file,
// which UPDATE_GOLDEN=1 writes.
func TestInvalidConfigurations(t *testing.T) {
	files, err := filepath.Glob("testdata/invalid/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	dir := folder(t)
	for _, path := range files {
		name := strings.TrimSuffix(path, ".yaml")
		t.Run(filepath.Base(name), func(t *testing.T) {
			_, err := Parse(configuration(t, path, dir))
			var problems Problems
			if !errors.As(err, &problems) {
				t.Fatalf("got %v, want problems", err)
			}
			got := strings.ReplaceAll(err.Error(), dir, "$FOLDER") + "\n"
			if os.Getenv("UPDATE_GOLDEN") != "" {
				if err := os.WriteFile(name+".txt", []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(name + ".txt")
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%swant\n%s", got, want)
			}
		})
	}
}

func TestValidConfigurations(t *testing.T) {
	text := configuration(t, "testdata/valid/all.yaml", folder(t))
	for _, version := range []string{"v1", "v1beta1", "v1alpha1"} {
		t.Run(version, func(t *testing.T) {
			text := strings.ReplaceAll(string(text), "k8s.io/v1\n", "k8s.io/"+version+"\n")
			c, err := Parse([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			want := []string{"first.example.com", NameNode, NameRBAC, "second.example.com", NameAlwaysDeny, NameAlwaysAllow}
			if got := c.Names(); !slices.Equal(got, want) {
				t.Errorf("authorizers are %q, want %q", got, want)
			}
			if !c.Asks(NameNode) || c.Asks("node") {
				t.Error("Node is known by its type")
			}
		})
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	dir := t.TempDir()
	_, err := Load(filepath.Join(dir, "none.yaml"))
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "none.yaml") {
		t.Errorf("got %v", err)
	}
	bad := filepath.Join(dir, "bad.yaml")
	if err := os.WriteFile(bad, []byte("kind: Pod\napiVersion: v1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Load(bad)
	if problems := (Problems{}); !errors.As(err, &problems) || !strings.Contains(err.Error(), bad) {
		t.Errorf("got %v", err)
	}
}
