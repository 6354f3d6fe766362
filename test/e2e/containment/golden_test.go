package containment

import (
	"os"
	"path/filepath"
	"testing"
)

// compareGolden compares a text with a file of the folder docs. UPDATE_GOLDEN=1 writes the file.
func compareGolden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(root, "docs", "evidence", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		must(t, os.WriteFile(path, []byte(text), 0o644))
		return
	}
	golden, err := os.ReadFile(path)
	must(t, err)
	if string(golden) != text {
		got := filepath.Join(t.TempDir(), name)
		must(t, os.WriteFile(got, []byte(text), 0o600))
		t.Errorf("docs/evidence/%s is not what the API server answers now; run make containment-matrix. Now:\n%s", name, text)
	}
}
