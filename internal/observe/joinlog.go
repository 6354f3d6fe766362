package observe

// Attested logs a machine's request: each join, and refusals and errors as the
// limit allows. An address has the share that a node has of other refusals.
func (r *Refusals) Attested(a *Attestation) {
	l := new(line).add("node", a.Node).add("instance", a.InstanceID).add("address", a.RemoteAddr).
		add("attestor", a.Attestor).add("code", string(a.Code)).add("detail", a.Detail)
	if a.Outcome == TokenIssued {
		r.always.Info("machine attested: token issued", l.fields...)
	} else if r.logger.Enabled() && r.limit.allows(a.RemoteAddr) {
		r.log(attestationMessage(a.Outcome), l, a.Err)
	}
}

func attestationMessage(outcome AttestationOutcome) string {
	switch outcome {
	case TokenRepeated:
		return "machine attested again: same token"
	case MachineRefused:
		return "machine refused"
	}
	return "machine could not be attested"
}

// CertificateRequested logs a decision about a CertificateSigningRequest: each
// approval, and denials and errors as the limit allows.
func (r *Refusals) CertificateRequested(c *CertificateRequest) {
	l := new(line).add("node", c.Node).add("request", c.Name).add("kind", c.Kind).add("code", string(c.Code)).add("reason", c.Message)
	switch c.Outcome {
	case CertificateApproved:
		r.always.Info("certificate request approved", l.fields...)
	case CertificateLeft:
	case CertificateDenied, CertificateUnanswered:
		if r.logger.Enabled() && r.limit.allows(c.Node) {
			r.log(certificateMessage(c.Outcome), l, c.Err)
		}
	}
}

func certificateMessage(outcome CertificateOutcome) string {
	if outcome == CertificateDenied {
		return "certificate request denied"
	}
	return "certificate request could not be decided"
}
