package source

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/graph"
)

// Removable lists the kinds of objects that a change can remove, as resources: "pods",
// "deployments.apps".
func Removable() []string {
	var all []string
	for k := range kindCount {
		all = append(all, k.describe().groupResource().String())
	}
	for _, w := range workloadKinds {
		all = append(all, withGroup(w.resource, w.group))
	}
	slices.Sort(all)
	return all
}

// exists returns an error for an object that the state does not have.
func (c *changer) exists(o ObjectRef) error {
	if _, ok := workloadKindOf(o.Group, o.Kind); ok {
		return c.workloadExists(o)
	}
	k, ok := kindOf(o.Group, o.Kind)
	if !ok {
		return fmt.Errorf("%s cannot be removed: nothing that is computed depends on objects of its kind; objects of these kinds can: %s",
			o, strings.Join(Removable(), ", "))
	}
	if c.holds(k, o.Namespace, o.Name) || k == kindPod && c.Inventory.Has(kindPod.String(), o.Namespace, o.Name) {
		return nil
	}
	return &NotFoundError{Object: o, Known: c.RemovableNames(o), Hint: " in " + c.Origin}
}

// workloadExists looks for pods: a state has no other trace of a workload.
func (c *changer) workloadExists(o ObjectRef) error {
	if len(c.podsOfWorkload(o)) > 0 {
		return nil
	}
	hint := " with pods in " + c.Origin
	for _, p := range c.Inventory.PodsWhere(func(p *inventory.Pod) bool { return p.Namespace == o.Namespace }) {
		if o.Kind == "ReplicaSet" && p.Workload.Resource == "deployments" && strings.HasPrefix(o.Name, p.Workload.Name+"-") {
			hint = fmt.Sprintf(" of its own: Deployment %s/%s would make it again; remove that", p.Namespace, p.Workload.Name)
		}
	}
	return &NotFoundError{Object: o, Known: c.RemovableNames(o), Hint: hint}
}

// podsOfWorkload are the pods that a workload owns, also through ReplicaSets and Jobs.
func (c *changer) podsOfWorkload(o ObjectRef) []*inventory.Pod {
	of, _ := workloadKindOf(o.Group, o.Kind)
	return c.Inventory.PodsWhere(func(p *inventory.Pod) bool {
		w := p.Workload
		if p.Namespace != o.Namespace || w.Group != o.Group {
			return false
		}
		if of.resource == "cronjobs" && w.Resource == "jobs" {
			return isJobOf(w.Name, o.Name)
		}
		return w.Resource == of.resource && w.Name == o.Name
	})
}

// isJobOf reports whether a CronJob makes Jobs of such a name: its own, and the time in minutes.
func isJobOf(job, cronJob string) bool {
	minutes, ok := strings.CutPrefix(job, cronJob+"-")
	return ok && minutes != "" && strings.Trim(minutes, "0123456789") == ""
}

// removeNamed removes an object and what goes with it.
func (c *changer) removeNamed(o ObjectRef) {
	if _, ok := workloadKindOf(o.Group, o.Kind); ok {
		pods := c.podsOfWorkload(o)
		c.removePods(pods)
		c.note(Applied{Action: Removed, ObjectRef: o, Objects: len(pods)})
		return
	}
	k, _ := kindOf(o.Group, o.Kind)
	done := Applied{Action: Removed, ObjectRef: o}
	switch k {
	case kindNamespace:
		done.Objects = c.removeContent(o.Name)
	case kindNode:
		done.Objects = c.removeOnNode(o.Name)
	case kindServiceAccount:
		c.removeTokens(o.Namespace, o.Name)
	case kindClusterRole:
		if was, ok := c.RBAC.ClusterRole(o.Name); ok {
			c.roles = append(c.roles, was)
		}
	case kindPod:
		c.noteOwner(o)
	}
	c.note(done)
	if k == kindPod {
		c.removePods(c.Inventory.PodsWhere(func(p *inventory.Pod) bool { return p.Namespace == o.Namespace && p.Name.Name == o.Name }))
		return
	}
	c.remove(k, o.Namespace, o.Name)
}

