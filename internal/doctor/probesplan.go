package doctor

import (
	"fmt"

	"github.com/node-authorizer/node-authorizer/internal/probe"
)

// asked returns the status of a step from probes, if no flags are known and the probes tell: done if
// all hold, todo if one does not.
func (p *planner) asked(ids ...probe.ID) (Check, bool) {
	check := Check{Status: StatusDone}
	if len(p.setups) > 0 {
		return check, false
	}
	for _, id := range ids {
		i := p.report.probe(id)
		if i == nil || i.Outcome == probe.Undetermined {
			return check, false
		}
		if i.Outcome == probe.DoesNotHold {
			check.Status = StatusToDo
		}
		check.Evidence = append(check.Evidence, fmt.Sprintf("probe %s: %s", id, i.Why))
	}
	return check, true
}

// probe returns a probe; nil if it was not made.
func (r *Report) probe(id probe.ID) *probe.Probe {
	return (&probe.Results{Probes: r.Probes}).Get(id)
}
