package attackpaths

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	psa "k8s.io/pod-security-admission/api"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

// Facts: intermediate results that several techniques lead to or need.
const (
	// everyNode is each node, through a pod with rights over its host that names the node.
	everyNode = "every node"
	// targetReached is that the target of advice, or cluster-admin, is reached.
	targetReached = "the target is reached"
	// everyNodeUser is the credential of each node.
	everyNodeUser = "every node's credential"
	// everyUser is each user that a binding names, and everyGroup each group.
	everyUser  = "every user"
	everyGroup = "every group"
	// everyAccount is each service account of a namespace.
	everyAccount = "every service account"
	// everyAccountName is each service account of a namespace, or of all, that exists or that a
	// binding names.
	everyAccountName = "every service account that is named"
	// everyIdentity is each user together with every group, and everyPlainIdentity without service
	// accounts. userWithGroups is one user together with every group; it is in the namespace.
	everyIdentity      = "every user with every group"
	everyPlainIdentity = "every user that is no service account with every group"
	userWithGroups     = "a user with every group"
	// holdsIdentity is that an identity is held to which NodeRestriction does not apply.
	holdsIdentity = "an identity that is not a node"
	// privilegedPods is that Pod Security lets pods of a namespace have rights over their host.
	privilegedPods = "privileged pods"
	// writtenSecrets is each secret as it is written.
	writtenSecrets = "secrets that are written"
	// labelledNode is a node that an account gives any labels, and untaintedNode one from which it takes taints too. The
	// namespace is its name.
	labelledNode  = "a node with any labels"
	untaintedNode = "a node with any labels and no taints"
	// clientRequests is that requests for client certificates can be made.
	clientRequests = "requests for client certificates"
	// deletedObject is that an object does not exist any more. The variant is the right to delete it, and the namespace
	// NAMESPACE/NAME.
	deletedObject = "an object that is deleted"
	// podsOfNode is each pod on a node, by the name of the node.
	podsOfNode = "pods of a node"
)

func (b *builder) expandFact(v vertex, k key) {
	switch k.name {
	case everyNode:
		for _, n := range b.nodes {
			b.implies(v, b.vertex(key{kind: isNode, name: n.Name}))
		}
	case everyNodeUser:
		for _, n := range b.nodes {
			b.implies(v, b.memberOf(k, key{kind: isNodeUser, name: nodeUserPrefix + n.Name}))
		}
	case everyUser:
		for _, s := range b.subjectsOf("User") {
			b.implies(v, b.memberOf(k, userKey(s)))
		}
	case everyGroup:
		for _, s := range b.subjectsOf("Group") {
			if s != masters {
				b.implies(v, b.memberOf(k, key{kind: isGroup, name: s}))
			}
		}
	case everyAccount:
		for _, name := range b.accounts[k.namespace] {
			b.implies(v, b.accountVertex(k.namespace, name))
		}
	case everyAccountName:
		b.expandAccountNames(v, k)
	case everyIdentity, everyPlainIdentity:
		b.expandEveryIdentity(v, k)
	case userWithGroups:
		b.holds(v)
		b.addIdentity(v, k, b.subjectsOfIdentity(k))
	case labelledNode, untaintedNode:
		b.expandLabelledNode(v, k)
	case writtenSecrets:
		for _, ns := range b.namespaces {
			for _, s := range b.secrets[ns] {
				b.implies(v, b.vertex(key{kind: isSecret, namespace: ns, name: s.Name.Name}))
			}
		}
	case keysOnNode:
		b.controlPlane(v, k.namespace)
	case mountedOnNode, heldOnNode:
		b.onPodsOf(v, k.namespace, k.name)
	case claimedVolume:
		namespace, name, _ := strings.Cut(k.namespace, "/")
		b.expandClaim(v, k, b.references.Claimed[inventory.Name{Namespace: namespace, Name: name}])
	case freeVolume:
		i := slices.IndexFunc(b.references.Free, func(volume inventory.Volume) bool { return volume.Name == k.namespace })
		b.expandVolume(v, b.references.Free[i])
	case podsOfNode:
		for _, i := range b.podsOn[k.namespace] {
			if p := b.pods[i]; mayRun(p) {
				b.impliesIf(v, b.podVertex(i), starting(p))
			}
		}
	}
}

