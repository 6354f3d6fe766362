package attackpaths

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

// expectations say why something is reached that was not, and is no finding. The first one that holds counts.
var expectations = [...]struct {
	text  string
	holds func(s *groupSearch, id int32, from *start, l levels) bool
}{
	{"the workload's own account, or a new secret that it mounts", (*groupSearch).isOwn},
	{"new, and reached as all of its kind were before", (*groupSearch).isOneMore},
	{"an account or new secret that only a new or changed workload brings, and that gives nothing else", (*groupSearch).isBrought},
}

// ofControlPlane is why nothing but cluster-admin that is certain is a finding for some accounts.
const ofControlPlane = "by an account of the control plane, or one that could label nodes before"

// outcomeOf says of a holding that changes whether it is a finding.
func (s *groupSearch) outcomeOf(id int32, from *start, l levels) outcome {
	if l.after > l.before {
		for _, x := range expectations {
			if x.holds(s, id, from, l) {
				return outcome{l, x.text}
			}
		}
	}
	return outcome{levels: l}
}

// withAdmin says how a holding is reached, through cluster-admin too, and false if it changes with cluster-admin only.
func (s *groupSearch) withAdmin(k *deltaKey, id int32, o outcome) (outcome, bool) {
	l := o.levels
	if id != s.admin {
		o.levels = levels{max(l.before, k.admin.before), max(l.after, k.admin.after)}
	}
	widened := o.after > o.before && (id == s.admin || l.after > k.admin.after)
	narrowed := o.after < o.before && (id == s.admin || l.before > k.admin.before)
	if widened && k.controlPlane && (id != s.admin || o.after != Certain) {
		o.expected = ofControlPlane
	}
	return o, widened || narrowed
}

// kin is the holdings of one kind in one namespace, or in all for the empty one.
type kin struct{ kind, namespace string }

// findKin lists the holdings of the first state by their kind.
func (c *comparer) findKin() {
	c.kin = map[kin][]int32{}
	for id, h := range c.holdings {
		if slices.Contains([]string{Node, Namespace, Secret, ServiceAccount}, h.Kind) && c.existed(int32(id)) {
			c.kin[kin{kind: h.Kind}] = append(c.kin[kin{kind: h.Kind}], int32(id))
			if h.Namespace != "" {
				c.kin[kin{h.Kind, h.Namespace}] = append(c.kin[kin{h.Kind, h.Namespace}], int32(id))
			}
		}
	}
}

// existed reports whether the first state has a holding.
func (c *comparer) existed(id int32) bool { return len(c.before.vertices[id]) > 0 }

// isOneMore reports whether a holding is new, and a node or service account reached all of its kind before: in
// its namespace or, for kinds without namespaces, in the cluster.
func (s *groupSearch) isOneMore(id int32, from *start, l levels) bool {
	k := kin{s.holdings[id].Kind, s.holdings[id].Namespace}
	if len(s.kin[k]) == 0 {
		k.namespace = ""
	}
	if s.existed(id) || len(s.kin[k]) == 0 || l.before != No || len(from.before) == 0 || isWorkload(from.holding) {
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
func (s *groupSearch) isOwn(id int32, from *start, _ levels) bool {
	h := s.holdings[id]
	return isWorkload(from.holding) && slices.ContainsFunc(from.after, func(v vertex) bool {
		p := s.comparer.after.podOf(v)
		isAccount := h.Kind == ServiceAccount && h.Name == p.ServiceAccount && len(p.Audiences) > 0
		isSecret := h.Kind == Secret && !s.existed(id) && slices.Contains(p.Secrets, h.Name)
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
