package attackpaths

import (
	"slices"
	"strings"

	psa "k8s.io/pod-security-admission/api"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

// Facts about what lies on a node, by the name of the node.
const (
	// keysOnNode is the credentials of the control plane that lie on a node.
	keysOnNode = "control plane's credentials on a node"
	// mountedOnNode is the tokens and secrets that are mounted into the pods of a node.
	mountedOnNode = "what is mounted into the pods of a node"
	// freeVolume is what a volume that no claim has gives to pods; its namespace is the volume's name.
	freeVolume = "a free volume"
	// bindableVolumes is what the volumes give to which claims may be bound; its namespace is one of these claims.
	bindableVolumes = "volumes to which a claim may be bound"
	// claimedVolume is what a claim gives to pods; its namespace is NAMESPACE/NAME of the claim.
	claimedVolume = "a claimed volume"
)

// dependsOnWaits is what else decides about a volume for a claim that does not exist.
const dependsOnWaits = "whether the volume waits for a claim of the name: one that has been used does not"

const dependsOnLabel = "whether the control plane runs on the node, as its label says"

// controlPlaneLabels are the labels of nodes that run the control plane, or its etcd. Sources: kubeadm, k3s, RKE2.
var controlPlaneLabels = []string{
	"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master", "node-role.kubernetes.io/etcd",
}

// escapes leads from the processes of a pod to what they get of its node. A pod that is not bound yet may come to each
// node that allows it.
func (b *builder) escapes(v vertex, i int32) {
	p := b.pods[i]
	ways := p.WaysOut(b.references)
	if len(ways) == 0 {
		return
	}
	if p.Node != "" {
		b.escapesTo(v, i, p.Node, ways, "")
		return
	}
	none := func(string) bool { return false }
	for n := range b.nodes {
		if node := &b.nodes[n]; p.Placement.Allows(node, none) {
			b.escapesTo(v, i, node.Name, ways, dependsOnPlacement)
		}
	}
}

func (b *builder) escapesTo(v vertex, i int32, node string, ways []inventory.Escape, dependsOn string) {
	for place, way := range ways {
		if !firstOfEffect(ways, place) {
			continue
		}
		condition := allOf(way.DependsOn, dependsOn)
		if way.Effect != inventory.LinksLogs {
			b.step(PodEscape, v, b.taken(node, way.Effect), i, condition)
			continue
		}
		for _, read := range b.logReaders(b.pods[i], node) {
			b.togetherBy(PodEscape, b.nodeUserVertex(node), i, condition, v, read)
			b.togetherBy(PodEscape, b.fact(mountedOnNode, node), i, condition, v, read)
		}
	}
}

// firstOfEffect reports whether no way before gives the same: these are at least as certain.
func firstOfEffect(ways []inventory.Escape, place int) bool {
	return !slices.ContainsFunc(ways[:place], func(e inventory.Escape) bool { return e.Effect == ways[place].Effect })
}

// taken is the vertex of what is taken of a node.
func (b *builder) taken(node string, effect inventory.Effect) vertex {
	switch effect {
	case inventory.TakesNode:
		return b.vertex(key{kind: isNode, name: node})
	case inventory.TakesCredential:
		return b.nodeUserVertex(node)
	case inventory.TakesControlPlane:
		return b.fact(keysOnNode, node)
	case inventory.TakesPods:
		return b.fact(mountedOnNode, node)
	}
	return none
}

// logReaders are the rights that let the kubelet of a pod's node be asked for logs.
func (b *builder) logReaders(p *inventory.Pod, node string) []vertex {
	return []vertex{
		b.rightVertex(proxyNodes, "", ""), b.rightVertex(proxyNodes, "", node),
		b.rightVertex(readNodeLogs, "", ""), b.rightVertex(readNodeLogs, "", node),
		b.rightVertex(readPodLogs, p.Namespace, ""), b.rightVertex(readPodLogs, p.Namespace, p.Name.Name),
	}
}

// controlPlane leads to what the control plane's credentials on a node give.
func (b *builder) controlPlane(v vertex, node string) {
	admin := b.vertex(key{kind: isClusterAdmin})
	for _, i := range b.podsOn[node] {
		switch p := b.pods[i]; {
		case p.ControlPlane == "kube-scheduler":
			b.step(ControlPlaneNode, v, b.vertex(key{kind: isUser, name: "system:kube-scheduler"}), i, p.ControlPlaneDependsOn)
		case p.ControlPlane != "" || p.ControlPlaneDependsOn != "":
			b.step(ControlPlaneNode, v, admin, i, p.ControlPlaneDependsOn)
		}
	}
	if b.isControlPlane(node) {
		b.step(ControlPlaneNode, v, admin, -1, dependsOnLabel)
	}
}

func (b *builder) isControlPlane(node string) bool {
	i, found := slices.BinarySearchFunc(b.nodes, node, func(n inventory.Node, name string) int { return strings.Compare(n.Name, name) })
	return found && slices.ContainsFunc(controlPlaneLabels, func(label string) bool {
		_, labeled := b.nodes[i].Labels[label]
		return labeled
	})
}

// mountedOn leads to the tokens and secrets that are mounted into the pods of a node.
func (b *builder) mountedOn(v vertex, node string) {
	for _, i := range b.podsOn[node] {
		p := b.pods[i]
		b.mounted(PodTokenOnNode, v, p, i)
		condition := ""
		if p.Ended {
			condition = dependsOnKept
		}
		for _, secret := range b.templateOf(p).secrets {
			b.step(PodSecret, v, secret, i, condition)
		}
	}
}

// mountsClaims leads to what the claims of a namespace give of nodes. Pod Security does not look behind claims.
func (b *builder) mountsClaims(v vertex, namespace, guards string) {
	for _, claim := range b.claimsIn[namespace] {
		b.step(VolumeControl, v, b.fact(claimedVolume, namespace+"/"+claim.Name), -1, allOf(b.otherUser(namespace), guards))
	}
}

// mountsFreeVolumes leads to what the volumes that no claim has give of nodes. A claim names its volume, and the controller of
// ephemeral volumes makes it.
func (b *builder) mountsFreeVolumes(v vertex, k key) {
	for i := range b.freeVolumes {
		volume, dependsOn := &b.freeVolumes[i], b.otherUser(k.name)
		if waits := volume.Claim.Namespace; waits != "" && waits != k.name {
			continue
		} else if waits != "" {
			dependsOn = allOf(dependsOnWaits, dependsOn)
		}
		to, condition := b.fact(freeVolume, volume.Name), allOf(b.guardsOf(createClaims, k.name), dependsOn)
		b.step(VolumeControl, v, to, -1, allOf(condition, b.useGuards(k, mountsEphemeral, "")))
		if b.evaluatesPolicies() {
			b.together(VolumeControl, to, allOf(condition, b.useGuards(k, mountsClaim, "")), v, b.rightVertex(createClaims, k.name, ""))
		}
	}
}

// otherUser says what decides about pods that Pod Security keeps from running as root; empty for others.
func (b *builder) otherUser(namespace string) string {
	if b.level(namespace) == psa.LevelRestricted {
		return dependsOnNoRoot
	}
	return ""
}

// expandClaim leads from a claim to what its volumes give. Claims that may be bound to the same volumes share a vertex.
func (b *builder) expandClaim(v vertex, k key, volumes []inventory.Volume) {
	if volumes[0].DependsOn == "" {
		for _, volume := range volumes {
			b.expandVolume(v, volume)
		}
		return
	}
	shared, ok := b.bindable[&volumes[0]]
	if !ok {
		shared = b.fact(bindableVolumes, k.namespace)
		b.bindable[&volumes[0]] = shared
		for _, volume := range volumes {
			b.expandVolume(shared, volume)
		}
	}
	b.impliesIf(v, shared, volumes[0].DependsOn)
}

// expandVolume leads from a volume that a pod mounts to what it gives of the nodes that have it.
func (b *builder) expandVolume(v vertex, volume inventory.Volume) {
	ways := volume.WaysOut()
	for n := range b.nodes {
		node := &b.nodes[n]
		if !volume.OnNode(node) {
			continue
		}
		for place, way := range ways {
			if to := b.taken(node.Name, way.Effect); to != none && firstOfEffect(ways, place) {
				b.out[v] = append(b.out[v], edge{to: to, arg: -1, dependsOn: b.condition(way.DependsOn)})
			}
		}
	}
}
