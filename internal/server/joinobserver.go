package server

import (
	"github.com/node-authorizer/node-authorizer/approve"
	"github.com/node-authorizer/node-authorizer/bootstrap"
	"github.com/node-authorizer/node-authorizer/internal/approver"
	"github.com/node-authorizer/node-authorizer/internal/observe"
)

// joinObserver counts and logs what becomes of machines.
type joinObserver struct {
	metrics *observe.Metrics
	log     *observe.Refusals
}

// Attested implements bootstrap.Observer.
func (o joinObserver) Attested(event bootstrap.Event) {
	a := &observe.Attestation{
		Attestor: event.Attestor, Outcome: observe.AttestationOutcome(event.Outcome), Code: event.Code,
		Node: event.Asked, RemoteAddr: event.RemoteAddr.String(), InstanceID: event.InstanceID,
		Detail: event.Detail, Err: event.Err, Duration: event.Duration,
	}
	o.metrics.Attested(a)
	o.log.Attested(a)
}

// Decided implements approver.Observer.
func (o joinObserver) Decided(event approver.Event) {
	c := &observe.CertificateRequest{
		Name: event.Request, Kind: event.Kind.String(), Outcome: certificateOutcome(event), Code: event.Code,
		Node: event.Node, Message: event.Message, Err: event.Err, Waited: event.Waited,
	}
	o.metrics.CertificateRequested(c)
	o.log.CertificateRequested(c)
}

// Leading implements approver.Observer.
func (o joinObserver) Leading(leads bool) { o.metrics.Leading(leads) }

// TooOld implements approver.Observer.
func (o joinObserver) TooOld() { o.metrics.TooOld(observe.EndpointApprover) }

func certificateOutcome(event approver.Event) observe.CertificateOutcome {
	switch {
	case event.Err != nil:
		return observe.CertificateUnanswered
	case event.Outcome == approve.Approve:
		return observe.CertificateApproved
	case event.Outcome == approve.Deny:
		return observe.CertificateDenied
	}
	return observe.CertificateLeft
}
