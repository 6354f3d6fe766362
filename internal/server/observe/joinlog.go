package observe

import (
	"github.com/node-authorizer/node-authorizer/internal/join/approve"
	"github.com/node-authorizer/node-authorizer/internal/join/bootstrap"
	"github.com/node-authorizer/node-authorizer/internal/join/controller"
)

// Attested logs a machine's request for a token. Every issued token is logged; refusals and
// errors are subject to the limit, in which an address has the same share as a node.
func (r *Refusals) Attested(event *bootstrap.Event) {
	address := event.RemoteAddr.String()
	l := new(line).add("node", event.Asked).add("instance", event.InstanceID).add("address", address).
		add("attestor", event.Attestor).add("code", string(event.Code)).add("detail", event.Detail)
	switch {
	case event.Outcome == bootstrap.Issued:
		r.always.Info("machine attested: token issued", l.fields...)
	case event.Outcome == bootstrap.Challenged: // its answer is logged
	case r.logger.Enabled() && r.limit.allows(address):
		r.log(attestationMessage(event.Outcome), l, event.Err)
	}
}

func attestationMessage(outcome bootstrap.Outcome) string {
	switch outcome {
	case bootstrap.Repeated:
		return "machine attested again: same token"
	case bootstrap.Refused:
		return "machine refused"
	}
	return "machine could not be attested"
}

// Decided logs a decision about a CertificateSigningRequest. Every approval is logged;
// denials and errors are subject to the limit.
func (r *Refusals) Decided(event *controller.Event) {
	l := new(line).add("node", event.Node).add("request", event.Request).add("kind", event.Kind.String()).
		add("code", string(event.Code)).add("reason", event.Message)
	switch {
	case event.Err != nil:
		r.logLimited("certificate request could not be decided", l, event)
	case event.Outcome == approve.Approve:
		r.always.Info("certificate request approved", l.fields...)
	case event.Outcome == approve.Deny:
		r.logLimited("certificate request denied", l, event)
	case event.Code == approve.NamesNotVouched:
		r.logLimited("certificate request left pending", l, event)
	}
}

// logLimited logs a denial or an error about a node if the limit allows it.
func (r *Refusals) logLimited(message string, l *line, event *controller.Event) {
	if r.logger.Enabled() && r.limit.allows(event.Node) {
		r.log(message, l, event.Err)
	}
}
