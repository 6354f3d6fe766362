package cli

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
)

// TestSetupAsksOnATerminal answers the question of setup undo. Only yes changes the node. Without a kube-apiserver, the command
// then ends with the error that it does not answer.
func TestSetupAsksOnATerminal(t *testing.T) {
	const nothing = "nothing was changed"
	for _, tc := range []struct {
		rule, input string
		status      int
		want        string
	}{
		{"yes", "yes\n", command.StatusUndecided, "kube-apiserver is not ready"},
		{"y", "y\n", command.StatusUndecided, nothing},
		{"no", "n\n", command.StatusUndecided, nothing},
		{"an empty line", "\n", command.StatusUndecided, nothing},
		{"the end of the input", "\x04", command.StatusUndecided, nothing},
		{"the end of the input after an answer that is not complete", "yes\x04\x04", command.StatusUndecided, nothing},
		{"an interrupt", "\x03", command.StatusInterrupted, "interrupted"},
		{"an interrupt after an answer that is not complete", "yes\x03", command.StatusInterrupted, "interrupted"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			t.Parallel()
			dir := installedNode(t)
			before := contents(t, dir)
			status, output := onTerminal(t, "Type yes: ", tc.input, "setup", "undo", "--kubernetes-dir", dir, "--node-name", "a")
			if status != tc.status || !strings.Contains(output, tc.want) {
				t.Errorf("status %d instead of %d, and the output lacks %q: %s", status, tc.status, tc.want, output)
			}
			if after := contents(t, dir); after != before {
				t.Errorf("the files are now\n%s\nand were\n%s", after, before)
			}
		})
	}
}

// TestApproveAsksOnATerminal: only yes approves.
func TestApproveAsksOnATerminal(t *testing.T) {
	const path = "/apis/node-authorizer.io/v1alpha1/machines/key-1"
	for input, want := range map[string]string{"yes\n": "Approved key-1 as node worker-1", "y\n": "nothing was changed"} {
		server := fakeapiserver.New(fakeapiserver.Options{})
		t.Cleanup(server.Close)
		m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "key-1"}, Spec: v1alpha1.MachineSpec{
			NodeName: "worker-1", Approval: v1alpha1.Pending, X509: &v1alpha1.MachineX509{Subject: "CN=a"},
		}}
		if err := server.Put(path, m); err != nil {
			t.Fatal(err)
		}
		_, output := onTerminal(t, "Type yes: ", input, "approve", "key-1", "--server", server.URL())
		if !strings.Contains(output, want) || !strings.Contains(output, "has        subject CN=a") {
			t.Errorf("%q: %s", input, output)
		}
	}
}

// installedNode returns the folder of kubeadm on a node where the server is installed, and kube-apiserver does not run.
func installedNode(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	const manifest = "kind: Pod\nspec: {containers: [{name: a, command: [kube-apiserver, --secure-port=1]}]}\n"
	for name, text := range map[string]string{
		"manifests/kube-apiserver.yaml": manifest,
		"admin.conf": "clusters: [{name: a, cluster: {server: https://127.0.0.1:1}}]\n" +
			"contexts: [{name: a, context: {cluster: a, user: a}}]\ncurrent-context: a\nusers: [{name: a, user: {token: t}}]\n",
		"node-authorizer/setup/journal.json": `{"mode": "observe", "port": 10270, "files": [{"path": "` + dir +
			`/manifests/kube-apiserver.yaml", "existed": true, "before": "", "written": []}]}`,
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// contents returns the names and contents of all files below a folder.
func contents(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all.WriteString(path + "\n" + string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// onTerminal runs node-authorizer on a terminal of its own, and types the input when the question is there. It returns the
// exit status and all that the terminal shows.
func onTerminal(t *testing.T, question, input string, args ...string) (status int, shown string) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer person.Close()
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	slave, _, errno := unix.Syscall(unix.SYS_IOCTL, person.Fd(), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY)
	if errno != 0 {
		t.Fatal(errno)
	}
	terminal := os.NewFile(slave, "terminal")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	run := exec.CommandContext(ctx, "node-authorizer", args...)
	run.Stdin, run.Stdout, run.Stderr = terminal, terminal, terminal
	run.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err = run.Start()
	terminal.Close()
	if err != nil {
		t.Fatal(err)
	}
	var screen bytes.Buffer
	typed := false
	for part := make([]byte, 4096); ; {
		n, err := person.Read(part)
		if screen.Write(part[:n]); err != nil { // the process has closed the terminal
			break
		}
		if !typed && strings.Contains(screen.String(), question) {
			typed = true
			if _, err := person.WriteString(input); err != nil {
				t.Fatal(err)
			}
		}
	}
	exit := new(exec.ExitError)
	if err := run.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if !typed {
		t.Errorf("the terminal does not show %q", question)
	}
	return run.ProcessState.ExitCode(), screen.String()
}
