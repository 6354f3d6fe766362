package localplane

import (
	"os"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func startPlane(t *testing.T, options Options) *Plane {
	t.Helper()
	options.Progress = t.Output()
	plane, err := Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	return plane
}

func addNode(t *testing.T, plane *Plane, name string, options NodeOptions) *Node {
	t.Helper()
	node, err := plane.AddNode(t.Context(), name, options)
	if err != nil {
		t.Fatal(err)
	}
	return node
}

func nodeClient(t *testing.T, node *Node) kubernetes.Interface {
	t.Helper()
	config, err := node.Config()
	if err != nil {
		t.Fatal(err)
	}
	return clientFor(t, config)
}

func clientFor(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func wantForbidden(t *testing.T, err error) {
	t.Helper()
	if !apierrors.IsForbidden(err) {
		t.Errorf("got %v, want a refusal", err)
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
