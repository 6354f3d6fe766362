package server

import (
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"

	"github.com/node-authorizer/node-authorizer/internal/scope/containment"
)

// Limits of log lines about NodeScopes and Quarantines, because users who may write them can change them
// all the time. The metrics count all changes.
const (
	containmentLines    = 100
	containmentInterval = time.Second
)

// containmentLog logs the outcomes of NodeScopes and Quarantines.
type containmentLog struct {
	logger logr.Logger
	limit  *rate.Limiter
}

func newContainmentLog(logger logr.Logger) containmentLog {
	return containmentLog{logger, rate.NewLimiter(rate.Every(containmentInterval), containmentLines)}
}

// ContainmentChanged implements containment.Observer.
func (l containmentLog) ContainmentChanged(c containment.Change) {
	left := c.More
	for _, o := range c.Changed {
		if !l.limit.Allow() {
			left++
			continue
		}
		fields := []any{"resource", c.Resource, "name", o.Name, "generation", o.Generation, "code", string(o.Code), "message", o.Message}
		if o.Target != "" {
			fields = append(fields, "target", o.Target)
		}
		if o.Reason != "" {
			fields = append(fields, "reason", o.Reason)
		}
		l.logger.Info("containment changed", fields...)
	}
	for _, name := range c.Gone {
		if !l.limit.Allow() {
			left++
			continue
		}
		l.logger.Info("containment ended: the object was deleted", "resource", c.Resource, "name", name)
	}
	if left > 0 && l.limit.Allow() {
		l.logger.Info("more changes are not logged", "resource", c.Resource, "count", left)
	}
}

// ContainmentUnreachable implements containment.Observer.
func (l containmentLog) ContainmentUnreachable(resource string, err error) {
	if err == nil {
		l.logger.Info("the resource can be read again", "resource", resource)
		return
	}
	l.logger.Error(err, "the resource cannot be read: what was read stays in use until it is older than cluster.maxStaleness",
		"resource", resource)
}

// ContainmentWriteFailed implements containment.Observer.
func (l containmentLog) ContainmentWriteFailed(err error) {
	if l.limit.Allow() {
		l.logger.Info("a status or an Event could not be written", "cause", err.Error())
	}
}

// ContainmentUnrecorded implements containment.Observer.
func (l containmentLog) ContainmentUnrecorded(err error) {
	if err == nil {
		l.logger.Info("the number of quarantined nodes is recorded again")
		return
	}
	l.logger.Error(err, "the number of quarantined nodes is not recorded: if the cluster loses nodes, containment.maxQuarantinedNodes "+
		"ends quarantines. Let the server get and update the ConfigMap, or set a number of nodes",
		"configMap", containment.RecordNamespace+"/"+containment.RecordName)
}
