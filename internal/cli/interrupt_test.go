package cli

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/cli/command"
)

// TestInterruptHasItsStatus sends a signal while the API server does not answer. No file is left in the folder of the output.
// The requests carry the user that --as and --as-uid impersonate.
func TestInterruptHasItsStatus(t *testing.T) {
	for signal, want := range map[os.Signal]int{os.Interrupt: command.StatusInterrupted, syscall.SIGTERM: command.StatusUndecided} {
		t.Run(signal.String(), func(t *testing.T) {
			asked := make(chan http.Header, 100)
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				asked <- r.Header
				<-r.Context().Done()
			}))
			defer server.Close()
			folder := t.TempDir()
			run := exec.Command("node-authorizer", "snapshot", "-o", filepath.Join(folder, "out.snapshot"),
				"--server", server.URL, "--as", "ada", "--as-uid", "7")
			if err := run.Start(); err != nil {
				t.Fatal(err)
			}
			header := <-asked
			if header.Get("Impersonate-User") != "ada" || header.Get("Impersonate-Uid") != "7" {
				t.Errorf("the request impersonates user %q with UID %q", header.Get("Impersonate-User"), header.Get("Impersonate-Uid"))
			}
			if err := run.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			exit := new(exec.ExitError)
			if err := run.Wait(); !errors.As(err, &exit) || exit.ExitCode() != want {
				t.Errorf("exit status %v, want %d", err, want)
			}
			if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
				t.Errorf("left in the folder: %v, %v", left, err)
			}
		})
	}
}
