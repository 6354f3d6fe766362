// Package swtpm starts TPM emulators for tests (https://github.com/stefanberger/swtpm; the Debian packages swtpm and
// swtpm-tools).
package swtpm

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Authority issues certificates for the endorsement keys of emulators.
type Authority struct{ folder string }

// NewAuthority returns an authority that makes its key with the first emulator. The test is skipped if swtpm is not
// installed.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	for _, program := range []string{"swtpm", "swtpm_setup", "swtpm_localca"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed: install the packages swtpm and swtpm-tools", program)
		}
	}
	a := &Authority{t.TempDir()}
	write(t, a.path("localca.conf"), fmt.Sprintf("statedir = %[1]s\nsigningkey = %[1]s/signkey.pem\nissuercert = %[1]s/issuercert.pem\n"+
		"certserial = %[1]s/certserial\n", a.folder))
	write(t, a.path("localca.options"), "--platform-manufacturer Test\n--platform-version 1\n--platform-model Test\n")
	write(t, a.path("setup.conf"), fmt.Sprintf("create_certs_tool = swtpm_localca\ncreate_certs_tool_config = %s\n"+
		"create_certs_tool_options = %s\n", a.path("localca.conf"), a.path("localca.options")))
	return a
}

func (a *Authority) path(name string) string { return filepath.Join(a.folder, name) }

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Certificates are the files with the authority's certificates, PEM. They exist once there is an emulator.
func (a *Authority) Certificates() []string {
	return []string{a.path("issuercert.pem"), a.path("swtpm-localca-rootca-cert.pem")}
}

// Pool has the authority's certificates.
func (a *Authority) Pool(t testing.TB) *x509.CertPool {
	t.Helper()
	pool := x509.NewCertPool()
	for _, file := range a.Certificates() {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
			certificate, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			pool.AddCert(certificate)
		}
	}
	return pool
}

// Start starts an emulator with a certificate, until the end of the test, and returns its socket. Setup are further arguments for
// swtpm_setup: --ecc for an endorsement key of that kind.
func (a *Authority) Start(t testing.TB, setup ...string) (socket string) {
	t.Helper()
	// The path of a socket is limited to 107 bytes.
	folder, err := os.MkdirTemp("", "swtpm")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	arguments := append([]string{
		"--tpm2", "--tpmstate", folder, "--config", a.path("setup.conf"), "--create-ek-cert", "--pcr-banks", "sha256", "--overwrite",
	}, setup...)
	if output, err := exec.CommandContext(t.Context(), "swtpm_setup", arguments...).CombinedOutput(); err != nil {
		t.Fatalf("swtpm_setup: %v\n%s", err, output)
	}
	socket = filepath.Join(folder, "tpm.sock")
	emulator := exec.Command("swtpm", "socket", "--tpm2", "--tpmstate", "dir="+folder, "--server", "type=unixio,path="+socket,
		"--flags", "not-need-init,startup-clear")
	if err := emulator.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = emulator.Process.Kill()
		_ = emulator.Wait()
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if connection, err := net.Dial("unix", socket); err == nil {
			connection.Close()
			return socket
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}
