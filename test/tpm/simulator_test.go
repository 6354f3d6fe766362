package tpm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-eventlog/register"
	"github.com/google/go-eventlog/tcg"
	eventlogs "github.com/google/go-eventlog/testdata"
	"github.com/google/go-tpm/tpm2"
	"github.com/google/go-tpm/tpm2/transport"
	"github.com/google/go-tpm/tpm2/transport/simulator"

	configv1alpha1 "github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/machines"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/tpm"
)

// start starts a simulator that answers on a socket, as an emulator does: one command for each connection.
func start(t *testing.T) (transport.TPM, string) {
	t.Helper()
	simulated, err := simulator.OpenSimulator()
	if err != nil {
		t.Fatal(err)
	}
	folder, err := os.MkdirTemp("", "tpm") // the path of a socket is limited to 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(folder, "tpm.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			command := make([]byte, 4096)
			if n, err := connection.Read(command); err == nil {
				if response, err := simulated.Send(command[:n]); err == nil {
					_, _ = connection.Write(response)
				}
			}
			connection.Close()
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		<-ended
		simulated.Close()
		os.RemoveAll(folder)
	})
	return simulated, socket
}

// boot measures a machine's event log into the TPM.
func boot(t *testing.T, device transport.TPM, log []byte) {
	t.Helper()
	parsed, err := tcg.ParseEventLog(log, tcg.ParseOpts{AllowPadding: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range parsed.Events(register.HashSHA256) {
		if event.UntrustedType() == tcg.NoAction {
			continue
		}
		_, err := tpm2.PCRExtend{
			PCRHandle: tpm2.AuthHandle{Handle: tpm2.TPMHandle(event.Index), Auth: tpm2.PasswordAuth(nil)},
			Digests:   tpm2.TPMLDigestValues{Digests: []tpm2.TPMTHA{{HashAlg: tpm2.TPMAlgSHA256, Digest: event.ReplayedDigest()}}},
		}.Execute(device)
		if err != nil {
			t.Fatal(err)
		}
	}
}

type registered struct{ machine *v1alpha1.Machine }

func (r registered) Find(_ context.Context, _ *attest.Request, proof *machines.Proof) (*v1alpha1.Machine, error) {
	if !slices.Contains(r.machine.Spec.TPM.EKHashes, proof.EKHash) {
		return nil, attest.Refuse(machines.MachineNotRegistered, "%s", proof.EKHash)
	}
	return r.machine, nil
}

// join runs both rounds.
func join(t *testing.T, a *tpm.Attestor, c *tpm.Collector) (*attest.Identity, error) {
	t.Helper()
	about := attest.Binding{PublicKey: "sha256:" + hex.EncodeToString(bytes.Repeat([]byte{0xab}, sha256.Size))}
	body, err := c.Collect(t.Context(), about)
	if err != nil {
		t.Fatal(err)
	}
	req := &attest.Request{NodeName: "worker-1", RemoteAddr: netip.MustParseAddr("10.0.0.7"), Body: body}
	id, err := a.Attest(t.Context(), req)
	next, ok := errors.AsType[*attest.Continue](err)
	if !ok {
		return id, err
	}
	if req.Body, err = c.Respond(t.Context(), about, next.Challenge); err != nil {
		t.Fatal(err)
	}
	return a.Attest(t.Context(), req)
}

// TestSimulator joins with a TPM into which the boot of a real machine was measured: its event log leads to the values in the
// quote, and another policy refuses it.
func TestSimulator(t *testing.T) {
	device, socket := start(t)
	log := eventlogs.Rhel8EventLog
	boot(t, device, log)
	file := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(file, log, 0o600); err != nil {
		t.Fatal(err)
	}
	collector := tpm.NewCollector(tpm.CollectorOptions{Device: socket, EventLog: file})
	hash, err := collector.EKHash()
	if err != nil {
		t.Fatal(err)
	}
	challenges, err := attest.NewChallenges(make([]byte, attest.ChallengeKeySize), nil)
	if err != nil {
		t.Fatal(err)
	}
	secure := configv1alpha1.TPMPolicy{Name: "secure", SecureBoot: true}
	for _, tc := range []struct {
		rule   string
		policy configv1alpha1.TPMPolicy
		code   string // empty: allowed
	}{
		{"Secure Boot was on", secure, ""},
		{"the value of a PCR is another one", configv1alpha1.TPMPolicy{Name: "other", PCRs: zeros(7)}, "PCRsNotAllowed"},
		{"the events are others", configv1alpha1.TPMPolicy{Name: "events", Events: zeros(4)}, "PCRsNotAllowed"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			machine := &v1alpha1.Machine{
				Spec: v1alpha1.MachineSpec{NodeName: "worker-1", TPM: &v1alpha1.MachineTPM{EKHashes: []string{hash}}},
			}
			attestor, err := tpm.New(tpm.Options{
				Machines: registered{machine}, Sealer: challenges,
				TPM: configv1alpha1.TPM{Policies: []configv1alpha1.TPMPolicy{tc.policy}},
			})
			if err != nil {
				t.Fatal(err)
			}
			id, err := join(t, attestor, collector)
			refused, _ := errors.AsType[*attest.Refusal](err)
			switch {
			case tc.code == "" && (err != nil || id.NodeName != "worker-1"):
				t.Errorf("got %+v, %v", id, err)
			case tc.code != "" && (refused == nil || string(refused.Code) != tc.code):
				t.Errorf("got %+v, %v, want %s", id, err, tc.code)
			}
		})
	}
}

// zeros allows one value of a PCR.
func zeros(pcr int32) []configv1alpha1.PCRValues {
	return []configv1alpha1.PCRValues{{PCR: pcr, Values: []string{"00"}}}
}
