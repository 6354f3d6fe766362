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
)

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