func (b *builder) expandAccountNames(v vertex, k key) {
	if k.namespace == "" {
		for _, ns := range slices.Sorted(maps.Keys(b.accountNames)) {
			b.implies(v, b.memberOf(k, key{kind: isFact, namespace: ns, name: everyAccountName}))
		}
		return
	}
	for _, name := range b.accountNames[k.namespace] {
		b.implies(v, b.memberOf(k, key{kind: isServiceAccount, namespace: k.namespace, name: name}))
	}
}

// userKey is the identity of a user name: a service account's is that account.
func userKey(user string) key {
	if namespace, name, ok := accountOfUser(user); ok {
		return key{kind: isServiceAccount, namespace: namespace, name: name}
	}
	return key{kind: isUser, name: user}
}

// privileged adds a step to who may give pods of a namespace rights over their host: where Pod Security does not forbid it, or is
// turned off.
func (b *builder) privileged(code Code, to vertex, namespace, dependsOn string, v vertex) {
	switch b.level(namespace) {
	case psa.LevelPrivileged:
		b.together(code, to, dependsOn, v)
		return
	case "":
		b.together(code, to, allOf(dependsOnLevel, dependsOn), v)
	}
	b.together(code, to, dependsOn, v, b.fact(privilegedPods, namespace))
}

// dependsOnLevel is what else decides about a namespace of which the objects show no labels.
const dependsOnLevel = "which Pod Security level the namespace enforces: the objects do not show its labels"

// level is the Pod Security level that a namespace enforces; empty if its labels are not known.
func (b *builder) level(namespace string) psa.Level {
	labels, known := b.labels[namespace]
	if !known {
		return ""
	}
	defaults := psa.Policy{Enforce: psa.LevelVersion{Level: psa.LevelPrivileged, Version: psa.LatestVersion()}}
	policy, _ := psa.PolicyToEvaluate(labels, defaults)
	return policy.Enforce.Level
}

// withName adds the label that each namespace has.
func withName(labels map[string]string, namespace string) map[string]string {
	return withLabels(map[string]string{corev1.LabelMetadataName: namespace}, labels)
}

// Facts about what lies on a node, by the name of the node.
const (
	// keysOnNode is the credentials of the control plane that lie on a node.
	keysOnNode = "control plane's credentials on a node"
	// mountedOnNode is the tokens and secrets in the volumes of the pods of a node, and heldOnNode also those in the environment.
	mountedOnNode = "what is mounted into the pods of a node"
	heldOnNode    = "what the processes of the pods of a node have"
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
	for n := range b.nodes {
		if node := &b.nodes[n]; p.Placement.Allows(node, nil) {
			b.escapesTo(v, i, node.Name, ways, dependsOnPlacement)
		}
	}
}

func (b *builder) escapesTo(v vertex, i int32, node string, ways []inventory.Escape, dependsOn string) {
	given := map[inventory.Effect]bool{} // by ways that are at least as certain
	for _, way := range ways {
		if given[way.Effect] {
			continue
		}
		given[way.Effect] = true
		condition := allOf(way.DependsOn, dependsOn)
		if way.Effect != inventory.LinksLogs {
			b.step(PodEscape, v, b.taken(node, way.Effect), i, condition)
			continue
		}
		p := b.pods[i]
		for _, read := range []vertex{ // the rights that let the kubelet be asked for logs
			b.rightVertex(proxyNodes, "", ""), b.rightVertex(proxyNodes, "", node),
			b.rightVertex(readNodeLogs, "", ""), b.rightVertex(readNodeLogs, "", node),
			b.rightVertex(readPodLogs, p.Namespace, ""), b.rightVertex(readPodLogs, p.Namespace, p.Name.Name),
		} {
			b.togetherBy(PodEscape, b.nodeUserVertex(node), i, condition, v, read)
			b.togetherBy(PodEscape, b.fact(heldOnNode, node), i, condition, v, read)
		}
	}
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
		return b.fact(heldOnNode, node)
	case inventory.TakesMounted:
		return b.fact(mountedOnNode, node)
	}
	return none
}

