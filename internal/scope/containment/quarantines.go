package containment

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

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

// The ConfigMap that records how many nodes are quarantined. The servers do not create it.
const (
	RecordNamespace = metav1.NamespaceSystem
	RecordName      = "node-authorizer-quarantined-nodes"
	// RecordKey is the key of the number.
	RecordKey = "nodes"
)

const (
	// recordInterval is the time between two reads of the record that nothing asks for, and recordRetry
	// that after a failure.
	recordInterval = time.Minute
	recordRetry    = time.Second
	recordTimeout  = 2 * time.Second
)

// record is how many nodes are quarantined, as all servers know it. So many may stay quarantined when a limit that is
// a share of the nodes falls, also after a restart. Statuses do not prove the number, because users who may write
// them could write any number of them.
//
// Only one goroutine uses a record. A nil record records nothing.
type record struct {
	client kubernetes.Interface
	// report reports why the record cannot be used; nil means that it can be.
	report func(error)

	// nodes is the recorded number; 0 while there is none.
	nodes int
	// known is false until an API server has said whether there is a record, and failed is true if the last
	// request got no answer.
	known, failed bool
	// due is when the record is read although nothing asks for it. Fewer is whether it was too high the last
	// time.
	due   time.Time
	fewer bool
}

// kept returns how many nodes may stay quarantined.
func (r *record) kept() int {
	if r == nil {
		return 0
	}
	return r.nodes
}

// isKnown reports whether it is known whether there is a record.
func (r *record) isKnown() bool { return r == nil || r.known }

// unsettled reports whether statuses have to wait for the record: it should be another one, and the last request got
// no answer.
func (r *record) unsettled(nodes int, short bool) bool {
	return r != nil && r.failed && (short || nodes > max(r.nodes, 1)) // one node always may be quarantined
}

// isDue reports whether the record should be read.
func (r *record) isDue(now time.Time) bool { return r != nil && !now.Before(r.due) }

// settle makes the record agree with the number of nodes that are quarantined, of which the limit allows some, and
// reports whether something else is known of it then. Short is set if kept is too low for what servers have
// accepted, so that another one may have raised it.
//
// The number is raised before a status says that more nodes are quarantined, if the limit allows these: what only an
// earlier record allows is no reason to raise it. It is lowered after it was too high for a while, because another
// server may know of a quarantine that this one does not know yet.
func (r *record) settle(ctx context.Context, nodes, limit int, short bool, now time.Time) (changed bool) {
	if r == nil || !short && nodes <= max(r.nodes, 1) && !r.isDue(now) {
		return false
	}
	if nodes == 1 {
		nodes = 0
	}
	was, due := *r, r.isDue(now)
	err := r.exchange(ctx, func(is int) int {
		if is < nodes && nodes <= limit || nodes < is && due && r.fewer {
			return nodes
		}
		return is
	})
	absent := apierrors.IsForbidden(err) || apierrors.IsNotFound(err)
	if absent {
		r.nodes = 0
	}
	r.failed = err != nil && !absent
	r.known = r.known || !r.failed
	switch {
	case r.failed:
		r.due = now.Add(recordRetry)
	case due:
		r.due, r.fewer = now.Add(recordInterval), nodes < r.nodes
	}
	r.report(err)
	return r.nodes != was.nodes || r.known != was.known
}

// exchange reads the number, and writes the one that should follow. If the record changes meanwhile, it begins
// again.
func (r *record) exchange(ctx context.Context, next func(is int) int) error {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	records := r.client.CoreV1().ConfigMaps(RecordNamespace)
	for {
		read, err := records.Get(ctx, RecordName, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("read how many nodes are quarantined: %w", err)
		}
		is, _ := strconv.Atoi(read.Data[RecordKey]) // what is not a number is replaced
		if to := next(is); to != is {
			read.Data = map[string]string{RecordKey: strconv.Itoa(to)}
			_, err := records.Update(ctx, read, metav1.UpdateOptions{})
			if apierrors.IsConflict(err) {
				continue
			}
			if err != nil {
				return fmt.Errorf("write how many nodes are quarantined: %w", err)
			}
			is = to
		}
		r.nodes = is
		return nil
	}
}

// reportOnce returns a function that passes on the first error of several, and the first nil after it.
func reportOnce(report func(error)) func(error) {
	failed := false
	return func(err error) {
		if failed != (err != nil) {
			failed = !failed
			report(err)
		}
	}
}
