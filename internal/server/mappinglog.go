package server

import (
	"time"

	"github.com/go-logr/logr"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam/sts"
	"github.com/node-authorizer/node-authorizer/internal/aws/mappings"
	"github.com/node-authorizer/node-authorizer/internal/server/observe"
)

// findingsLogged limits how many findings of one edit are logged, because an edit can cause any number.
// The metric counts all of them.
const findingsLogged = 50

// mappingLog logs changes of mappings, and each finding once.
type mappingLog struct{ logger logr.Logger }

// MappingsChanged implements mappings.Observer.
func (l mappingLog) MappingsChanged(c mappings.Change) {
	s := &c.Source
	l.logger.Info("mappings read", "source", s.Name, "roles", s.Mappings[iam.RoleMapping], "users", s.Mappings[iam.UserMapping],
		"accounts", s.Mappings[iam.AccountMapping], "findings", len(s.Findings))
	for i, f := range c.Found {
		if i == findingsLogged {
			l.logger.Info("more findings in mappings are not logged", "source", s.Name, "findings", len(c.Found)-i)
			break
		}
		l.logger.Info("finding in mappings", "severity", string(f.Severity), "code", string(f.Code), "place", f.Place.String(),
			"message", f.Message, "consequence", f.Consequence, "remedy", f.Remedy)
	}
	for _, f := range c.Fixed[:min(len(c.Fixed), findingsLogged)] {
		l.logger.Info("finding in mappings is fixed", "code", string(f.Code), "place", f.Place.String())
	}
}

// MappingsUnreachable implements mappings.Observer.
func (l mappingLog) MappingsUnreachable(source string, err error) {
	if err == nil {
		l.logger.Info("mappings can be read again", "source", source)
		return
	}
	l.logger.Error(err, "mappings cannot be read; the previous ones stay in use until they are older than cluster.maxStaleness",
		"source", source)
}

// EventFailed implements mappings.Observer.
func (l mappingLog) EventFailed(err error) {
	l.logger.Info("no event could be created for a finding in mappings", "cause", err.Error())
}

// stsObserver counts requests to STS.
type stsObserver struct{ metrics *observe.Metrics }

// STSRequest implements sts.Observer.
func (o stsObserver) STSRequest(outcome sts.Outcome, status int, took time.Duration) {
	o.metrics.STSRequest(string(outcome), status, took)
}

// TokenCache implements sts.Observer.
func (o stsObserver) TokenCache(hit bool) { o.metrics.TokenCache(hit) }
