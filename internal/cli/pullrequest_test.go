package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// workflow is the part of a workflow of GitHub Actions that the example uses. Other keys are errors.
type workflow struct {
	Name string `json:"name"`
	On   struct {
		PullRequest struct {
			Paths []string `json:"paths"`
		} `json:"pull_request"`
	} `json:"on"`
	Permissions map[string]string `json:"permissions"`
	Jobs        map[string]struct {
		RunsOn string            `json:"runs-on"`
		Env    map[string]string `json:"env"`
		Steps  []struct {
			Name string            `json:"name"`
			ID   string            `json:"id"`
			Uses string            `json:"uses"`
			With map[string]string `json:"with"`
			Run  string            `json:"run"`
		} `json:"steps"`
	} `json:"jobs"`
}

// The step Compare of the example is run as it is, with this program, on files of the tests.
func TestPullRequestWorkflow(t *testing.T) {
	text, err := os.ReadFile("../../examples/pull-request/attack-paths.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var w workflow
	if err := yaml.UnmarshalStrict(text, &w); err != nil {
		t.Fatal(err)
	}
	if w.Permissions["security-events"] != "write" || len(w.Permissions) != 2 {
		t.Errorf("permissions are %v", w.Permissions)
	}
	job := w.Jobs["diff"]
	at := slices.IndexFunc(job.Steps, func(s struct {
		Name string            `json:"name"`
		ID   string            `json:"id"`
		Uses string            `json:"uses"`
		With map[string]string `json:"with"`
		Run  string            `json:"run"`
	},
	) bool {
		return s.ID == "compare"
	})
	if at < 0 {
		t.Fatal("there is no step compare")
	}
	for name, c := range map[string]struct{ manifest, status, summary string }{
		"a binding widens": {"binding.yaml", "1", "❌ Attack paths"},
		"a role does not":  {"role.yaml", "0", "✅ Attack paths"},
		"an unknown role":  {"unknown.yaml", "2", "⚠️ Attack paths"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			copyFile(t, filepath.Join("testdata", "pullrequest", "cluster.yaml"), filepath.Join(dir, job.Env["SNAPSHOT"]))
			copyFile(t, filepath.Join("testdata", "pullrequest", c.manifest), filepath.Join(dir, "rendered.yaml"))
			script := exec.Command("bash", "-e", "-o", "pipefail", "-c", job.Steps[at].Run)
			script.Dir = dir
			script.Env = append(os.Environ(), "PATH="+programs(t)+":"+os.Getenv("PATH"),
				"GITHUB_STEP_SUMMARY="+filepath.Join(dir, "step"), "GITHUB_OUTPUT="+filepath.Join(dir, "output"))
			for key, value := range job.Env {
				script.Env = append(script.Env, key+"="+value)
			}
			if output, err := script.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, output)
			}
			want(t, filepath.Join(dir, "output"), "status="+c.status+"\n")
			want(t, filepath.Join(dir, "step"), c.summary)
			want(t, filepath.Join(dir, "attack-paths.sarif"), `"version": "2.1.0"`)
			want(t, filepath.Join(dir, "attack-paths.xml"), `<testsuite name="node-authorizer diff"`)
		})
	}
}

// programs is a folder with this test's program under the name of the command: TestMain is its main.
func programs(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, "node-authorizer")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, file, part string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), part) {
		t.Errorf("%s lacks %q:\n%s", filepath.Base(file), part, text)
	}
}
