package attackpaths_test

import (
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

// Facts about what lies on a node.
func keysOn(node string) fact    { return fact{"keys of the control plane on", "", node} }
func mountedOn(node string) fact { return fact{"what pods mount on", "", node} }
func heldOn(node string) fact {
	return fact{"what pods mount or have in their environment on", "", node}
}

// escapes leads from a pod to what each way out of it gives.
func (n *naive) escapes(p *inventory.Pod) {
	for _, way := range p.WaysOut(n.c.Inventory.References()) {
		possible := way.DependsOn != ""
		switch way.Effect {
		case inventory.TakesNode:
			n.step(1, possible, nodeHolding(p.Node), podHolding(p))
		case inventory.TakesCredential:
			n.step(1, possible, cred(p.Node), podHolding(p))
		case inventory.TakesControlPlane:
			n.step(1, possible, keysOn(p.Node), podHolding(p))
		case inventory.TakesPods:
			n.step(1, possible, heldOn(p.Node), podHolding(p))
		case inventory.TakesMounted:
			n.step(1, possible, mountedOn(p.Node), podHolding(p))
		case inventory.LinksLogs:
			reads := n.right(
				ask{verbs: verbs("get"), resource: "nodes", sub: "log", name: p.Node},
				ask{verbs: verbs("get", "create"), resource: "nodes", sub: "proxy", name: p.Node},
				ask{verbs: verbs("get"), resource: "pods", sub: "log", ns: p.Namespace, name: p.Name.Name},
			)
			n.step(1, true, cred(p.Node), podHolding(p), reads)
			n.step(1, true, heldOn(p.Node), podHolding(p), reads)
		}
	}
}

// controlPlanePod leads from the node of a pod, and from the keys there, to what they give. Pods that are on the node bring to
// it what they mount, and so to who reads what is mounted.
func (n *naive) controlPlanePod(p *inventory.Pod) {
	possible := p.ControlPlaneDependsOn != ""
	for _, from := range []fact{nodeHolding(p.Node), keysOn(p.Node)} {
		switch {
		case p.ControlPlane == "kube-scheduler":
			n.step(1, possible, user("system:kube-scheduler"), from)
		case p.ControlPlane != "" || possible:
			n.step(1, possible, clusterAdmin, from)
		}
	}
	if !p.Mirror && len(p.Audiences) > 0 {
		n.step(1, !slices.Contains(p.Audiences, "") || p.Ended, n.tokenOf(accountOfPod(p), p.Node), mountedOn(p.Node))
	}
	n.step(0, false, mountedOn(p.Node), heldOn(p.Node))
	for _, s := range p.Secrets {
		from := heldOn(p.Node)
		if slices.Contains(p.VolumeSecrets, s) {
			from = mountedOn(p.Node)
		}
		n.step(1, p.Ended, fact{attackpaths.Secret, p.Namespace, s}, from)
	}
}

func (n *naive) labelledControlPlane(node inventory.Node) {
	for _, role := range []string{"control-plane", "master", "etcd"} {
		if _, ok := node.Labels["node-role.kubernetes.io/"+role]; ok {
			n.step(1, true, clusterAdmin, nodeHolding(node.Name))
			n.step(1, true, clusterAdmin, keysOn(node.Name))
		}
	}
}

// existingClaims leads from pods that can be made to what the claims of the namespace give of a node.
func (n *naive) existingClaims(ns string, node inventory.Node, made fact, guarded bool) {
	for claim, volumes := range n.c.Inventory.References().Claimed {
		for _, volume := range volumes {
			if claim.Namespace == ns && volume.OnNode(&node) {
				n.mountsVolume(volume, node, guarded || volume.DependsOn != "" || n.keepsRoot(ns), made)
			}
		}
	}
}

// freeVolumes leads from pods that can be made to what a volume gives of a node that no claim has.
func (n *naive) freeVolumes(ns string, node inventory.Node, made fact, claim, ephemeral bool) {
	for _, volume := range n.c.Inventory.References().Free {
		if !volume.OnNode(&node) || volume.Claim.Namespace != "" && volume.Claim.Namespace != ns {
			continue
		}
		guarded := n.guarded(admissionv1.Create, "", "persistentvolumeclaims", "", ns) || n.keepsRoot(ns) ||
			volume.Claim.Namespace != ""
		n.mountsVolume(volume, node, guarded || ephemeral, made)
		n.mountsVolume(volume, node, guarded || claim, made, n.creates(ask{verbs: creating, resource: "persistentvolumeclaims", ns: ns}))
	}
}

func (n *naive) mountsVolume(volume inventory.Volume, node inventory.Node, guarded bool, from ...fact) {
	for _, way := range volume.WaysOut() {
		to, ok := map[inventory.Effect]fact{
			inventory.TakesNode: nodeHolding(node.Name), inventory.TakesCredential: cred(node.Name),
			inventory.TakesControlPlane: keysOn(node.Name), inventory.TakesPods: heldOn(node.Name),
			inventory.TakesMounted: mountedOn(node.Name),
		}[way.Effect]
		if ok {
			n.step(1, guarded || way.DependsOn != "", to, from...)
		}
	}
}
