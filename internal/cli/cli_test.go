package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	run := func() { os.Exit(runValidated()) }
	testscript.Main(m, map[string]func(){
		"node-authorizer":         run,
		"kubectl-node_authorizer": run,
	})
}

// TestScripts runs testdata/script/*.txtar with the real main. Each script has
// testdata/cluster.yaml and testdata/partial.yaml in its folder. UPDATE_GOLDEN=1 rewrites the
// golden output in the scripts.
func TestScripts(t *testing.T) {
	fixtures := map[string][]byte{}
	for _, name := range []string{"cluster.yaml", "partial.yaml"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		fixtures[name] = text
	}
	shop, err := filepath.Abs("../../examples/shop.snapshot")
	if err != nil {
		t.Fatal(err)
	}
	provider := buildProvider(t)
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		UpdateScripts:       os.Getenv("UPDATE_GOLDEN") != "",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			// The kubeconfig of the user who runs the tests is not read.
			env.Setenv("KUBECONFIG", filepath.Join(env.WorkDir, "kubeconfig"))
			env.Setenv("KUBERNETES_SERVICE_HOST", "")
			env.Setenv("SHOP", shop)
			env.Setenv("PROVIDER", provider)
			env.Setenv("TWOLINES", "a\nb")
			for name, text := range fixtures {
				if err := os.WriteFile(filepath.Join(env.WorkDir, name), text, 0o600); err != nil {
					return err
				}
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status":       status,
			"apiserver":    startServer,
			"webhook":      startWebhook,
			"certificates": writeCertificates,
			"await":        await,

			"bootstrapservice": startBootstrapService,
			"instance":         startInstance,
			"kubeconfig":       kubeconfigHas,

			"sts": startSTS,

			"cluster":   startCluster,
			"object":    showObject,
			"contained": startContained,
			"probed":    startProbed,
		},
	})
}

// buildProvider builds the program of a provider beside the commands.
func buildProvider(t *testing.T) (path string) {
	t.Helper()
	command, err := exec.LookPath("node-authorizer")
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(filepath.Dir(command), "provider")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", path, "../testing/fakeprovider/provider")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the program of a provider: %v\n%s", err, out)
	}
	return path
}

// status runs a program and checks its exit status: status 2 node-authorizer …
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N program [args...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit := new(exec.ExitError)
		if !errors.As(err, &exit) {
			ts.Check(err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit status is %d, want %d", got, want)
	}
}
