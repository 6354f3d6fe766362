package machines

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
)

const (
	// MaxPending is how many Machines may wait for approval. Unknown machines create them.
	MaxPending = 100
	// pendingLife is how long a Machine keeps its place without a request.
	pendingLife = time.Hour
	// refreshInterval is the least time between two writes of the last request.
	refreshInterval = time.Minute
	// behind is how far a copy that is not too old may be behind a Machine that was created. One that was deleted before
	// the copy had it keeps its place as long.
	behind = 10 * time.Minute
)

// ask creates a Machine that waits for approval. It always returns an error.
func (r *Registry) ask(ctx context.Context, req *attest.Request, proof *Proof) error {
	node := strings.ToLower(req.NodeName)
	if err := attest.CheckName(node); err != nil {
		return err
	}
	name := proof.machineName()
	if problems := validation.IsDNS1123Subdomain(node); len(problems) > 0 {
		return attest.Refuse(MachineNotRegistered, "no machine has %s, which asks for node %.253q: %s", proof.id(), node, problems[0])
	}
	if object, taken, _ := r.informer.GetByKey(name); taken { // the store in memory has no errors
		m := object.(*v1alpha1.Machine)
		if accepted, _ := ids(m); slices.Contains(accepted, proof.id()) {
			return waits(m) // the copy got it a moment ago
		}
		return attest.Refuse(MachineNotRegistered, "machine %s has another proof than %s", name, proof.id())
	}
	mine, stalest, err := r.reserve(name)
	if err != nil || !mine {
		return err
	}
	created := false
	defer func() {
		if !created {
			r.release(name)
		}
	}()
	if err := r.remove(ctx, stalest); err != nil {
		return err
	}
	machine := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.MachineSpec{NodeName: node, Approval: v1alpha1.Pending, Evidence: r.evidence(req, "")},
	}
	proof.fill(&machine.Spec)
	_, err = r.options.Client.Create(ctx, machine, metav1.CreateOptions{})
	if created = err == nil || apierrors.IsAlreadyExists(err); !created {
		return fmt.Errorf("create machine %s, which waits for approval: %w", name, err)
	}
	return waits(machine)
}

// reserve takes a place for a Machine; not mine if another request does so. If all places are taken, the Machine that asked
// least recently gives way.
func (r *Registry) reserve(name string) (mine bool, stalest *v1alpha1.Machine, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.options.Clock()
	maps.DeleteFunc(r.created, func(name string, at time.Time) bool {
		_, known, _ := r.informer.GetByKey(name) // the store in memory has no errors
		return known || now.Sub(at) > behind+r.options.MaxAge
	})
	if _, known := r.created[name]; known {
		return false, nil, attest.Refuse(PendingApproval, "another request of machine %s waits for approval", name)
	}
	waiting := r.by(byPending, pending)
	if len(waiting)+len(r.created) >= MaxPending {
		if len(waiting) > 0 {
			stalest = slices.MinFunc(waiting, func(a, b *v1alpha1.Machine) int { return requested(a).Compare(requested(b)) })
		}
		if stalest == nil || now.Sub(requested(stalest)) < pendingLife {
			return false, nil, attest.Refuse(TooManyPending, "%d machines wait for approval: approve or delete some", MaxPending)
		}
	}
	r.created[name] = now
	return true, stalest, nil
}

func (r *Registry) release(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.created, name)
}

// remove deletes a Machine that gives way, unless it has changed. It may be nil.
func (r *Registry) remove(ctx context.Context, m *v1alpha1.Machine) error {
	if m == nil {
		return nil
	}
	err := r.options.Client.Delete(ctx, m.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &m.UID, ResourceVersion: &m.ResourceVersion},
	})
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		return attest.Refuse(TooManyPending, "machine %s has changed, and does not give way", m.Name)
	case err != nil:
		return fmt.Errorf("delete machine %s, which has not asked for %s: %w", m.Name, pendingLife, err)
	}
	return nil
}

// repeat records the request of a machine that waits for approval. It always returns an error.
func (r *Registry) repeat(ctx context.Context, req *attest.Request, m *v1alpha1.Machine) error {
	if r.options.Manual && r.options.Clock().Sub(requested(m)) >= refreshInterval {
		m = m.DeepCopy()
		description := ""
		if m.Spec.Evidence != nil {
			description = m.Spec.Evidence.Description
		}
		m.Spec.Evidence = r.evidence(req, description)
		_, err := r.options.Client.Update(ctx, m, metav1.UpdateOptions{})
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return fmt.Errorf("record the request of machine %s: %w", m.Name, err)
		}
	}
	return waits(m)
}

func (r *Registry) evidence(req *attest.Request, description string) *v1alpha1.MachineEvidence {
	e := &v1alpha1.MachineEvidence{
		Description: description, RequestTime: metav1.NewTime(r.options.Clock().UTC().Truncate(time.Second)),
	}
	if req.RemoteAddr.IsValid() {
		e.RemoteAddress = req.RemoteAddr.WithZone("").String()
	}
	return e
}

// requested is when a Machine that waits for approval asked last.
func requested(m *v1alpha1.Machine) time.Time {
	if m.Spec.Evidence == nil {
		return m.CreationTimestamp.Time
	}
	return m.Spec.Evidence.RequestTime.Time
}

func waits(m *v1alpha1.Machine) error {
	return attest.Refuse(PendingApproval, "machine %s waits for approval as node %s: node-authorizer approve %s",
		m.Name, m.Spec.NodeName, m.Name)
}
