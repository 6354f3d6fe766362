package attackpaths

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

// expected is why something is reached that was not, and is no finding; empty for findings.
type expected string

const (
	// oneMoreOfAKind is new, and reached by a start that reached all of its kind before.
	oneMoreOfAKind expected = "new, and reached as all of its kind were before"
	// ofControlPlane is reached by an account that the control plane runs with, or that moves pods.
	ofControlPlane expected = "by an account of the control plane, or one that could label nodes before"
	// ownOfWorkload is what the template of a workload names.
	ownOfWorkload expected = "the workload's own account, or a new secret that it mounts"
)

// moved says of a holding that changes whether it is a finding.
func (s *groupSearch) moved(id int32, from *start, l levels) moved {
	m := moved{id, outcome{levels: l}}
	switch {
	case l.after <= l.before:
	case s.isOwn(id, from):
		m.expected = ownOfWorkload
	case s.isOneMore(id, from, l):
		m.expected = oneMoreOfAKind
	}
	return m
}

// outcomeOf says how a holding is reached by the starts of a delta, and false if it changes with cluster-admin only.
func (c *comparer) outcomeOf(d *delta, m moved) (outcome, bool) {
	o := m.outcome
	if m.id != c.admin {
		o.levels = levels{max(m.before, d.admin.before), max(m.after, d.admin.after)}
	}
	widened := o.after > o.before && (m.id == c.admin || m.after > d.admin.after)
	narrowed := o.after < o.before && (m.id == c.admin || m.before > d.admin.before)
	if widened && d.controlPlane && (m.id != c.admin || o.after != Certain) {
		o.expected = ofControlPlane
	}
	return o, widened || narrowed
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

// isOneMore reports whether a holding is new, and a node or service account reached all of its kind before: in
// its namespace or, for kinds without namespaces, in the cluster.
func (s *groupSearch) isOneMore(id int32, from *start, l levels) bool {
	k := kin{s.holdings[id].Kind, s.holdings[id].Namespace}
	if len(s.kin[k]) == 0 {
		k.namespace = ""
	}
	if s.existed[id] || len(s.kin[k]) == 0 || l.before != No || len(from.before) == 0 || isWorkload(from.holding) {
		return false
	}
	least, known := s.least[k]
	if !known {
		least = Certain
		for _, other := range s.kin[k] {
			if !slices.Contains(from.self, other) {
				least = min(least, s.before.level(other))
			}
		}
		s.least[k] = least
	}
	return least >= l.after
}

// isOwn reports whether the template of a workload names a holding that it may have: its account, whose rights count by
// themselves, or a secret that comes with it.
func (s *groupSearch) isOwn(id int32, from *start) bool {
	h := s.holdings[id]
	return isWorkload(from.holding) && slices.ContainsFunc(from.after, func(v vertex) bool {
		p := s.comparer.after.podOf(v)
		isAccount := h.Kind == ServiceAccount && h.Name == p.ServiceAccount && len(p.Audiences) > 0
		isSecret := h.Kind == Secret && !s.existed[id] && slices.Contains(p.Secrets, h.Name)
		return p.Namespace == h.Namespace && (isAccount || isSecret)
	})
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
func (s *groupSearch) isControlPlane(from *start) bool {
	h := from.holding
	return h.Kind == ServiceAccount && len(from.before) > 0 &&
		(s.controllers[inventory.Name{Namespace: h.Namespace, Name: h.Name}] || slices.ContainsFunc(s.labels, s.before.certain.has))
}
