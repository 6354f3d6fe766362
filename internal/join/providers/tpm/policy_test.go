package tpm

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-eventlog/register"
	"github.com/google/go-eventlog/tcg"
	eventlogs "github.com/google/go-eventlog/testdata"

	configv1alpha1 "github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
)

// measured gives a TPM an event log, and the values of PCRs to which it leads.
func (f *fakeTPM) measured(log []byte) {
	f.t.Helper()
	parsed, err := tcg.ParseEventLog(log, tcg.ParseOpts{AllowPadding: true})
	if err != nil {
		f.t.Fatal(err)
	}
	for _, event := range parsed.Events(register.HashSHA256) {
		if event.UntrustedType() == tcg.NoAction {
			continue
		}
		value := sha256.Sum256(append(bytes.Clone(f.pcrs[event.Index]), event.ReplayedDigest()...))
		f.pcrs[event.Index] = value[:]
	}
	f.log = log
}

// digestsOf returns the digests of a PCR in an event log.
func digestsOf(t testing.TB, log []byte, pcr int) (digests []string) {
	t.Helper()
	parsed, err := tcg.ParseEventLog(log, tcg.ParseOpts{AllowPadding: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range parsed.Events(register.HashSHA256) {
		if event.Index == pcr {
			digests = append(digests, hex.EncodeToString(event.ReplayedDigest()))
		}
	}
	return digests
}

// The logs are of real machines; see the source of github.com/google/go-eventlog/testdata.
func TestPolicies(t *testing.T) {
	secure, insecure := eventlogs.Rhel8EventLog, eventlogs.Ubuntu2104NoSecureBootEventLog
	bootDigests := digestsOf(t, secure, 4)
	zero := strings.Repeat("0", 64)
	for _, tc := range []struct {
		rule     string
		log      []byte
		policies policies
		machine  string // the policy of the Machine
		change   func(*fakeTPM)
		code     string // empty: allowed
		says     string
	}{
		{
			rule: "the value of a PCR is allowed", says: "; policy zero",
			policies: policies{{Name: "zero", PCRs: values(byPCR{0: {zero}, 9: {"ab", zero}})}},
		},
		{
			rule: "the value of a PCR is not allowed", policies: policies{{Name: "zero", PCRs: values(byPCR{4: {zero}, 7: {"ab"}})}},
			code: "PCRsNotAllowed", says: "policy zero: PCR 7 is " + zero,
		},
		{
			rule: "one policy is enough", says: "; policy right",
			policies: policies{{Name: "wrong", PCRs: values(byPCR{4: {"ab"}})}, {Name: "right", PCRs: values(byPCR{4: {zero}})}},
		},
		{
			rule: "the policy of the Machine must allow it", machine: "wrong", code: "PCRsNotAllowed", says: "policy wrong: PCR 4",
			policies: policies{{Name: "wrong", PCRs: values(byPCR{4: {"ab"}})}, {Name: "right", PCRs: values(byPCR{4: {zero}})}},
		},
		{
			rule: "the policy of the Machine is not configured", machine: "gone", code: "PCRsNotAllowed",
			says:     `the policy "gone" of the machine is not configured`,
			policies: policies{{Name: "right", PCRs: values(byPCR{4: {zero}})}},
		},
		{rule: "the policy of the Machine without policies", machine: "gone", code: "PCRsNotAllowed", says: "is not configured"},
		{rule: "Secure Boot is on", log: secure, policies: policies{{Name: "secure", SecureBoot: true}}, says: "; policy secure"},
		{
			rule: "Secure Boot is off", log: insecure, policies: policies{{Name: "secure", SecureBoot: true}},
			code: "PCRsNotAllowed", says: "Secure Boot is off",
		},
		{
			rule: "there is no event log", policies: policies{{Name: "secure", SecureBoot: true}},
			code: "EventLogInvalid", says: "there is no event log",
		},
		{
			rule: "an event log of another boot", log: secure, policies: policies{{Name: "secure", SecureBoot: true}},
			change: func(f *fakeTPM) { f.log = insecure }, code: "EventLogInvalid",
		},
		{
			rule: "an event log without its end", log: secure, policies: policies{{Name: "secure", SecureBoot: true}},
			change: func(f *fakeTPM) { f.log = f.log[:len(f.log)/2] }, code: "EventLogInvalid",
		},
		{
			rule: "a log without events, of PCRs without values", policies: policies{{Name: "secure", SecureBoot: true}}, log: secure[:65],
			code: "EventLogInvalid",
		},
		{
			rule: "every event has an allowed digest", log: secure,
			policies: policies{{Name: "image", Events: values(byPCR{4: bootDigests})}},
			says:     "; policy image",
		},
		{
			rule: "an event has another digest", log: secure,
			policies: policies{{Name: "image", Events: values(byPCR{4: bootDigests[1:]})}},
			code:     "PCRsNotAllowed", says: "of PCR 4 has the digest " + bootDigests[0],
		},
		{
			rule: "a PCR without events", log: secure, policies: policies{{Name: "image", Events: values(byPCR{11: bootDigests})}},
			code: "PCRsNotAllowed", says: "there is no event of PCR 11",
		},
		{
			rule: "a PCR with a value and no events", log: secure,
			policies: policies{{Name: "image", Events: values(byPCR{11: bootDigests})}},
			change:   func(f *fakeTPM) { f.pcrs[11] = slices.Repeat([]byte{1}, 32) }, code: "PCRsNotAllowed",
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			f := newFakeTPM(t)
			if len(tc.log) > 100 {
				f.measured(tc.log)
			}
			f.log = tc.log
			if tc.change != nil {
				tc.change(f)
			}
			machines := known(f)
			machines[f.hash()].Spec.TPM = &v1alpha1.MachineTPM{EKHashes: []string{f.hash()}, Policy: tc.machine}
			s := newService(t, Options{Machines: machines, TPM: settings{Policies: tc.policies}})
			id, err := s.ask(evidence{Answer: f.answer(s.challenged(f.keys()))})
			if tc.code != "" {
				refusedAs(t, id, err, tc.code)
				if err != nil && !strings.Contains(err.Error(), tc.says) {
					t.Errorf("%v, want %s", err, tc.says)
				}
				return
			}
			if err != nil || !strings.HasSuffix(id.Description, tc.says) {
				t.Errorf("got %+v, %v, want %s", id, err, tc.says)
			}
		})
	}
}

// Every log of a real machine that the library has leads to the values of its PCRs, and no other PCR's value is accepted with it.
func TestGenuineEventLogs(t *testing.T) {
	for name, log := range map[string][]byte{
		"arch-linux-workstation": eventlogs.ArchLinuxWorkstationEventLog,
		"rhel8-uefi":             eventlogs.Rhel8EventLog,
		"ubuntu-1804-amd-sev":    eventlogs.Ubuntu1804AmdSevEventLog, "ubuntu-2104-no-dbx": eventlogs.Ubuntu2104NoDbxEventLog,
		"ubuntu-2104-no-secure-boot": eventlogs.Ubuntu2104NoSecureBootEventLog,
		"ubuntu-2404-amd-sevsnp":     eventlogs.Ubuntu2404AmdSevSnpEventLog,
		"cos-85-amd-sev":             eventlogs.Cos85AmdSevEventLog, "cos-93-amd-sev": eventlogs.Cos93AmdSevEventLog,
		"cos-101-amd-sev": eventlogs.Cos101AmdSevEventLog,
	} {
		f := newFakeTPM(t)
		f.measured(log)
		pcrs := quotedByDefault()
		replay := func() error {
			b := &booted{values: map[int][]byte{}, log: log}
			for _, pcr := range pcrs {
				b.values[pcr] = f.pcrs[pcr]
			}
			return b.replay()
		}
		if err := replay(); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, pcr := range pcrs {
			right := f.pcrs[pcr]
			f.pcrs[pcr] = slices.Repeat([]byte{7}, 32)
			if replay() == nil {
				t.Errorf("%s: another value of PCR %d is accepted", name, pcr)
			}
			f.pcrs[pcr] = right
		}
	}
}

type (
	settings = configv1alpha1.TPM
	policies = []configv1alpha1.TPMPolicy
	byPCR    = map[int32][]string
)

// values returns values of PCRs in the form of the configuration.
func values(of byPCR) (all []configv1alpha1.PCRValues) {
	for _, pcr := range slices.Sorted(maps.Keys(of)) {
		all = append(all, configv1alpha1.PCRValues{PCR: pcr, Values: of[pcr]})
	}
	return all
}
