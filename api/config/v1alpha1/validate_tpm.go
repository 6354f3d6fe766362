package v1alpha1

import (
	"regexp"
	"slices"
	"strings"
)

// maxPCR is the last PCR of a PC. Programs can reset it, and the one for debugging (TCG PC Client Platform TPM Profile).
const (
	maxPCR   = 23
	debugPCR = 16
)

var isDigest = regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString

// tpmValues checks each value alone. The server parses the template of names.
func (v *validation) tpmValues(t *TPM) {
	const field = "bootstrap.tpm.policies"
	for i := range t.Policies {
		p, path := &t.Policies[i], elementPath(field, i)
		if v.required(path+".name", p.Name, "a name for the policy, which a Machine can choose"); len(p.Name) > 63 {
			v.wrong(path+".name", "want up to 63 characters%s", given(p.Name))
		}
		if p.Name != "" && slices.ContainsFunc(t.Policies[:i], func(other TPMPolicy) bool { return other.Name == p.Name }) {
			v.wrong(path+".name", "%s is given twice: remove one", quoted(p.Name))
		}
		if len(p.PCRs)+len(p.Events) == 0 && !p.SecureBoot {
			v.wrong(path, "it allows everything: write pcrs, events or secureBoot, or remove the policy")
		}
		v.pcrs(path+".pcrs", p.PCRs)
		v.pcrs(path+".events", p.Events)
	}
}

func (v *validation) pcrs(field string, all []PCRValues) {
	for i := range all {
		values, path := &all[i], elementPath(field, i)
		if v.number(path+".pcr", int64(values.PCR), 0, maxPCR); values.PCR == debugPCR || values.PCR == maxPCR {
			v.wrong(path+".pcr", "every program with access to the TPM can reset PCR %d, and give it any value: choose another", values.PCR)
		}
		if slices.ContainsFunc(all[:i], func(other PCRValues) bool { return other.PCR == values.PCR }) {
			v.wrong(path+".pcr", "PCR %d is given twice: remove one", values.PCR)
		}
		if len(values.Values) == 0 {
			v.wrong(path+".values", "empty: no machine would be allowed")
		}
		v.list(path+".values", values.Values, isDigest, "a SHA-256 digest: 64 hexadecimal digits in lower case")
	}
}

// tpm checks how the values fit together.
func (v *validation) tpm(b *Bootstrap) {
	t := &b.TPM
	switch {
	case t.NodeName == "":
	case t.CertificateAuthorities == "":
		v.wrong("bootstrap.tpm.certificateAuthorities", "required with bootstrap.tpm.nodeName: the authorities of the TPMs that may join")
	case b.Approval == ManualApproval:
		v.wrong("bootstrap.tpm.nodeName", "every machine with a TPM of the vendors joins, so none waits for approval: remove it, or set "+
			"bootstrap.approval to Registered")
	case !strings.Contains(t.NodeName, "{{"):
		v.wrong("bootstrap.tpm.nodeName", "want a template such as tpm-{{.EKHash}}%s", given(t.NodeName))
	}
	if b.Reattestation == ReattestNewerEvidence {
		v.alwaysNewer(b.Attestor)
	}
}

// alwaysNewer refuses a policy for evidence that is made for each request.
func (v *validation) alwaysNewer(attestor AttestorName) {
	v.wrong("bootstrap.reattestation", "NewerEvidence means Always with bootstrap.attestor: %s, because all evidence is "+
		"newer than the one before: choose another policy", attestor)
}
