package containment

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/badjson"
	"github.com/node-authorizer/node-authorizer/quarantine"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// quarantines compiles Quarantines. Only one goroutine compiles.
type quarantines struct {
	// maxNodes returns how many nodes may be quarantined; false if that is not known yet.
	maxNodes func() (int, bool)
	set      *atomic.Pointer[quarantine.Set]
	known    map[types.UID]*entry

	// undecided is set if the limit decides, and is not known.
	undecided atomic.Bool
	// nodes is the number of quarantined nodes.
	nodes atomic.Int64
	// limit is the limit that was applied, and limited whether it may decide.
	limit   int
	limited bool
	// ends is when the next quarantine ends; zero if none does.
	ends time.Time
}

// entry is a Quarantine.
type entry struct {
	spec string
	// use is in use if it has not ended and the limit allows it; nil if nothing is.
	use     *v1alpha1.Quarantine
	code    verdict.Code
	message string
	// holds is set if the quarantine was enforced before: the limit does not end it.
	holds bool
}

func newQuarantines(maxNodes func() (int, bool)) *quarantines {
	q := &quarantines{maxNodes: maxNodes, set: new(atomic.Pointer[quarantine.Set]), known: map[types.UID]*entry{}}
	q.set.Store(new(quarantine.Set))
	return q
}

// compile implements compiler.
func (q *quarantines) compile(objects []ranked, now time.Time) []outcome {
	known, outcomes := make(map[types.UID]*entry, len(objects)), make([]outcome, 0, len(objects))
	var use []*v1alpha1.Quarantine
	for _, o := range objects {
		next := q.read(&o)
		if was := q.known[o.UID]; was != nil {
			next.holds = was.holds
		} else {
			next.holds = o.status.accepted()
		}
		known[o.UID] = next
		if next.use != nil {
			next.use = holding(next.use, next.holds)
			use = append(use, next.use)
		}
		outcomes = append(outcomes, outcome{object: o.object, Code: next.code, Message: next.message})
	}
	q.known = known
	limit, isKnown := q.maxNodes()
	set, excess := quarantine.NewSet(use, max(limit, 1), now)
	nodes, _ := set.Len()
	q.nodes.Store(int64(nodes))
	// One node always may be quarantined, so that the limit decides about more only.
	q.limited = nodes > 1 || len(excess) > 0
	q.limit = limit
	q.undecided.Store(q.limited && !isKnown)
	q.set.Store(set)
	q.place(outcomes, excess, now)
	if isKnown {
		for _, o := range outcomes {
			q.known[o.UID].holds = o.Code == Accepted || q.known[o.UID].holds && o.Code != Expired
		}
	}
	return outcomes
}

// holding returns the quarantine with a status that says whether it holds, as quarantine.NewSet reads it.
func holding(use *v1alpha1.Quarantine, holds bool) *v1alpha1.Quarantine {
	with := *use
	with.Status = v1alpha1.QuarantineStatus{}
	if holds {
		with.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionTrue}}
	}
	return &with
}

// place says which valid quarantines do not hold: those that have ended, and those of too many nodes.
// It notes when the next one ends.
func (q *quarantines) place(outcomes []outcome, excess []*v1alpha1.Quarantine, now time.Time) {
	exceeds := make(map[*v1alpha1.Quarantine]bool, len(excess))
	for _, e := range excess {
		exceeds[e] = true
	}
	q.ends = time.Time{}
	for i := range outcomes {
		o := &outcomes[i]
		is := q.known[o.UID].use
		if is == nil {
			continue
		}
		o.target, o.reason = target(is), is.Spec.Reason
		end := is.Spec.ExpirationTime
		ended := end != nil && !now.Before(end.Time)
		if end != nil && !ended && (q.ends.IsZero() || end.Time.Before(q.ends)) {
			q.ends = end.Time
		}
		switch {
		case o.Code != Accepted:
		case ended:
			o.Code, o.Message = Expired, "it ended at its expirationTime"
		case exceeds[is]:
			o.Code = LimitExceeded
			o.Message = "too many nodes are quarantined already (containment.maxQuarantinedNodes)"
		}
	}
}

// due implements compiler: a quarantine has ended, or the limit has changed.
func (q *quarantines) due(now time.Time) bool {
	if !q.ends.IsZero() && !now.Before(q.ends) {
		return true
	}
	limit, known := q.maxNodes()
	return q.limited && (limit != q.limit || known == q.undecided.Load())
}

func (q *quarantines) read(o *ranked) *entry {
	was := q.known[o.UID]
	if was == nil {
		was = &entry{}
	}
	switch {
	case o.exceeds:
		return &entry{code: LimitExceeded, message: exceedsMessage}
	case o.tooLarge():
		return &entry{use: was.use, code: TooLarge, message: tooLargeMessage(o, lastValidQuarantine)}
	case o.spec == nil: // it is being read again
		return &entry{use: was.use, code: LimitExceeded, message: exceedsMessage}
	case was.spec != "" && was.spec == string(o.spec):
		return was
	}
	next := &entry{spec: string(o.spec), code: Accepted, message: "the servers use this generation"}
	as := &v1alpha1.Quarantine{ObjectMeta: o.ObjectMeta}
	err := json.Unmarshal(o.spec, &as.Spec, asKubernetes())
	if err != nil {
		err = fmt.Errorf("spec: %w", badjson.Explain(err))
	} else {
		err = quarantine.Validate(as).ToAggregate()
	}
	if next.use = as; err != nil {
		next.use, next.code = was.use, Invalid
		next.message = clipped(fmt.Sprintf("%v; %s", err, lastValidQuarantine))
	}
	return next
}

// target names what a quarantine cuts off.
func target(q *v1alpha1.Quarantine) string {
	if q.Spec.Node != "" {
		return "node " + q.Spec.Node
	}
	return "credential " + q.Spec.Credential
}
