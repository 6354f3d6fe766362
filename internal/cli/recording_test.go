package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/testing/recording"
)

// TestRecording runs the commands of the recording in the README and compares what they print
// with it. UPDATE_GOLDEN=1 records it again.
func TestRecording(t *testing.T) {
	scenes := []recording.Scene{
		{
			Comment: "May the node of the payments read the key of the card processor?",
			Command: "node-authorizer can-i get secret/card-processor -n payments --node pay-1 --from shop.snapshot",
		},
		{
			Comment: "The web node may not. Why?",
			Command: "node-authorizer explain get secret/card-processor -n payments --node web-1 --from shop.snapshot",
		},
		{
			Comment: "What does an attacker on the web node reach?",
			Command: "node-authorizer reach web-1 --from shop.snapshot",
		},
		{
			Comment: "Somebody wants to install a log agent. What would nodes reach that they do not reach now?",
			Command: "node-authorizer diff --from shop.snapshot --with agent.yaml",
		},
		{
			Comment: "Which change to it closes the path?",
			Command: "node-authorizer diff --from shop.snapshot --with agent.yaml --with role.yaml",
		},
	}
	golden, err := filepath.Abs("../../docs/images/recording.svg")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(withExamples(t))
	t.Setenv("KUBECONFIG", "none")
	for i := range scenes {
		scenes[i].Output = printed(t, scenes[i].Command)
	}
	var picture bytes.Buffer
	if err := recording.Write(&picture, "node-authorizer answers what nodes may do", scenes, 1); err != nil {
		t.Fatal(err)
	}
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(golden, picture.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(picture.Bytes(), want) {
		t.Error("docs/images/recording.svg is not what the commands print; record it again with make recording")
	}
}

// withExamples returns a folder with the files that the commands name.
func withExamples(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, file := range []string{"shop.snapshot", "careless-agent/agent.yaml", "careless-agent/role.yaml"} {
		text, err := os.ReadFile(filepath.Join("../../examples", file))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// printed runs a command as it would be typed on the terminal of the recording.
func printed(t *testing.T, line string) string {
	t.Helper()
	var out, stderr bytes.Buffer
	a := command.NewApp(command.NewStreams(strings.NewReader(""), &out, &stderr), []string{binaryName}, fixedClock)
	a.Width = recording.Columns
	all := root(a, binaryName)
	all.SetArgs(strings.Fields(line)[1:])
	if err := all.ExecuteContext(t.Context()); err != nil || a.Status == command.StatusUndecided {
		t.Fatalf("%s: %v\n%s", line, err, &stderr)
	}
	return out.String()
}
