// Package nodestate keeps what decisions about nodes need of a cluster, from informers of
// client-go that the program may share with its other code.
//
// [New] registers the informers of a factory. [State.Graph] is for a Node authorizer (package
// nodeauthz), and the State itself for NodeRestriction (package noderestriction):
//
//	state, err := nodestate.New(factory, features)
//	…
//	reads := nodeauthz.New(state.Graph(), features, nodeauthz.WithSynced(state.HasSynced))
//	writes := noderestriction.New(state, authorizer, features)
//	factory.Start(ctx.Done())
//	cache.WaitForCacheSync(ctx.Done(), state.HasSynced)
//
// The factory must see whole objects of all namespaces: no tweaked lists, and no transform that drops a
// field which decisions read. Its client needs the rights to list and watch pods, nodes, service accounts,
// persistent volumes and their claims, volume attachments, CSI drivers, and, where the version and its
// gates have them, resource slices and pod certificate requests. It never reads secrets or config maps.
//
// Until the informers have synced, what is not known is an error and not a refusal: HasSynced is false, so
// that nodeauthz answers with its ErrNotSynced, and noderestriction with its own. A watch that breaks later
// does not show in HasSynced: the state is then as old as the last event, as in every informer.
//
// If the API server does not serve one of these resources, or does not let the client list it, HasSynced stays
// false. The log of client-go says why, and the factory's WaitForCacheSync which resource it is. Where
// pod certificate requests are not served, leave their gate off in the features. The gate of resource slices is
// locked since 1.35, so that they must be served.
package nodestate

import (
	"errors"
	"fmt"
	"sync/atomic"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/noderestriction"
)

var (
	_ noderestriction.State          = (*State)(nil)
	_ noderestriction.ResourceSlices = (*State)(nil)
	_ noderestriction.Syncing        = (*State)(nil)
)

// State is the state of one cluster. It is safe for concurrent use.
type State struct {
	graph *graph.Graph

	pods     corelisters.PodLister
	nodes    corelisters.NodeLister
	accounts corelisters.ServiceAccountLister
	claims   corelisters.PersistentVolumeClaimLister
	volumes  corelisters.PersistentVolumeLister
	drivers  storagelisters.CSIDriverLister
	slices   cache.Store // nil without resource slices

	pending []cache.InformerSynced
	synced  atomic.Bool // all of pending have returned true
}

