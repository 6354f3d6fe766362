package server

import (
	"github.com/node-authorizer/node-authorizer/internal/join/bootstrap"
	"github.com/node-authorizer/node-authorizer/internal/join/controller"
	"github.com/node-authorizer/node-authorizer/internal/server/observe"
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

// Decided implements controller.Observer.
func (o joinObserver) Decided(event controller.Event) {
	o.metrics.Decided(&event)
	o.log.Decided(&event)
}

// Leading implements controller.Observer.
func (o joinObserver) Leading(leads bool) { o.metrics.Leading(leads) }

// TooOld implements controller.Observer.
func (o joinObserver) TooOld() { o.metrics.TooOld(observe.EndpointApprover) }
