package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/node-authorizer/node-authorizer/test/e2e/attack"
)

// matrix is the folder of the report.
const matrix = "../../docs/evidence/attack-matrix/"

// TestAttackMatrix sends requests with a stolen kubelet certificate to both control
// planes. Both must allow and refuse the same requests, with the same status codes.
func TestAttackMatrix(t *testing.T) {
	reports, err := attack.Compare(t.Context(), shop.sender(t), ours.sender(t))
	if err != nil {
		t.Fatal(err)
	}
	addReasons(t, reports)

	sent, refused := 0, 0
	for _, report := range reports {
		for _, row := range report.Rows {
			sent++
			if row.InTree.Refused() {
				refused++
			}
			if !row.Agrees() {
				t.Errorf("%s: %s: %s %s: in-tree %d (%s), ours %d (%s)",
					report.Title, row.Attack, row.Method, row.Path, row.InTree.Status, row.InTree.Message, row.Ours.Status,
					row.Ours.Message)
			}
		}
	}
	t.Logf("%d requests, %d of them refused by both", sent, refused)
	if sent < 200 || refused < 150 {
		t.Errorf("%d requests, %d refused: that is not the matrix", sent, refused)
	}
	for name, text := range attack.Markdown(reports) {
		golden(t, matrix+name, text)
	}
}

// addReasons reads our reasons from the audit log. An allowed watch is logged when it
// ends.
func addReasons(t *testing.T, reports []attack.Report) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		events, err := ours.audit.Events(0)
		if err != nil {
			return false, err
		}
		reasons, complete := attack.ReasonsOf(events), true
		for _, report := range reports {
			for i := range report.Rows {
				complete = report.Rows[i].Explain(reasons) && complete
			}
		}
		return complete, nil
	})
	if err != nil {
		t.Errorf("read why node-authorizer decided from the audit log: %v", err)
	}
}

// golden compares text with a file, or writes it with UPDATE_GOLDEN=1.
func golden(t *testing.T, path, text string) {
	t.Helper()
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s does not match the answers: %s\nwrite it with UPDATE_GOLDEN=1 and read the diff", path,
			firstDifference(string(want), text))
	}
}

// firstDifference returns the first line in which two texts differ.
func firstDifference(want, got string) string {
	wants, gots := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(wants), len(gots)) {
		var a, b string
		if i < len(wants) {
			a = wants[i]
		}
		if i < len(gots) {
			b = gots[i]
		}
		if a != b {
			return fmt.Sprintf("line %d is\n\t%s\nand should be\n\t%s", i+1, a, b)
		}
	}
	return "the texts are equal"
}
