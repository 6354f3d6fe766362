package containment

import (
	"context"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

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
