package clusterapi

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// The resource of the Machines. The fields of machine are the same in all versions.
const (
	group    = "cluster.x-k8s.io"
	resource = "machines"
)

// versions returns the versions of the resource that can be read, the newest first.
func versions() []string { return []string{"v1beta2", "v1beta1"} }

// machine is what a copy keeps of a Machine.
type machine struct {
	metav1.ObjectMeta `json:"-"`
	Spec              struct {
		ClusterName string `json:"clusterName"`
		ProviderID  string `json:"providerID"`
	} `json:"spec"`
	Status struct {
		NodeRef struct {
			Name string `json:"name"`
		} `json:"nodeRef"`
		Addresses []struct {
			Address string `json:"address"`
		} `json:"addresses"`
	} `json:"status"`
}

// keep is the Transform of the copies. A Machine that cannot be read is an error: without it a copy would be incomplete.
func keep(object any) (any, error) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil // a machine
	}
	m := &machine{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, m); err != nil {
		return nil, fmt.Errorf("read machine %s/%s of Cluster API: %w", u.GetNamespace(), u.GetName(), err)
	}
	m.ObjectMeta = metav1.ObjectMeta{
		Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(),
		DeletionTimestamp: u.GetDeletionTimestamp(),
	}
	return m, nil
}

func (m *machine) String() string { return m.Namespace + "/" + m.Name }

// has reports whether one of the addresses is of the Machine, or the Machine has no IP addresses.
func (m *machine) has(addresses []netip.Addr) bool {
	own := m.addresses()
	return len(own) == 0 || slices.ContainsFunc(addresses, func(a netip.Addr) bool { return slices.Contains(own, a) })
}

// addresses returns the IP addresses. Other addresses are DNS names.
func (m *machine) addresses() (own []netip.Addr) {
	for _, a := range m.Status.Addresses {
		if address, err := netip.ParseAddr(a.Address); err == nil {
			own = append(own, address.Unmap())
		}
	}
	return own
}

// source lists and watches the Machines of a namespace, in the newest version that the API server has.
type source struct {
	client    dynamic.Interface
	namespace string
	version   atomic.Value // of the last list
}

func (s *source) list(ctx context.Context, opts metav1.ListOptions) (list *unstructured.UnstructuredList, err error) {
	for _, version := range versions() {
		s.version.Store(version)
		if list, err = s.resource().List(ctx, opts); !apierrors.IsNotFound(err) {
			break
		}
	}
	return list, err
}

func (s *source) watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	return s.resource().Watch(ctx, opts)
}

func (s *source) resource() dynamic.ResourceInterface {
	return s.client.Resource(schema.GroupVersionResource{
		Group: group, Version: s.version.Load().(string), Resource: resource,
	}).Namespace(s.namespace)
}