// controlPlane leads to what the control plane's credentials on a node give.
func (b *builder) controlPlane(v vertex, node string) {
	admin := b.vertex(key{kind: isClusterAdmin})
	for _, i := range b.podsOn[node] {
		switch p := b.pods[i]; {
		case p.ControlPlane == "kube-scheduler":
			b.step(ControlPlaneNode, v, b.vertex(key{kind: isUser, name: scheduler}), i, p.ControlPlaneDependsOn)
		case p.MayRunControlPlane():
			b.step(ControlPlaneNode, v, admin, i, p.ControlPlaneDependsOn)
		}
	}
	labels := b.node(node).Labels
	if slices.ContainsFunc(controlPlaneLabels, func(label string) bool { _, has := labels[label]; return has }) {
		b.step(ControlPlaneNode, v, admin, -1, dependsOnLabel)
	}
}

// node is a node that the cluster has, or that a pod is bound to.
func (b *builder) node(name string) *inventory.Node {
	i, _ := slices.BinarySearchFunc(b.nodes, name, func(n inventory.Node, name string) int { return strings.Compare(n.Name, name) })
	return &b.nodes[i]
}

// onPodsOf leads to the tokens and secrets in the volumes of the pods of a node, or to those that their processes have.
func (b *builder) onPodsOf(v vertex, node, which string) {
	for _, i := range b.podsOn[node] {
		p, condition := b.pods[i], ""
		if p.Ended {
			condition = dependsOnKept
		}
		b.mounted(PodTokenOnNode, v, p, i)
		secrets := b.templateOf(p).volumes
		if which == heldOnNode {
			secrets = b.templateOf(p).secrets
		}
		for _, secret := range secrets {
			b.step(PodSecret, v, secret, i, condition)
		}
	}
}

// mountsVolumes leads from pods in a namespace to what its claims give of nodes, and the volumes that no claim has: a claim names
// its volume. Who creates a volume that is a folder of the host gets every node. Pod Security does not look behind claims, but
// restricted pods do not run as root.
func (b *builder) mountsVolumes(v vertex, k key) {
	user, guards := b.otherUser(k.name), b.useGuards(k, mountsClaim, "")
	for _, claim := range b.claimsIn[k.name] {
		b.step(VolumeControl, v, b.fact(claimedVolume, k.name+"/"+claim.Name), -1, allOf(user, guards))
	}
	for _, volume := range b.references.Free {
		switch volume.Claim.Namespace {
		case "":
			b.claims(v, k, b.fact(freeVolume, volume.Name), allOf(b.guardsOf(createClaims, k.name), user))
		case k.name:
			b.claims(v, k, b.fact(freeVolume, volume.Name), allOf(b.guardsOf(createClaims, k.name), dependsOnWaits, user))
		}
	}
	condition := allOf(b.guardsOf(createVolumes, ""), b.guardsOf(createClaims, k.name), user)
	b.claims(v, k, b.fact(everyNode, ""), condition, b.rightVertex(createVolumes, "", ""))
}

// claims leads to what a pod gets that claims a volume. A controller makes the claim of an ephemeral volume; a claim that the attacker
// makes may pass other policies.
func (b *builder) claims(v vertex, k key, to vertex, condition string, with ...vertex) {
	from := append(with, v)
	b.together(VolumeControl, to, allOf(condition, b.useGuards(k, mountsEphemeral, "")), slices.Clone(from)...)
	if b.evaluatesPolicies() {
		from = append(from, b.rightVertex(createClaims, k.name, ""))
		b.together(VolumeControl, to, allOf(condition, b.useGuards(k, mountsClaim, "")), from...)
	}
}

// otherUser says what decides about pods that Pod Security keeps from running as root; empty for others.
func (b *builder) otherUser(namespace string) string {
	switch b.level(namespace) {
	case psa.LevelRestricted:
		return dependsOnNoRoot
	case "":
		return dependsOnLevel
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
		for _, way := range ways {
			if to := b.taken(node.Name, way.Effect); to != none {
				b.impliesIf(v, to, way.DependsOn)
			}
		}
	}
}
