package attackpaths

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/inventory"
)

// expected is why something is reached that was not, and is no finding.
type expected uint8

const (
	// isFinding is something that a change opens.
	isFinding expected = iota
	// oneMoreOfAKind is new, and reached by a start that reached all of its kind before.
	oneMoreOfAKind
	// ofControlPlane is reached by an account that the control plane runs with, or that moves pods.
	ofControlPlane
	// ownOfWorkload is what the template of a workload names.
	ownOfWorkload
)

func (e expected) String() string {
	return [...]string{
		"", "new, and reached as all of its kind were before",
		"by an account of the control plane, or one that could label nodes before",
		"the workload's own account, or a new secret that it mounts",
	}[e]
}

// kin is the holdings of one kind in one namespace.
type kin struct{ kind, namespace string }

// findKin lists the holdings of the first state by their kind: in their namespace, and in all.
func (c *comparer) findKin() {
	c.existed, c.kin = make([]bool, len(c.holdings)), map[kin][]int32{}
	for _, id := range c.before.ids {
		if id < 0 || c.existed[id] {
			continue
		}
		c.existed[id] = true
		h := c.holdings[id]
		switch h.Kind {
		case Secret, ServiceAccount:
			c.kin[kin{h.Kind, h.Namespace}] = append(c.kin[kin{h.Kind, h.Namespace}], id)
			fallthrough
		case Node, Namespace:
			c.kin[kin{kind: h.Kind}] = append(c.kin[kin{kind: h.Kind}], id)
		}
	}
}

// kinOf are the holdings with which a new one is compared: in a namespace without any of the kind, all of the
// cluster. There are none for what is not new.
func (c *comparer) kinOf(id int32) (kin, bool) {
	h := c.holdings[id]
	k := kin{h.Kind, h.Namespace}
	if len(c.kin[k]) == 0 {
		k.namespace = ""
	}
	return k, !c.existed[id] && len(c.kin[k]) > 0
}

// expected says whether a change of a holding is a finding for a start, which may be among the holdings.
func (s *groupSearch) expected(id, self int32, l levels, of func(*search, int32) Certainty) expected {
	k, isNew := s.kinOf(id)
	if !isNew || l.before != No || s.before == nil {
		return isFinding
	}
	least, known := s.least[k]
	if !known {
		least = Certain
		for _, other := range s.kin[k] {
			if other != self {
				least = min(least, of(s.before, other))
			}
		}
		s.least[k] = least
	}
	if least >= l.after {
		return oneMoreOfAKind
	}
	return isFinding
}

// findControlPlane finds the accounts of the controllers of kube-controller-manager, and the rights to label nodes.
func (c *comparer) findControlPlane() {
	c.controllers = map[inventory.Name]bool{}
	for _, b := range c.before.bindings {
		if b.Binding.Kind != "ClusterRoleBinding" || !strings.HasPrefix(b.Role.Name, "system:controller:") {
			continue
		}
		for _, s := range b.Subjects {
			if s.Kind == rbacv1.ServiceAccountKind && s.Namespace == "kube-system" {
				c.controllers[inventory.Name{Namespace: s.Namespace, Name: s.Name}] = true
			}
		}
	}
	for v, k := range c.before.keys {
		if k.kind == isRight && k.name == "" && (right(k.variant) == changeNodes || right(k.variant) == changeNodeStatus) {
			c.labels = append(c.labels, vertex(v))
		}
	}
}

// isControlPlane reports whether the control plane runs with an account, or it could label all nodes before and so
// brings each pod to a node. The start is the last one of the search.
func (s *groupSearch) isControlPlane(from start) bool {
	h := from.holding
	if h.Kind != ServiceAccount || s.before == nil {
		return false
	}
	if s.controllers[inventory.Name{Namespace: h.Namespace, Name: h.Name}] {
		return true
	}
	for _, v := range s.labels {
		if s.before.certain.has(v) {
			return true
		}
	}
	return false
}
