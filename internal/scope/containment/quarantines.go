package containment

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/scope/quarantine"
	"github.com/node-authorizer/node-authorizer/internal/strictjson"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// quarantines compiles Quarantines. What is in force depends only on the objects with their statuses, on the limit
// and on the record: servers that know the same give the same answers, even if they saw other objects before. A server enforces
// at once what the limit allows, and the status then keeps the place. The statuses that follow from a result do not
// change it, so that servers come to agree, in any order in which they see what others write.
//
// Only one goroutine compiles.
type quarantines struct {
	// maxNodes returns how many nodes may be quarantined; false if that is not known yet.
	maxNodes func() (int, bool)
	record   *record
	set      *atomic.Pointer[quarantine.Set]
	known    map[types.UID]*entry

	// undecided is set if the limit decides, and is not known.
	undecided atomic.Bool
	// nodes is the number of quarantined nodes.
	nodes atomic.Int64
	// limit is the limit that was applied, if limitKnown; limited is whether it may decide.
	limit               int
	limitKnown, limited bool
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
}

func newQuarantines(maxNodes func() (int, bool), record *record) *quarantines {
	q := &quarantines{maxNodes: maxNodes, record: record, set: new(atomic.Pointer[quarantine.Set]), known: map[types.UID]*entry{}}
	q.set.Store(new(quarantine.Set))
	return q
}

// compile implements compiler. While it is not known how many nodes may be quarantined, it returns no outcome
// that depends on it, and while the record should change and does not answer, none at all.
func (q *quarantines) compile(ctx context.Context, objects []ranked, now time.Time) []outcome {
	known, outcomes := make(map[types.UID]*entry, len(objects)), make([]outcome, 0, len(objects))
	var use []*v1alpha1.Quarantine
	for _, o := range objects {
		next := q.read(&o)
		known[o.UID] = next
		if next.use != nil {
			next.use = withStatus(next.use, o.status)
			use = append(use, next.use)
		}
		outcomes = append(outcomes, outcome{object: o.object, Code: next.code, Message: next.message})
	}
	q.known = known
	q.limit, q.limitKnown = q.maxNodes()
	excess, short := q.publish(use, now)
	if q.record.settle(ctx, int(q.nodes.Load()), q.limit, short, now) {
		excess, short = q.publish(use, now)
	}
	q.place(outcomes, excess, now)
	switch {
	case q.record.unsettled(int(q.nodes.Load()), short):
		return nil
	case !q.limitKnown:
		return slices.DeleteFunc(outcomes, func(o outcome) bool { return o.limited })
	}
	return outcomes
}

// publish publishes what is in force, and returns the quarantines for which the limit has no room. Short is set if
// servers have accepted one of these.
func (q *quarantines) publish(use []*v1alpha1.Quarantine, now time.Time) (excess []*v1alpha1.Quarantine, short bool) {
	// One node always may be quarantined.
	set, excess := quarantine.NewSet(use, quarantine.Limit{Nodes: max(q.limit, 1), Kept: q.record.kept()}, now)
	short = slices.ContainsFunc(excess, (*v1alpha1.Quarantine).Accepted)
	nodes, _ := set.Len()
	q.nodes.Store(int64(nodes))
	q.limited = nodes > 1 || len(excess) > 0
	q.undecided.Store(len(excess) > 0 && !q.limitKnown || short && !q.record.isKnown())
	q.set.Store(set)
	return excess, short
}

// withStatus returns the quarantine with the condition that the object has now.
func withStatus(use *v1alpha1.Quarantine, s status) *v1alpha1.Quarantine {
	with := *use
	with.Status = v1alpha1.QuarantineStatus{ObservedGeneration: s.observed, Conditions: []metav1.Condition{s.condition}}
	return &with
}

// place says which valid quarantines do not hold: quarantines that have ended, and the ones of too many nodes.
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
			o.Code, o.limited = LimitExceeded, true
			o.Message = "too many nodes are quarantined already (containment.maxQuarantinedNodes)"
		}
	}
}

// due implements compiler: a quarantine has ended, the limit has changed, or the record may have.
func (q *quarantines) due(now time.Time) bool {
	if !q.ends.IsZero() && !now.Before(q.ends) {
		return true
	}
	if q.record.isDue(now) {
		return true
	}
	limit, known := q.maxNodes()
	return q.limited && (limit != q.limit || known != q.limitKnown)
}

func (q *quarantines) read(o *ranked) *entry {
	was := q.known[o.UID]
	if was == nil {
		was = &entry{}
	}
	switch {
	case o.exceeds:
		return &entry{code: LimitExceeded, message: exceedsMessage}
	case o.dropped():
		return &entry{use: was.use, code: LimitExceeded, message: exceedsMessage}
	case was.spec != "" && was.spec == string(o.spec) && !o.tooLarge():
		return was
	}
	next := &entry{spec: string(o.spec), code: Accepted, message: "the servers use this generation"}
	next.use = &v1alpha1.Quarantine{ObjectMeta: o.ObjectMeta}
	err := json.Unmarshal(o.spec, &next.use.Spec, asKubernetes())
	switch {
	case o.tooLarge():
		next.code, err = TooLarge, errTooLarge(o.object)
	case err != nil:
		next.code, err = Invalid, fmt.Errorf("spec: %w", strictjson.Explain(err))
	default:
		err = quarantine.Validate(next.use).ToAggregate()
		if err == nil {
			return next
		}
		next.code = Invalid
	}
	next.use = was.use
	next.message = clipped(fmt.Sprintf("%v; %s", err, lastValidQuarantine))
	return next
}

// target names what a quarantine cuts off.
func target(q *v1alpha1.Quarantine) string {
	if q.Spec.Node != "" {
		return "node " + q.Spec.Node
	}
	return "credential " + q.Spec.Credential
}
