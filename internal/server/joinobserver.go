package server

import (
	"github.com/node-authorizer/node-authorizer/bootstrap"
	"github.com/node-authorizer/node-authorizer/internal/approver"
	"github.com/node-authorizer/node-authorizer/internal/observe"
)

// joinObserver counts and logs requests of machines.
type joinObserver struct {
	metrics *observe.Metrics
	log     *observe.Refusals
}

// Attested implements bootstrap.Observer.
func (o joinObserver) Attested(event bootstrap.Event) {
	o.metrics.Attested(&event)
	o.log.Attested(&event)
}

// Decided implements approver.Observer.
func (o joinObserver) Decided(event approver.Event) {
	o.metrics.Decided(&event)
	o.log.Decided(&event)
}

// Leading implements approver.Observer.
func (o joinObserver) Leading(leads bool) { o.metrics.Leading(leads) }

// TooOld implements approver.Observer.
func (o joinObserver) TooOld() { o.metrics.TooOld(observe.EndpointApprover) }
