package generate

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// envelopeMutations change the user, the resource, and whether there is an object.
func envelopeMutations() []mutation {
	return []mutation{
		{"not a node", Allowed, func(d *draft) {
			d.User = pick(d.r,
				[]string{"alice", "system:nodes:" + d.node, "System:node:" + d.node, " system:node:" + d.node, d.node, "system:node"})
		}},
		{"not in the group of nodes", Allowed, func(d *draft) {
			d.Groups = pick(d.r, [][]string{{}, {"system:authenticated"}, {"system:node", "system:nodes ", "System:nodes"}})
		}},
		{"a node without a name", Refused, func(d *draft) {
			d.User, d.Operation = "system:node:", pick(d.r, []string{"CREATE", "UPDATE", "DELETE"})
		}},
		{"a node without a name connects", Allowed, func(d *draft) { d.User, d.Operation = "system:node:", "CONNECT" }},
		{"another node", Either, func(d *draft) { d.User = "system:node:" + d.otherNode() }},
		{"also a master", Either, func(d *draft) { d.Groups = append(d.Groups, "system:masters") }},
		{"another operation", Either, func(d *draft) { d.Operation = pick(d.r, []string{"CREATE", "UPDATE", "DELETE"}) }},
		{"connects", Allowed, func(d *draft) { d.Operation = "CONNECT" }},
		{"another subresource", Either, func(d *draft) {
			d.Subresource = pick(d.r, []string{"", "status", "token", "eviction", "approval", "scale", "Status", "binding", "x"})
		}},
		{"another group", Allowed, func(d *draft) {
			d.Group = pick(d.r, []string{"metrics.k8s.io", "apps", "example.com", "Coordination.k8s.io", "core", "v1"})
		}},
		{"another resource", Either, func(d *draft) {
			d.Resource = pick(d.r, []string{"pods", "nodes", "configmaps", "Pods", "pod", "leases", "events", "persistentvolumeclaims"})
		}},
		{"another version", Either, func(d *draft) { d.Version = pick(d.r, []string{"v1beta1", "v2", ""}) }},
		{"another namespace", Either, func(d *draft) { d.Namespace = pick(d.r, append([]string{""}, namespaceNames...)) }},
		{"no name in the request", Either, func(d *draft) { d.Name = "" }},
		{"another name in the request", Either, func(d *draft) { d.Name = pick(d.r, append([]string{d.otherNode()}, objectNames...)) }},
	}
}

// object adds the mutations of a kind whose object is read: it is missing, or of
// another kind.
func (k kind) object(outcome Outcome) kind {
	k.late = append(k.late,
		mutation{"no object", outcome, func(d *draft) { d.Object = nil }},
		mutation{"an object of another kind", outcome, func(d *draft) { d.Object = unrelatedObject(d) }})
	return k
}

// oldObject is object of the old object.
func (k kind) oldObject(outcome Outcome) kind {
	k.late = append(k.late,
		mutation{"no old object", outcome, func(d *draft) { d.OldObject = nil }},
		mutation{"an old object of another kind", outcome, func(d *draft) { d.OldObject = unrelatedObject(d) }})
	return k
}

// unrelatedObject is an object of a kind that no rule reads. No node has its name, because
// of a CSINode to create the in-tree plugin reads only the name.
func unrelatedObject(d *draft) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: "x"}}
}
