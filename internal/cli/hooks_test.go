package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"sigs.k8s.io/yaml"
)

const repository = "../.."

// hook is an entry of .pre-commit-hooks.yaml.
type hook struct {
	ID            string   `json:"id"`
	Name          string   `json:"name"`
	Description   string   `json:"description"`
	Language      string   `json:"language"`
	Entry         string   `json:"entry"`
	Args          []string `json:"args"`
	Types         []string `json:"types"`
	TypesOr       []string `json:"types_or"`
	PassFilenames *bool    `json:"pass_filenames"`
}

// action is the metadata of a composite GitHub Action.
type action struct {
	Name        string                 `json:"name"`
	Description string                 `json:"description"`
	Branding    map[string]string      `json:"branding"`
	Inputs      map[string]actionInput `json:"inputs"`
	Runs        struct {
		Using string       `json:"using"`
		Steps []actionStep `json:"steps"`
	} `json:"runs"`
}

type actionInput struct {
	Description string  `json:"description"`
	Required    bool    `json:"required"`
	Default     *string `json:"default"`
}

type actionStep struct {
	Name             string            `json:"name"`
	Shell            string            `json:"shell"`
	Run              string            `json:"run"`
	WorkingDirectory string            `json:"working-directory"`
	Env              map[string]string `json:"env"`
}

// decodeStrictly decodes a YAML file of the repository.
func decodeStrictly(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// pre-commit appends args to entry, and runs it without a shell.
func TestHooks(t *testing.T) {
	var hooks []hook
	decodeStrictly(t, ".pre-commit-hooks.yaml", &hooks)
	if len(hooks) == 0 {
		t.Fatal("there are no hooks")
	}
	entries := map[string]hook{}
	for _, h := range hooks {
		if h.Name == "" || h.Description == "" || h.Language != "golang" || len(h.Types)+len(h.TypesOr) == 0 || len(h.Args) == 0 {
			t.Errorf("%s is %+v", h.ID, h)
		}
		if h.PassFilenames == nil || *h.PassFilenames {
			t.Errorf("%s would get the names of files as arguments", h.ID)
		}
		if !strings.HasSuffix(h.Entry, " --from") {
			t.Errorf("%s runs %q: without --from it could ask a cluster", h.ID, h.Entry)
		}
		entries[h.ID] = h
	}
	run := func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) < 2 || entries[args[1]].Entry == "" {
			ts.Fatalf("usage: hook STATUS ID [args...]")
		}
		h, given := entries[args[1]], args[2:]
		if len(given) == 0 {
			given = h.Args
		}
		words := append(strings.Fields(h.Entry), given...)
		want, err := strconv.Atoi(args[0])
		ts.Check(err)
		expectStatus(ts, want, ts.Exec(words[0], words[1:]...))
	}
	testscript.Run(t, testscript.Params{
		Files: []string{filepath.Join("testdata", "hooks.txtar")}, RequireExplicitExec: true,
		Setup: withoutCluster, Cmds: map[string]func(*testscript.TestScript, bool, []string){"hook": run},
	})
}

func expectStatus(ts *testscript.TestScript, want int, err error) {
	got := 0
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit status is %d, want %d", got, want)
	}
}

func withoutCluster(env *testscript.Env) error {
	root, err := filepath.Abs(repository)
	env.Setenv("ROOT", root)
	env.Setenv("KUBECONFIG", filepath.Join(env.WorkDir, "kubeconfig"))
	env.Setenv("KUBERNETES_SERVICE_HOST", "")
	return err
}

func TestAction(t *testing.T) {
	var a action
	decodeStrictly(t, "action.yml", &a)
	if a.Name == "" || a.Description == "" || a.Runs.Using != "composite" || len(a.Runs.Steps) != 2 {
		t.Fatalf("the action is %+v", a)
	}
	used := map[string]bool{}
	input := regexp.MustCompile(`^\$\{\{ inputs\.([a-z-]+)(?: \|\| github\.action_ref)? \}\}$`)
	for _, s := range a.Runs.Steps {
		// An expression in a script would let whoever writes an input write the script.
		script := regexp.MustCompile(`^"\$GITHUB_ACTION_PATH/(tools/action/[a-z]+\.sh)"$`).FindStringSubmatch(s.Run)
		if script == nil || s.Shell != "bash" || s.Name == "" {
			t.Fatalf("a step is %+v", s)
		}
		if info, err := os.Stat(filepath.Join(repository, script[1])); err != nil || info.Mode()&0o111 == 0 {
			t.Errorf("%s cannot be run: %v", script[1], err)
		}
		for _, value := range append([]string{s.WorkingDirectory}, values(s.Env)...) {
			if m := input.FindStringSubmatch(value); m != nil {
				used[m[1]] = true
			}
		}
	}
	for name, input := range a.Inputs {
		if !used[name] || input.Description == "" || input.Required || input.Default == nil {
			t.Errorf("the input %s is %+v, used: %v", name, input, used[name])
		}
	}
	if len(used) != len(a.Inputs) {
		t.Errorf("used are %v", used)
	}
}

func values(m map[string]string) (all []string) {
	for _, v := range m {
		all = append(all, v)
	}
	return all
}

// The step of the action that runs a command.
func TestActionRuns(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Files: []string{filepath.Join("testdata", "action.txtar")}, RequireExplicitExec: true,
		Setup: withoutCluster, Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": status},
	})
}
