package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/node-authorizer/node-authorizer/test/localplane"
)

// mainVariable makes the test program act as the command. "up" runs it again as the
// supervisor.
const mainVariable = "LOCALPLANE_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(mainVariable) != "" {
		main()
		return
	}
	os.Exit(localplane.KeepLogs(m.Run))
}

func command(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), mainVariable+"=1", dirVariable+"="+dir)
	cmd.Stderr = t.Output()
	return cmd
}

// localplaneOutput runs the command and returns its output and its exit status.
func localplaneOutput(t *testing.T, dir string, args ...string) (string, int) {
	t.Helper()
	cmd := command(t, dir, args...)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func mustRun(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, status := localplaneOutput(t, dir, args...)
	if status != 0 {
		t.Fatalf("localplane %v: exit status %d\n%s", args, status, out)
	}
	return out
}

func TestDownWithoutAPlaneSucceeds(t *testing.T) {
	dir := t.TempDir()
	if out := mustRun(t, dir, "down"); !strings.Contains(out, "no control plane runs in "+dir) {
		t.Errorf("it says %q", out)
	}
	if _, status := localplaneOutput(t, dir, "status"); status != 1 {
		t.Errorf("status exits with %d, not 1", status)
	}
}

func TestUpAndDown(t *testing.T) {
	dir := t.TempDir()
	t.Cleanup(func() { mustRun(t, dir, "down") })
	kubeconfig := filepath.Join(dir, "kubeconfig", "admin.kubeconfig")

	if out := mustRun(t, dir, "up", "--authorization", "rbac-only"); !strings.Contains(out, "export KUBECONFIG="+kubeconfig) {
		t.Errorf("up does not say how to use it: %s", out)
	}
	processes := running(t, dir)
	wantNodesRefused(t, kubeconfig)
	if out := mustRun(t, dir, "up"); !strings.Contains(out, "runs already") {
		t.Errorf("a second up says %q", out)
	}
	if out := mustRun(t, dir, "status"); !strings.Contains(out, "kube-scheduler") {
		t.Errorf("status says %q", out)
	}
	manifest := filepath.Join(t.TempDir(), "namespace.yaml")
	if err := os.WriteFile(manifest, []byte("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := mustRun(t, dir, "apply", "-f", manifest); out != "Namespace shop applied\n" {
		t.Errorf("apply says %q", out)
	}
	if out := mustRun(t, dir, "down"); out != "the control plane is down\n" {
		t.Errorf("down says %q", out)
	}
	wantGone(t, processes)
}

func TestProcessesEndWithAKilledSupervisor(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends processes with their owner")
	}
	dir := t.TempDir()
	t.Cleanup(func() { mustRun(t, dir, "down") })
	mustRun(t, dir, "up", "--nodes", "1")
	processes := running(t, dir)
	if len(processes) != 5 {
		t.Errorf("%d processes run, not 5: %+v", len(processes), processes)
	}
	state, err := localplane.ReadState(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := state.Owner.Kill(); err != nil {
		t.Fatal(err)
	}
	wantGone(t, processes)
	mustRun(t, dir, "down")
	for _, p := range processes {
		for _, path := range p.Scratch {
			if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("down left %s of %s", path, p.Name)
			}
		}
	}
}

func TestInterruptedUpLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	t.Cleanup(func() { mustRun(t, dir, "down") })
	cmd := command(t, dir, "up")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "etcd is ready") {
	}
	processes := running(t, dir)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
		t.Log(lines.Text())
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("up ended with %v", err)
	}
	wantGone(t, processes)
	if _, err := localplane.ReadState(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a state is left: %v", err)
	}
}

func TestRunForwardsTheExitStatus(t *testing.T) {
	cmd := command(t, t.TempDir(), "run", "--", "/bin/sh", "-c", `cat "$`+dirVariable+`/localplane.json"; exit 7`)
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != 7 {
		t.Fatalf("it ended with %v, not exit status 7", err)
	}
	var state localplane.State
	if err := json.Unmarshal(out.Bytes(), &state); err != nil {
		t.Fatal(err)
	}
	wantGone(t, state.Processes)
}

// wantNodesRefused checks that no authorizer of the plane allows nodes.
func wantNodesRefused(t *testing.T, kubeconfig string) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:node:web-1", Groups: []string{"system:nodes"}}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Services("").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a node that lists services gets %v, want a refusal", err)
	}
}

func running(t *testing.T, dir string) []localplane.ProcessState {
	t.Helper()
	state, err := localplane.ReadState(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range state.Processes {
		if !p.Running() {
			t.Errorf("%s does not run", p.Name)
		}
	}
	return state.Processes
}

func wantGone(t *testing.T, processes []localplane.ProcessState) {
	t.Helper()
	if len(processes) == 0 {
		t.Error("no process was running")
	}
	deadline := time.Now().Add(time.Minute)
	for _, p := range processes {
		for p.Running() && time.Now().Before(deadline) {
			time.Sleep(5 * time.Millisecond)
		}
		if p.Running() {
			t.Errorf("%s still runs as process %d", p.Name, p.PID)
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
	}
}
