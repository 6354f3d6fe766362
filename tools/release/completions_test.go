package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// installed unpacks the Debian package of this machine, as dpkg does, and returns the folder.
func installed(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("dpkg-deb is not installed")
	}
	of := platform{"linux", runtime.GOARCH}
	if !slices.Contains(built.platforms, of) {
		t.Skipf("no package for %s was built", of)
	}
	root := t.TempDir()
	outputOf(t, exec.Command("dpkg-deb", "-x", filepath.Join(built.out, built.fileName(of, ".deb")), root))
	return root
}

func outputOf(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, output)
	}
	return string(output)
}

// TestPackagedCompletionCompletes lets bash read the completion of an installed package and press the tab key. _init_completion
// stands for the function of the package bash-completion, and compopt for bash's own, which works only while a key is pressed.
func TestPackagedCompletionCompletes(t *testing.T) {
	root := installed(t)
	script := `set -e
compopt() { :; }
_init_completion() { words=("${COMP_WORDS[@]}"); cword=$COMP_CWORD; cur=${words[cword]}; prev=${words[cword-1]}; }
source "$ROOT/usr/share/bash-completion/completions/node-authorizer"
COMP_WORDS=(node-authorizer attack-pa) COMP_CWORD=1 COMP_LINE="node-authorizer attack-pa" COMP_POINT=25 COMP_TYPE=9
__start_node-authorizer || true
echo "${COMPREPLY[@]}"`
	cmd := exec.Command("bash", "--norc", "-c", script)
	cmd.Env = append(os.Environ(), "ROOT="+root, "PATH="+filepath.Join(root, "usr/bin")+":"+os.Getenv("PATH"))
	if got := strings.TrimSpace(outputOf(t, cmd)); !strings.HasPrefix(got, "attack-paths") {
		t.Errorf("bash completes attack-pa with %q, want attack-paths", got)
	}
}

// TestPackagedUnit wants a unit that systemd reads, and that nothing enables.
func TestPackagedUnit(t *testing.T) {
	root := installed(t)
	enabled, err := filepath.Glob(filepath.Join(root, "*", "systemd", "system", "*.wants", "*"))
	if err != nil || len(enabled) > 0 {
		t.Errorf("the package enables %v: %v", enabled, err)
	}
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	unit, err := os.ReadFile(filepath.Join(root, "usr/lib/systemd/system/node-authorizer.service"))
	if err != nil {
		t.Fatal(err)
	}
	// systemd looks for the program at the path of the unit.
	unit = bytes.ReplaceAll(unit, []byte("=/usr/bin/"), []byte("="+root+"/usr/bin/"))
	path := filepath.Join(t.TempDir(), "node-authorizer.service")
	if err := os.WriteFile(path, unit, 0o644); err != nil {
		t.Fatal(err)
	}
	output := outputOf(t, exec.Command("systemd-analyze", "verify", "--man=no", path))
	if strings.Contains(output, "node-authorizer.service:") {
		t.Errorf("systemd-analyze verify: %s", output)
	}
}