// New registers the informers that decisions of the given version and gates need. Start the factory
// afterwards. The error says which gate needs objects for which client-go has no informer.
func New(factory informers.SharedInformerFactory, features kubeversion.Features) (*State, error) {
	core, storage := factory.Core().V1(), factory.Storage().V1()
	s := &State{
		graph: graph.New(),
		pods:  core.Pods().Lister(), nodes: core.Nodes().Lister(), accounts: core.ServiceAccounts().Lister(),
		claims: core.PersistentVolumeClaims().Lister(), volumes: core.PersistentVolumes().Lister(),
		drivers: storage.CSIDrivers().Lister(),
	}
	for _, informer := range []cache.SharedIndexInformer{
		core.Nodes().Informer(), core.ServiceAccounts().Informer(), core.PersistentVolumeClaims().Informer(),
		storage.CSIDrivers().Informer(),
	} {
		s.pending = append(s.pending, informer.HasSynced)
	}
	err := errors.Join(
		relate(s, core.Pods().Informer(), s.graph.SetPod, s.graph.DeletePod),
		relate(s, core.PersistentVolumes().Informer(), s.graph.SetPersistentVolume, unscoped(s.graph.DeletePersistentVolume)),
		relate(s, storage.VolumeAttachments().Informer(), s.graph.SetVolumeAttachment, unscoped(s.graph.DeleteVolumeAttachment)),
		s.relateResourceSlices(factory, features),
		s.relatePodCertificateRequests(factory, features),
	)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// relateResourceSlices uses the version that API servers of the minor store.
func (s *State) relateResourceSlices(factory informers.SharedInformerFactory, features kubeversion.Features) error {
	if !features.Enabled(kubeversion.DynamicResourceAllocation) {
		return nil
	}
	var informer cache.SharedIndexInformer
	var err error
	remove := unscoped(s.graph.DeleteResourceSlice)
	switch minor := features.Minor(); {
	case minor >= 34:
		informer = factory.Resource().V1().ResourceSlices().Informer()
		err = relate(s, informer, s.graph.SetResourceSlice, remove)
	case minor == 33:
		informer = factory.Resource().V1beta2().ResourceSlices().Informer()
		err = relate(s, informer, func(o *resourcev1beta2.ResourceSlice) {
			s.graph.SetResourceSlice(&resourcev1.ResourceSlice{
				ObjectMeta: o.ObjectMeta, Spec: resourcev1.ResourceSliceSpec{NodeName: o.Spec.NodeName},
			})
		}, remove)
	case minor == 32:
		informer = factory.Resource().V1beta1().ResourceSlices().Informer()
		err = relate(s, informer, func(o *resourcev1beta1.ResourceSlice) {
			s.graph.SetResourceSlice(&resourcev1.ResourceSlice{
				ObjectMeta: o.ObjectMeta, Spec: resourcev1.ResourceSliceSpec{NodeName: &o.Spec.NodeName},
			})
		}, remove)
	default:
		return noInformer(features, kubeversion.DynamicResourceAllocation, "resource slices")
	}
	s.slices = informer.GetStore()
	return err
}

// relatePodCertificateRequests uses the version that API servers of the minor store.
func (s *State) relatePodCertificateRequests(factory informers.SharedInformerFactory, features kubeversion.Features) error {
	if !features.Enabled(kubeversion.PodCertificateRequest) {
		return nil
	}
	switch minor := features.Minor(); {
	case minor >= 37:
		return relate(s, factory.Certificates().V1().PodCertificateRequests().Informer(),
			s.graph.SetPodCertificateRequest, s.graph.DeletePodCertificateRequest)
	case minor >= 35:
		return relate(s, factory.Certificates().V1beta1().PodCertificateRequests().Informer(),
			func(o *certificatesv1beta1.PodCertificateRequest) {
				s.graph.SetPodCertificateRequest(&certificatesv1.PodCertificateRequest{
					ObjectMeta: o.ObjectMeta, Spec: certificatesv1.PodCertificateRequestSpec{NodeName: o.Spec.NodeName},
				})
			}, s.graph.DeletePodCertificateRequest)
	}
	return noInformer(features, kubeversion.PodCertificateRequest, "pod certificate requests")
}

func noInformer(features kubeversion.Features, gate kubeversion.Gate, objects string) error {
	return fmt.Errorf("client-go has no informer of %s in Kubernetes %v, where they are alpha: leave the feature gate %s off",
		objects, features.Minor(), gate)
}

// relate lets an informer fill the graph.
func relate[T any](s *State, informer cache.SharedIndexInformer, set func(T), remove func(namespace, name string)) error {
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { set(object.(T)) },
		UpdateFunc: func(_, object any) { set(object.(T)) },
		DeleteFunc: func(object any) {
			// Only the key is known of an object that was deleted while no watch ran.
			if name, err := cache.DeletionHandlingObjectToName(object); err == nil {
				remove(name.Namespace, name.Name)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("the informers of the factory have ended: make the state before: %w", err)
	}
	s.pending = append(s.pending, registration.HasSynced)
	return nil
}

// unscoped is for objects without a namespace.
func unscoped(remove func(name string)) func(namespace, name string) {
	return func(_, name string) { remove(name) }
}

// Graph returns the relations of nodes and objects. Do not change it.
func (s *State) Graph() *graph.Graph { return s.graph }

// HasSynced reports whether the state has all objects that were in the cluster at the start, and their
// relations. From then on it is always true.
func (s *State) HasSynced() bool {
	if s.synced.Load() {
		return true
	}
	for _, synced := range s.pending {
		if !synced() {
			return false
		}
	}
	s.synced.Store(true)
	return true
}

// Pod implements [noderestriction.Pods].
func (s *State) Pod(namespace, name string) (*corev1.Pod, bool) {
	return known(s.pods.Pods(namespace).Get(name))
}

// Node implements [noderestriction.Nodes].
func (s *State) Node(name string) (*corev1.Node, bool) { return known(s.nodes.Get(name)) }

// ServiceAccount implements [noderestriction.ServiceAccounts].
func (s *State) ServiceAccount(namespace, name string) (*corev1.ServiceAccount, bool) {
	return known(s.accounts.ServiceAccounts(namespace).Get(name))
}

// PersistentVolumeClaim implements [noderestriction.Volumes].
func (s *State) PersistentVolumeClaim(namespace, name string) (*corev1.PersistentVolumeClaim, bool) {
	return known(s.claims.PersistentVolumeClaims(namespace).Get(name))
}

// PersistentVolume implements [noderestriction.Volumes].
func (s *State) PersistentVolume(name string) (*corev1.PersistentVolume, bool) {
	return known(s.volumes.Get(name))
}

// CSIDriver implements [noderestriction.Volumes].
func (s *State) CSIDriver(name string) (*storagev1.CSIDriver, bool) {
	return known(s.drivers.Get(name))
}

// ResourceSliceNode implements [noderestriction.ResourceSlices].
func (s *State) ResourceSliceNode(name string) (node string, ok bool) {
	if s.slices == nil {
		return "", false
	}
	object, exists, err := s.slices.GetByKey(name)
	if err != nil || !exists {
		return "", false
	}
	switch slice := object.(type) {
	case *resourcev1.ResourceSlice:
		return valueOf(slice.Spec.NodeName), true
	case *resourcev1beta2.ResourceSlice:
		return valueOf(slice.Spec.NodeName), true
	case *resourcev1beta1.ResourceSlice:
		return slice.Spec.NodeName, true
	}
	return "", false
}

// known returns the answer of a lister. Its only error is that there is no such object.
func known[T any](object *T, err error) (*T, bool) { return object, err == nil }

func valueOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
