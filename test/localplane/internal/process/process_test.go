package process

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ownerVariable makes the test program the owner of one sleeping process, whose pid it
// prints.
const ownerVariable = "PROCESS_TEST_OWNER_LOG"

func TestMain(m *testing.M) {
	if log := os.Getenv(ownerVariable); log != "" {
		p, err := NewGroup().Start(sleeper(log))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(p.Identity().PID)
		select {}
	}
	os.Exit(m.Run())
}

func sleeper(log string) Spec {
	return Spec{Name: "sleeper", Path: "/bin/sh", Args: []string{"-c", "echo asleep; exec sleep 300"}, Log: log}
}

func startSleeper(t *testing.T) *Process {
	t.Helper()
	group := NewGroup()
	t.Cleanup(group.Close)
	p, err := group.Start(sleeper(filepath.Join(t.TempDir(), "sleeper.log")))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestStopSendsSIGTERM(t *testing.T) {
	p := startSleeper(t)
	p.Stop(time.Minute)
	if p.Running() || p.Identity().Running() {
		t.Error("the process still runs")
	}
}

func TestStopEndsPausedProcess(t *testing.T) {
	p := startSleeper(t)
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	p.Stop(time.Minute)
	if p.Running() {
		t.Error("the process still runs")
	}
}

func TestStopKillsProcessThatIgnoresSIGTERM(t *testing.T) {
	group := NewGroup()
	t.Cleanup(group.Close)
	p, err := group.Start(Spec{
		Name: "stubborn", Path: "/bin/sh", Args: []string{"-c", "trap '' TERM; echo deaf; while :; do sleep 1; done"},
		Log: filepath.Join(t.TempDir(), "stubborn.log"),
	})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the process ignores SIGTERM", func() bool {
		output, err := p.Output()
		return err == nil && strings.Contains(output, "deaf")
	})
	p.Stop(10 * time.Millisecond)
	if p.Running() {
		t.Error("the process still runs")
	}
}

func TestExitErrorShowsTheEndOfTheLog(t *testing.T) {
	group := NewGroup()
	t.Cleanup(group.Close)
	log := filepath.Join(t.TempDir(), "broken.log")
	if err := os.WriteFile(log, []byte("of the run before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := group.Start(Spec{Name: "broken", Path: "/bin/sh", Args: []string{"-c", "echo no such flag; exit 3"}, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	message := p.ExitError().Error()
	for _, want := range []string{"broken ended with exit status 3", "no such flag", log} {
		if !strings.Contains(message, want) {
			t.Errorf("the error does not say %q: %s", want, message)
		}
	}
	if strings.Contains(message, "of the run before") {
		t.Errorf("the error shows an earlier run: %s", message)
	}
}

func TestCloseKillsTheProcesses(t *testing.T) {
	onlyOnLinux(t)
	group := NewGroup()
	p, err := group.Start(sleeper(filepath.Join(t.TempDir(), "sleeper.log")))
	if err != nil {
		t.Fatal(err)
	}
	group.Close()
	eventually(t, "the process is gone", func() bool { return !p.Identity().Running() })
}

func TestMainThreadOwnsNoProcess(t *testing.T) {
	onlyOnLinux(t)
	group := &Group{requests: make(chan func())}
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	eventually(t, "a goroutine runs on the main thread", func() bool {
		onMain := make(chan bool)
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			onMain <- onMainThread()
			if onMainThread() {
				group.own()
				return
			}
			// The next goroutine must use another thread.
			<-release
		}()
		return <-onMain
	})
	p, err := group.Start(sleeper(filepath.Join(t.TempDir(), "sleeper.log")))
	if err != nil {
		t.Fatal(err)
	}
	group.Close()
	eventually(t, "the process is gone", func() bool { return !p.Identity().Running() })
}

func TestCrashOfTheOwnerKillsItsProcesses(t *testing.T) {
	onlyOnLinux(t)
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), ownerVariable+"="+filepath.Join(t.TempDir(), "sleeper.log"))
	owner.Stderr = os.Stderr
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	child, err := Identify(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := owner.Wait(); err == nil {
		t.Error("the owner ended without an error")
	}
	eventually(t, "the process is gone", func() bool { return !child.Running() })
}

func TestReusedPIDIsNotSignalled(t *testing.T) {
	p := startSleeper(t)
	earlier := p.Identity()
	earlier.Started += "0"
	if earlier.Running() {
		t.Error("a process of another start time counts as the same")
	}
	if err := earlier.Kill(); err != nil {
		t.Error(err)
	}
	if !p.Identity().Running() {
		t.Error("the process that took over the pid was killed")
	}
}

func TestIdentifyUnusedPID(t *testing.T) {
	p := startSleeper(t)
	p.Kill()
	if _, err := Identify(p.Identity().PID); !errors.Is(err, ErrNotRunning) {
		t.Errorf("got %v, want %v", err, ErrNotRunning)
	}
}

func onlyOnLinux(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends processes with their owner")
	}
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting until %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
