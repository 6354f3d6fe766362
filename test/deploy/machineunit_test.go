package deploy

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The client runs once, before the kubelet, and again after a failure.
func TestUnitRunsBeforeTheKubelet(t *testing.T) {
	unit := read(t, machineFolder, "node-authorizer.service")
	for key, want := range map[string]string{
		"Before": "kubelet.service", "After": "network-online.target", "Wants": "network-online.target",
		"Type": "oneshot", "RemainAfterExit": "yes", "Restart": "on-failure", "RuntimeDirectoryMode": "0700",
		"EnvironmentFile": "/etc/node-authorizer/client.env", "ExecStart": "/usr/local/bin/node-authorizer client",
		"WantedBy": "multi-user.target",
	} {
		if got := variable(t, unit, key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	// A restart of the unit requests another token. It must remove the old kubeconfig,
	// because the client replaces no file.
	if strings.Contains(unit, "RuntimeDirectoryPreserve=") {
		t.Error("a kubeconfig with an expired token outlives the unit")
	}
	dropIn := read(t, machineFolder, "kubelet.service.d/20-node-authorizer.conf")
	for _, key := range []string{"Wants", "After"} {
		if got := variable(t, dropIn, key); got != "node-authorizer.service" {
			t.Errorf("of the kubelet, %s is %q", key, got)
		}
	}
}

func TestSystemdAcceptsTheUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd is not installed")
	}
	folder := t.TempDir()
	program := filepath.Join(folder, "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"node-authorizer.service": strings.ReplaceAll(read(t, machineFolder, "node-authorizer.service"),
			"/usr/local/bin/node-authorizer", program),
		"kubelet.service": "[Unit]\nDescription=kubelet\n[Service]\nExecStart=" + program +
			" $KUBELET_KUBECONFIG_ARGS\n",
		"kubelet.service.d/20-node-authorizer.conf": read(t, machineFolder, "kubelet.service.d/20-node-authorizer.conf"),

		"node-authorizer.service.d/certificate.conf": read(t, machineFolder, "node-authorizer.service.d/certificate.conf"),
		"node-authorizer.service.d/tpm.conf":         read(t, machineFolder, "node-authorizer.service.d/tpm.conf"),
	} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, path, content)
	}
	for _, unit := range []string{"node-authorizer.service", "kubelet.service"} {
		verify := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", filepath.Join(folder, unit))
		verify.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+folder+":")
		// It prints what it ignores on stderr, and may still exit with 0.
		var said bytes.Buffer
		verify.Stderr = &said
		if err := verify.Run(); err != nil || strings.Contains(said.String(), folder) {
			t.Errorf("%s: %v: %s", unit, err, said.String())
		}
	}
}
