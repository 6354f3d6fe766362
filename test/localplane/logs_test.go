package localplane

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestMain(m *testing.M) { os.Exit(KeepLogs(m.Run)) }

// failingVariable makes TestThatFails fail.
const failingVariable = "LOCALPLANE_TEST_FAILS"

// TestThatFails fails with a message that names a log.
func TestThatFails(t *testing.T) {
	if os.Getenv(failingVariable) == "" {
		t.Skip("TestLogsOfAFailedTestStay runs it")
	}
	plane := startPlane(t, Options{WithoutControllers: true})
	ctx, cancel := context.WithCancel(t.Context())
	_, err := plane.AddProgram(ctx, "broken", ProgramOptions{
		Path: "/bin/sh", Args: []string{"-c", "echo the cause; exec sleep 600"},
		Ready: func(context.Context) error {
			text, err := os.ReadFile(filepath.Join(plane.LogDir, "broken.log"))
			if err == nil && strings.Contains(string(text), "the cause") {
				cancel()
			}
			return errors.New("it is not ready")
		},
	})
	t.Fatal(err)
}

func TestLogsOfAFailedTestStay(t *testing.T) {
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestThatFails$", "-test.v")
	command.Env = append(os.Environ(), failingVariable+"=1", "TMPDIR="+t.TempDir(), LogsVariable+"=")
	output, err := command.CombinedOutput()
	if err == nil {
		t.Fatalf("the test did not fail:\n%s", output)
	}
	named := regexp.MustCompile(`its log is (\S+)`).FindSubmatch(output)
	where := regexp.MustCompile(`the logs of the control planes are in (\S+)`).FindSubmatch(output)
	if named == nil || where == nil || !strings.HasPrefix(string(named[1]), string(where[1])+"/") {
		t.Fatalf("the output does not name the log and its folder:\n%s", output)
	}
	if text, err := os.ReadFile(string(named[1])); err != nil || string(text) != "the cause\n" {
		t.Errorf("the log is %q, %v", text, err)
	}
	if log := filepath.Join(filepath.Dir(string(named[1])), string(APIServer)+".log"); !isFile(log) {
		t.Errorf("%s is not there", log)
	}
}

func TestNoPlaneOfTestsThatLoseItsLogs(t *testing.T) {
	t.Setenv(LogsVariable, "")
	plane, err := Start(t.Context(), Options{WithoutControllers: true})
	if err == nil {
		t.Error(plane.Stop())
	}
	if err == nil || !strings.Contains(err.Error(), "KeepLogs") {
		t.Errorf("the error is %v", err)
	}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func TestKeepLogs(t *testing.T) {
	for _, tc := range []struct {
		rule   string
		status int
		// chosen is true if the user chose the folder.
		chosen, stay bool
	}{
		{"the tests pass", 0, false, false},
		{"a test fails", 1, false, true},
		{"the tests pass, with a folder that the user chose", 0, true, true},
		{"a test fails, with a folder that the user chose", 1, true, true},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			t.Setenv(LogsVariable, "")
			chosen := t.TempDir()
			if tc.chosen {
				t.Setenv(LogsVariable, chosen)
			}
			var log string
			status := KeepLogs(func() int {
				dir := os.Getenv(LogsVariable)
				if (dir == chosen) != tc.chosen {
					t.Errorf("the logs are in %q", dir)
				}
				log = filepath.Join(dir, "a.log")
				writeFile(t, log, "text")
				return tc.status
			})
			if status != tc.status || isFile(log) != tc.stay {
				t.Errorf("status %d, the log is there: %t; want %d, %t", status, isFile(log), tc.status, tc.stay)
			}
		})
	}
}
