package installed

import (
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/test/localplane/manifests"
)

// TestScopesForWellKnownAgentsAreAccepted applies each file of scopes/ as it is.
func TestScopesForWellKnownAgentsAreAccepted(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(root, "scopes", "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("there are no scopes: %v", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			objects, err := manifests.Read(path)
			if err != nil || len(objects) != 1 {
				t.Fatalf("the file has %d objects: %v", len(objects), err)
			}
			if _, err := containment(t, scopes).Create(t.Context(), objects[0], metav1.CreateOptions{
				DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict,
			}); err != nil {
				t.Error(err)
			}
		})
	}
}
