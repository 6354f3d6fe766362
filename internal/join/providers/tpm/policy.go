package tpm

import (
	"crypto"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-eventlog/register"
	"github.com/google/go-eventlog/tcg"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
)

// policy says what a machine may have booted: what the firmware and the boot loader measured into the PCRs (TCG PC
// Client Platform Firmware Profile, section 3). All of it must hold. Values and digests are in hexadecimal.
type policy v1alpha1.TPMPolicy

// secureBootPCR is the PCR of the state of Secure Boot.
const secureBootPCR = 7

// quotedByDefault are the PCRs of firmware, boot loader and Secure Boot.
func quotedByDefault() []int { return []int{0, 1, 2, 3, 4, 5, 6, 7} }

// needsLog reports whether a policy is about the event log.
func (p *policy) needsLog() bool { return p.SecureBoot || len(p.Events) > 0 }

// quotedPCRs returns the PCRs that policies are about, in order.
func quotedPCRs(policies []v1alpha1.TPMPolicy) []int {
	needed := map[int]bool{}
	for i := range policies {
		p := &policies[i]
		for _, values := range slices.Concat(p.PCRs, p.Events) {
			needed[int(values.PCR)] = true
		}
		if p.SecureBoot {
			needed[secureBootPCR] = true
		}
	}
	if len(needed) == 0 {
		return quotedByDefault()
	}
	return slices.Sorted(maps.Keys(needed))
}

// booted is what a machine has booted: verified values of PCRs, and the log that leads to them.
type booted struct {
	values map[int][]byte
	log    []byte
	// events is set by replay.
	events []tcg.Event
}

// allowed returns the name of the policy that allows what a machine has booted. Only is the one that counts, if it is
// named. Without policies everything is allowed.
func allowed(policies []v1alpha1.TPMPolicy, only string, b *booted) (string, error) {
	var problems []string
	for i := range policies {
		p := (*policy)(&policies[i])
		if only != "" && p.Name != only {
			continue
		}
		problem, err := p.problem(b)
		if err != nil {
			return "", err
		}
		if problem == "" {
			return p.Name, nil
		}
		problems = append(problems, fmt.Sprintf("policy %s: %s", p.Name, problem))
	}
	switch {
	case len(problems) > 0:
		return "", attest.Refuse(PCRsNotAllowed, "%s", strings.Join(problems, "; "))
	case only != "":
		return "", attest.Refuse(PCRsNotAllowed, "the policy %q of the machine is not configured", only)
	}
	return "", nil
}

// problem says what a policy does not allow; empty if it allows all.
func (p *policy) problem(b *booted) (string, error) {
	for _, want := range p.PCRs {
		if value := hex.EncodeToString(b.values[int(want.PCR)]); !slices.Contains(want.Values, value) {
			return fmt.Sprintf("PCR %d is %s", want.PCR, value), nil
		}
	}
	if !p.needsLog() {
		return "", nil
	}
	if err := b.replay(); err != nil {
		return "", err
	}
	for i := range p.Events {
		if problem := digests(&p.Events[i], b.events); problem != "" {
			return problem, nil
		}
	}
	if !p.SecureBoot {
		return "", nil
	}
	on, err := secureBoot(b.events)
	if err == nil && !on {
		return "Secure Boot is off", nil
	}
	return "", err
}

// digests says which event of a PCR is not allowed. The types of events are not measured, so all of them count.
func digests(want *v1alpha1.PCRValues, events []tcg.Event) string {
	found := false
	for _, event := range events {
		if int(event.MRIndex()) != int(want.PCR) {
			continue
		}
		found = true
		if digest := hex.EncodeToString(event.ReplayedDigest()); !slices.Contains(want.Values, digest) {
			return fmt.Sprintf("event %d of PCR %d has the digest %s", event.Num(), want.PCR, digest)
		}
	}
	if !found {
		return fmt.Sprintf("there is no event of PCR %d", want.PCR)
	}
	return ""
}

// replay reads the event log, which must lead to the values of the PCRs.
func (b *booted) replay() error {
	if b.events != nil {
		return nil
	}
	if len(b.log) == 0 {
		return attest.Refuse(EventLogInvalid, "there is no event log")
	}
	var registers []register.MR
	for _, pcr := range slices.Sorted(maps.Keys(b.values)) {
		registers = append(registers, register.PCR{Index: pcr, Digest: b.values[pcr], DigestAlg: crypto.SHA256})
	}
	if !plausible(b.log) {
		return attest.Refuse(EventLogInvalid, "it names more or longer digests than TPMs have")
	}
	events, err := tcg.ParseAndReplay(b.log, registers, tcg.ParseOpts{AllowPadding: true})
	if err != nil {
		return attest.Refuse(EventLogInvalid, "%.300s", err)
	}
	b.events = events
	return nil
}
