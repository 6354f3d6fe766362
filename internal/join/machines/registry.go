// Package machines knows which machine is registered for which node: the Machines of a cluster.
//
// A provider verifies what a machine can prove to have, a [Proof], and asks a [Registry] for the Machine. With manual
// approval, the registry writes a Machine that waits for approval for each machine that nobody registered.
package machines

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/informer"
	"github.com/node-authorizer/node-authorizer/internal/staleness"
)

// Options are settings of a [Registry].
type Options struct {
	Client *Client
	// Manual lets machines that nobody registered wait for a person's approval.
	Manual bool
	// MaxAge is the age at which the copy of the Machines is too old; 0 means no limit.
	MaxAge time.Duration
	// Unreadable is called with the name of a Machine whose public keys cannot be read; nil: nothing is.
	Unreadable func(machine string, err error)
	// Clock returns the current time; nil: time.Now.
	Clock func() time.Time
}

// Finder finds registered machines; see [Registry].
type Finder interface {
	Find(ctx context.Context, req *attest.Request, proof *Proof) (*v1alpha1.Machine, error)
}

// Registry has the Machines of a cluster. It is safe for concurrent use. Machines that it returns are shared: they are not
// to be changed.
type Registry struct {
	options  Options
	informer *informer.Informer

	mu sync.Mutex
	// created has the Machines that this process creates, and that the copy may not have yet, with the time.
	created map[string]time.Time
}

// The indexes.
const (
	byProof   = "proof"
	byNode    = "node"
	byPending = "pending"
)

// pending is the value of the index of Machines that wait for approval.
const pending = "pending"

// errNotRead means that the Machines have not been read since Run was called.
var errNotRead = errors.New("reading machines: if this stays, install the custom resource, and let the server list and watch it")

// New returns a registry that decides nothing until Run is called.
func New(options Options) *Registry {
	if options.Clock == nil {
		options.Clock = time.Now
	}
	r := &Registry{options: options, created: map[string]time.Time{}}
	r.informer = informer.New(informer.Source[*v1alpha1.MachineList]{
		List: options.Client.List, Watch: options.Client.Watch, Example: &v1alpha1.Machine{}, Name: v1alpha1.MachineResource,
	}, informer.NewAge(v1alpha1.MachineResource+"."+v1alpha1.Group, options.MaxAge, options.Clock), cache.Indexers{
		byProof: func(object any) ([]string, error) {
			all, _ := ids(object.(*v1alpha1.Machine)) // reported once, below
			return all, nil
		},
		byNode: func(object any) ([]string, error) { return []string{object.(*v1alpha1.Machine).Spec.NodeName}, nil },
		byPending: func(object any) ([]string, error) {
			if object.(*v1alpha1.Machine).IsApproved() {
				return nil, nil
			}
			return []string{pending}, nil
		},
	})
	r.informer.Transform = informer.DropManagedFields
	if options.Unreadable != nil {
		r.informer.Changed = append(r.informer.Changed, func(object any) {
			m := object.(*v1alpha1.Machine)
			if _, err := ids(m); err != nil {
				options.Unreadable(m.Name, err)
			}
		})
	}
	return r
}

// Run follows the Machines until the context ends. It must be called only once.
func (r *Registry) Run(ctx context.Context) { r.informer.Run(ctx) }

// Fresh returns an error if the copy of the Machines must not be used for decisions.
func (r *Registry) Fresh() error { return r.informer.Fresh(errNotRead) }

// Age returns the age of the copy of the Machines.
func (r *Registry) Age() staleness.Aged { return r.informer.Age }

// Find returns the Machine that is registered for what a machine has proved. The error is an [*attest.Refusal] if the
// machine may not join, and any other error if that could not be decided.
func (r *Registry) Find(ctx context.Context, req *attest.Request, proof *Proof) (*v1alpha1.Machine, error) {
	if err := r.Fresh(); err != nil {
		return nil, err
	}
	var approved, waiting []*v1alpha1.Machine
	for _, m := range r.by(byProof, proof.id()) {
		if m.IsApproved() {
			approved = append(approved, m)
		} else {
			waiting = append(waiting, m)
		}
	}
	switch {
	case len(approved) == 1:
		return approved[0], r.admit(req, approved[0])
	case len(approved) > 1:
		return nil, attest.Refuse(MachineAmbiguous, "the machines %s and %s both have %s", approved[0].Name, approved[1].Name, proof.id())
	case len(waiting) > 0:
		return nil, r.repeat(ctx, req, waiting[0])
	case r.options.Manual:
		return nil, r.ask(ctx, req, proof)
	}
	return nil, attest.Refuse(MachineNotRegistered, "no machine has %s, which asks for node %.253q (%.256q)",
		proof.id(), req.NodeName, proof.Description)
}

// Approved returns the approved Machines of a node, also expired ones.
func (r *Registry) Approved(node string) ([]*v1alpha1.Machine, error) {
	if err := r.Fresh(); err != nil {
		return nil, err
	}
	waits := func(m *v1alpha1.Machine) bool { return !m.IsApproved() }
	return slices.DeleteFunc(r.by(byNode, node), waits), nil
}

// admit refuses a registered machine after the end of its registration, and from other addresses than its own.
func (r *Registry) admit(req *attest.Request, m *v1alpha1.Machine) error {
	if m.Expired(r.options.Clock()) {
		return attest.Refuse(MachineExpired, "machine %s has expired at %s", m.Name, m.Spec.Expires.UTC().Format(time.RFC3339))
	}
	if len(m.Spec.Addresses) > 0 && !slices.Contains(Addresses(m), req.RemoteAddr) {
		return attest.Refuse(AddressNotRegistered, "machine %s has the addresses %s, the request comes from %s", m.Name,
			strings.Join(m.Spec.Addresses, ", "), req.RemoteAddr)
	}
	return nil
}

// Addresses returns the addresses of a Machine.
func Addresses(m *v1alpha1.Machine) (all []netip.Addr) {
	for _, text := range m.Spec.Addresses {
		if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
			all = append(all, a.Unmap())
		}
	}
	return all
}

// by returns the Machines in an index, sorted by name.
func (r *Registry) by(index, value string) []*v1alpha1.Machine {
	objects, err := r.informer.ByIndex(index, value)
	if err != nil {
		panic(err) // no such index
	}
	found := make([]*v1alpha1.Machine, 0, len(objects))
	for _, object := range objects {
		found = append(found, object.(*v1alpha1.Machine))
	}
	slices.SortFunc(found, func(a, b *v1alpha1.Machine) int { return strings.Compare(a.Name, b.Name) })
	return found
}
