// Package clusterapi takes the Machines of Cluster API as the registration of the machines of a cluster: a machine whose
// evidence was accepted may join only if a Machine has its provider ID.
package clusterapi

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/informer"
	"github.com/node-authorizer/node-authorizer/internal/staleness"
)

// Options are settings of a [Registry].
type Options struct {
	// Client is a client of the management cluster.
	Client dynamic.Interface
	// Namespaces and ClusterName are where the Machines are: the namespaces, and the Cluster of Cluster API.
	Namespaces  []string
	ClusterName string
	// MaxAge is the age at which the copies of the Machines are too old; 0 means no limit.
	MaxAge time.Duration
	// Clock returns the current time; nil: time.Now.
	Clock func() time.Time
}

// Registry has the Machines of a cluster. It is safe for concurrent use.
type Registry struct {
	clusterName string
	informers   []*informer.Informer // one for each namespace
}

// byProviderID is an index of the Machines of the cluster.
const byProviderID = "providerID"

// errNotRead means that the Machines of a namespace have not been read since Run was called.
var errNotRead = errors.New("reading the machines of Cluster API: if this stays, install the custom resource " +
	resource + "." + group + ", and let the server list and watch it in bootstrap.clusterAPI.namespaces")

// New returns a registry that decides nothing until Run is called.
func New(options Options) *Registry {
	r := &Registry{clusterName: options.ClusterName}
	for _, namespace := range options.Namespaces {
		s := &source{client: options.Client, namespace: namespace}
		age := informer.NewAge(resource+"."+group+"/"+namespace, options.MaxAge, options.Clock)
		i := informer.New(informer.Source[*unstructured.UnstructuredList]{
			List: s.list, Watch: s.watch, Example: &unstructured.Unstructured{}, Name: age.Source(),
		}, age, cache.Indexers{byProviderID: r.providerID})
		i.Transform = keep
		r.informers = append(r.informers, i)
	}
	return r
}

// providerID indexes the Machines of the cluster, and leaves out the Machines of others.
func (r *Registry) providerID(object any) ([]string, error) {
	m := object.(*machine)
	if m.Spec.ClusterName != r.clusterName {
		return nil, nil
	}
	return []string{m.Spec.ProviderID}, nil
}

// Run follows the Machines until the context ends. It must be called only once.
func (r *Registry) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, i := range r.informers {
		running.Go(func() { i.Run(ctx) })
	}
	running.Wait()
}

// Fresh returns an error if the copies of the Machines must not be used for decisions.
func (r *Registry) Fresh() error {
	for _, i := range r.informers {
		if err := i.Fresh(errNotRead); err != nil {
			return err
		}
	}
	return nil
}

// Ages returns the ages of the copies of the Machines.
func (r *Registry) Ages() (ages []staleness.Aged) {
	for _, i := range r.informers {
		ages = append(ages, i.Age)
	}
	return ages
}

// Check compares a machine whose evidence was accepted with its Machine. The error is an [*attest.Refusal] if the machine
// may not join, and any other error if that could not be decided.
func (r *Registry) Check(req *attest.Request, id *attest.Identity) error {
	if err := r.Fresh(); err != nil {
		return err
	}
	if id.ProviderID == "" {
		return fmt.Errorf("find the machine of Cluster API for %s: the attestor %s names no provider ID", id.InstanceID, id.Provider)
	}
	found, err := r.find(id.ProviderID)
	switch {
	case err != nil:
		return err
	case len(found) == 0:
		return attest.Refuse(MachineNotFound, "no machine of cluster %s has the provider ID %s", r.clusterName, id.ProviderID)
	case len(found) > 1:
		return attest.Refuse(MachineAmbiguous, "the machines %s and %s both have the provider ID %s", found[0], found[1], id.ProviderID)
	}
	return found[0].admit(req, id)
}

func (r *Registry) find(providerID string) (found []*machine, err error) {
	for _, i := range r.informers {
		objects, err := i.ByIndex(byProviderID, providerID)
		if err != nil {
			return nil, fmt.Errorf("find the machine of Cluster API for %s: %w", providerID, err)
		}
		for _, object := range objects {
			found = append(found, object.(*machine))
		}
	}
	return found, nil
}

// admit refuses a machine that differs from its Machine. The source of the request is compared if the evidence has no
// addresses.
func (m *machine) admit(req *attest.Request, id *attest.Identity) error {
	attested := id.Addresses
	if len(attested) == 0 {
		attested = []netip.Addr{req.RemoteAddr}
	}
	switch node := m.Status.NodeRef.Name; {
	case m.DeletionTimestamp != nil:
		return attest.Refuse(MachineDeleting, "machine %s is being deleted since %s", m, m.DeletionTimestamp.UTC().Format(time.RFC3339))
	case node != "" && node != id.NodeName:
		return attest.Refuse(NodeMismatch, "machine %s has node %s, the evidence is of node %s", m, node, id.NodeName)
	case !m.has(attested):
		return attest.Refuse(AddressMismatch, "machine %s has the addresses %s, the machine that asks has %s", m, m.addresses(), attested)
	}
	return nil
}
