package source

import (
	"slices"
	"sync"
	"sync/atomic"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// apiObject is an API object of a kept kind, in the version that package graph or
// rbac uses.
type apiObject interface {
	metav1.Object
	runtime.Object
}

// set adds a trimmed object to the state and reports whether it replaced one of the
// same name. The state keeps strings of the object; it keeps RBAC objects as a whole.
//
// The record is added before the relation and removed after it: a request that was
// allowed because of a relation finds the record in admission.
func (s *State) set(k kind, o apiObject, version stamp) (replaced bool, err error) {
	replaced, err = s.record(k, o, version)
	s.relate(o)
	s.listeners.notify(o)
	return replaced, err
}

// record keeps the part of the object that the graph and the policy do not.
func (s *State) record(k kind, o apiObject, version stamp) (replaced bool, err error) {
	key := keyOf(o.GetNamespace(), o.GetName())
	s.mu.Lock()
	defer s.mu.Unlock()
	replaced = s.objects.table(k).has(key)
	if s.Inventory != nil {
		s.Inventory.Set(o)
	}
	switch o := o.(type) {
	case *corev1.Pod:
		var r podRecord
		r, err = newPodRecord(o)
		r.stamp = version
		s.objects.pods[key] = r
		s.objects.setUnnamedClaims(key, o)
	case *corev1.PersistentVolume:
		var r volumeRecord
		r, err = newVolumeRecord(o)
		r.stamp = version
		s.objects.volumes[key] = r
	default:
		s.objects.others[k][key] = stamped{recordOf(o), version}
		if k == kindAPIService {
			s.aggregation.Store(nil)
		}
	}
	return replaced, err
}

// recordOf returns what look-ups need of an object; nil for a kind of which only names are kept. The custom resources
// are few.
func recordOf(o apiObject) any {
	switch o := o.(type) {
	case *corev1.Node:
		return NodeInfo{UID: o.UID, Labels: o.Labels, KubeletVersion: o.Status.NodeInfo.KubeletVersion}
	case *corev1.PersistentVolumeClaim:
		return o.Spec.VolumeName
	case *corev1.ServiceAccount:
		return o.UID
	case *storagev1.CSIDriver:
		return o.Spec.TokenRequests
	case *apiService:
		return o.Spec
	case *policyv1alpha1.NodeScope, *policyv1alpha1.Quarantine:
		return o
	}
	return nil
}

// relate adds the object to the graph or the policy.
func (s *State) relate(o apiObject) {
	switch o := o.(type) {
	case *corev1.Pod:
		s.Graph.SetPod(o)
	case *corev1.PersistentVolume:
		s.Graph.SetPersistentVolume(o)
	case *storagev1.VolumeAttachment:
		s.Graph.SetVolumeAttachment(o)
	case *resourcev1.ResourceSlice:
		s.Graph.SetResourceSlice(o)
	case *certificatesv1.PodCertificateRequest:
		s.Graph.SetPodCertificateRequest(o)
	default:
		setPolicy(s.RBAC, o)
	}
}

func setPolicy(p *rbac.Policy, o apiObject) {
	switch o := o.(type) {
	case *rbacv1.Role:
		p.SetRole(o)
	case *rbacv1.ClusterRole:
		p.SetClusterRole(o)
	case *rbacv1.RoleBinding:
		p.SetRoleBinding(o)
	case *rbacv1.ClusterRoleBinding:
		p.SetClusterRoleBinding(o)
	}
}

// remove removes an object from the state.
func (s *State) remove(k kind, namespace, name string) {
	switch k {
	case kindPod:
		s.Graph.DeletePod(namespace, name)
	case kindPersistentVolume:
		s.Graph.DeletePersistentVolume(name)
	case kindVolumeAttachment:
		s.Graph.DeleteVolumeAttachment(name)
	case kindResourceSlice:
		s.Graph.DeleteResourceSlice(name)
	case kindPodCertificateRequest:
		s.Graph.DeletePodCertificateRequest(namespace, name)
	case kindRole:
		s.RBAC.DeleteRole(namespace, name)
	case kindClusterRole:
		s.RBAC.DeleteClusterRole(name)
	case kindRoleBinding:
		s.RBAC.DeleteRoleBinding(namespace, name)
	case kindClusterRoleBinding:
		s.RBAC.DeleteClusterRoleBinding(name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects.table(k).remove(keyOf(namespace, name))
	if s.Inventory != nil {
		s.Inventory.Delete(k.String(), namespace, name)
	}
	switch k {
	case kindPod:
		delete(s.objects.unnamedClaims, keyOf(namespace, name))
	case kindAPIService:
		s.aggregation.Store(nil)
	}
}

// sweep removes all objects of a kind except those listed.
func (s *State) sweep(k kind, listed map[objectKey]struct{}) {
	for _, key := range s.keys(k) {
		if _, ok := listed[key]; !ok {
			s.remove(k, key.namespace.Value(), key.name)
		}
	}
}

// keys returns the names of all objects of a kind, in any order.
func (s *State) keys(k kind) []objectKey {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.objects.table(k).keys()
}

// holdsVersion reports whether the state has the object in the version that the API
// server sent.
func (s *State) holdsVersion(k kind, o metav1.Object) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	known, ok := s.objects.table(k).stamp(keyOf(o.GetNamespace(), o.GetName()))
	return ok && known == s.objects.stampOf(o)
}

// listeners are notified of changes. notify takes no lock: the list is replaced,
// never changed.
type listeners struct {
	mu   sync.Mutex
	list atomic.Pointer[[]*func(node string)]
}

// OnChange calls f after each object that was added or replaced, when the state and
// its graph show it. The argument is the name of the object's node, or empty when the
// object could concern any node. Changes that relate no node to anything are left
// out: pods that are not bound to a node, roles and bindings, and deleted objects.
//
// f is called by the goroutine that applies the change and blocks it, so f must be
// fast. It may be called concurrently, and once more while stop returns.
func (s *State) OnChange(f func(node string)) (stop func()) {
	l := &s.listeners
	l.update(func(list []*func(string)) []*func(string) { return append(list, &f) })
	return func() {
		l.update(func(list []*func(string)) []*func(string) {
			return slices.DeleteFunc(list, func(known *func(string)) bool { return known == &f })
		})
	}
}

func (l *listeners) update(change func([]*func(string)) []*func(string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []*func(string)
	if old := l.list.Load(); old != nil {
		list = slices.Clone(*old)
	}
	list = change(list)
	l.list.Store(&list)
}

func (l *listeners) notify(o apiObject) {
	list := l.list.Load()
	if list == nil || len(*list) == 0 {
		return
	}
	node, matters := nodeOf(o)
	if !matters {
		return
	}
	for _, f := range *list {
		(*f)(node)
	}
}

// nodeOf returns the node of an object, the empty name for objects that could concern
// any node, and false for objects that concern none.
func nodeOf(o apiObject) (node string, matters bool) {
	switch o := o.(type) {
	case *corev1.Pod:
		node = o.Spec.NodeName
	case *corev1.Node:
		node = o.Name
	case *storagev1.VolumeAttachment:
		node = o.Spec.NodeName
	case *resourcev1.ResourceSlice:
		if o.Spec.NodeName != nil {
			node = *o.Spec.NodeName
		}
	case *certificatesv1.PodCertificateRequest:
		node = string(o.Spec.NodeName)
	case *rbacv1.Role, *rbacv1.ClusterRole, *rbacv1.RoleBinding, *rbacv1.ClusterRoleBinding:
		return "", false
	default:
		return "", true
	}
	return node, node != ""
}

// KnowsNode reports whether the state holds a Node object of that name, or
// anything is related to a node of that name.
func (s *State) KnowsNode(name string) bool { return s.HasNode(name) || s.Graph.HasNode(name) }
