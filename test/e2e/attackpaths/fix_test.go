package attackpaths

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/testing/randomcluster"
	"github.com/node-authorizer/node-authorizer/test/e2e/server"
)

const (
	root = "../../.."
	// fixedClusters is the number of random clusters whose scripts are run.
	fixedClusters = 40
	// mostScripts is how many scripts may follow each other until the last one has only comments.
	mostScripts = 12
)

// TestScriptsOfFix runs the scripts that attack-paths --fix prints with kubectl, one after the other, until there is no path
// to cluster-admin or the script has only comments. Each script must be applied whole, and change what the next one says.
func TestScriptsOfFix(t *testing.T) {
	if os.Getenv(rightsVariable) != "all" {
		t.Skip("it needs kubectl: make executor runs it")
	}
	program := filepath.Join(t.TempDir(), "node-authorizer")
	if err := server.Build(t.Context(), root, program); err != nil {
		t.Fatal(err)
	}
	scripts, ended, left := 0, 0, 0
	first := number(t, seedVariable, 1)
	for seed := first; seed < first+min(fixedClusters, number(t, clustersVariable, fixedClusters)); seed++ {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			objects := complete(t, randomcluster.New(uint64(seed)).Objects)
			for _, start := range randomStarts(seed, objects) {
				if err := newest.reset(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := newest.apply(t.Context(), objects); err != nil {
					t.Fatal(err)
				}
				n, reached := newest.fix(t, program, start)
				scripts += n
				if n > 0 && reached {
					left++
				} else if n > 0 {
					ended++
				}
			}
		})
	}
	t.Logf("%d scripts were run; %d starts no longer reach cluster-admin, %d do in ways that only comments end", scripts, ended, left)
	if scripts == 0 {
		t.Error("no script was run")
	}
}

// fix runs scripts until they end every path or have only comments. It returns how many it ran, and whether cluster-admin is
// still reached.
func (w *world) fix(t *testing.T, program string, start holding) (scripts int, reached bool) {
	t.Helper()
	before := ""
	for scripts = range mostScripts {
		script, status := w.asAdmin(t.Context(), program, "attack-paths", startText(start), "--fix")
		switch {
		case status == 0 || !hasCommand(script):
			return scripts, status != 0
		case status != 1:
			t.Fatalf("%s: attack-paths --fix ends with status %d:\n%s", startText(start), status, script)
		case script == before:
			t.Fatalf("%s: the script leaves what it is about:\n%s", startText(start), script)
		}
		path := filepath.Join(t.TempDir(), "fix.sh")
		if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
		if output, status := w.asAdmin(t.Context(), "bash", "-e", path); status != 0 {
			t.Fatalf("%s: the script ends with status %d:\n%s\n%s", startText(start), status, output, script)
		}
		before = script
	}
	t.Fatalf("%s: %d scripts do not end the paths", startText(start), mostScripts)
	return scripts, true
}

// asAdmin runs a program as the administrator.
func (w *world) asAdmin(ctx context.Context, program string, args ...string) (output string, status int) {
	command := exec.CommandContext(ctx, program, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+w.AdminKubeconfig())
	printed, err := command.CombinedOutput()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		return err.Error(), -1
	}
	return string(printed), command.ProcessState.ExitCode()
}

// startText is a start as the command takes it.
func startText(h holding) string {
	return strings.ToLower(h.Kind) + "/" + strings.TrimPrefix(h.Namespace+"/"+h.Name, "/")
}

func hasCommand(script string) bool {
	for line := range strings.Lines(script) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return true
		}
	}
	return false
}