func (c *changer) removePod(namespace, name string) {
	c.remove(kindPod, namespace, name)
	of := inventory.Name{Namespace: namespace, Name: name}
	for _, claim := range c.overlay.claims[of] {
		c.Inventory.Delete(kindPersistentVolumeClaim.String(), namespace, claim)
	}
	delete(c.overlay.claims, of)
	for i, p := range c.overlay.pending {
		if p.pod.Namespace == namespace && p.pod.Name.Name == name {
			c.overlay.relations.DeletePod(namespace, name)
			c.overlay.pending[i].pod = inventory.NewPlanned(&corev1.Pod{}, inventory.Workload{})
		}
	}
}

func (c *changer) removePods(pods []*inventory.Pod) {
	for _, p := range pods {
		if p.Node != "" {
			c.noteNode(p.Node)
		}
		c.removePod(p.Namespace, p.Name.Name)
	}
}

// noteOwner says that a controller makes another pod.
func (c *changer) noteOwner(o ObjectRef) {
	for _, p := range c.Inventory.PodsWhere(func(p *inventory.Pod) bool { return p.Namespace == o.Namespace && p.Name.Name == o.Name }) {
		if p.Workload.Resource != "" {
			c.notef("%s is removed, but its controller makes another one: remove %s in namespace %s", o, p.Workload, o.Namespace)
		}
	}
}

// removeContent removes the objects of a namespace.
func (c *changer) removeContent(namespace string) int {
	pods := c.Inventory.PodsWhere(func(p *inventory.Pod) bool { return p.Namespace == namespace })
	c.removePods(pods)
	n := len(pods)
	for k := range kindCount {
		if !k.describe().namespaced {
			continue
		}
		for _, key := range c.keys(k) {
			if key.namespace.Value() == namespace {
				c.remove(k, namespace, key.name)
				n++
			}
		}
	}
	return n
}

// removeOnNode removes the pods of a node, and what is about the node alone. Controllers make other
// pods, which wait for a node.
func (c *changer) removeOnNode(node string) int {
	pods := c.Inventory.PodsWhere(func(p *inventory.Pod) bool { return p.Node == node })
	c.removePods(pods)
	for _, p := range pods {
		if p.Workload.Resource != "" && p.Workload.Resource != "daemonsets" {
			c.Inventory.Unbind(p)
		}
	}
	for of, k := range map[graph.Kind]kind{
		graph.VolumeAttachment: kindVolumeAttachment, graph.ResourceSlice: kindResourceSlice,
		graph.PodCertificateRequest: kindPodCertificateRequest,
	} {
		for _, o := range c.Graph.Objects(node, of) {
			c.remove(k, o.Namespace, o.Name)
		}
	}
	return len(pods)
}

// removeTokens removes the secrets with tokens of a service account, as the cluster's controller does.
func (c *changer) removeTokens(namespace, account string) {
	for _, s := range c.Inventory.Secrets() {
		if s.Namespace == namespace && s.ServiceAccount == account {
			c.remove(kindSecret, namespace, s.Name.Name)
			c.note(Applied{
				Action: Removed, ObjectRef: ObjectRef{Kind: "Secret", Namespace: namespace, Name: s.Name.Name},
				Because: ", which holds a token of the service account",
			})
		}
	}
}

// RemovableNames lists the names of objects of a kind in a namespace, sorted, as far as the state has
// them.
func (s *State) RemovableNames(of ObjectRef) []string {
	known := map[string]bool{}
	if w, ok := workloadKindOf(of.Group, of.Kind); ok && s.Inventory != nil {
		for _, p := range s.Inventory.PodsWhere(func(p *inventory.Pod) bool { return p.Namespace == of.Namespace }) {
			if p.Workload.Group == w.group && p.Workload.Resource == w.resource {
				known[p.Workload.Name] = true
			}
		}
	} else if k, ok := kindOf(of.Group, of.Kind); ok {
		for _, key := range s.keys(k) {
			if key.namespace.Value() == of.Namespace {
				known[key.name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(known))
}
