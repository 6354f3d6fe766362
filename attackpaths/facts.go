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
		b.expandTogether(v, k)
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

// privileged is the vertex that has to be reached so that pods of a namespace may have rights
// over their host; none if they may anyway.
func (b *builder) privileged(namespace string) vertex {
	if b.level(namespace) == psa.LevelPrivileged {
		return none
	}
	return b.fact(privilegedPods, namespace)
}

// level is the Pod Security level that a namespace enforces.
func (b *builder) level(namespace string) psa.Level {
	defaults := psa.Policy{Enforce: psa.LevelVersion{Level: psa.LevelPrivileged, Version: psa.LatestVersion()}}
	policy, _ := psa.PolicyToEvaluate(b.labels[namespace], defaults)
	return policy.Enforce.Level
}

// guards names the webhooks, and the policies that are not evaluated, that are asked about a
// write.
func (b *builder) guards(w inventory.Write, namespace string) []string {
	labels := map[string]string{}
	if namespace != "" {
		labels = withName(b.labels[namespace], namespace)
	}
	var names []string
	for i := range b.admission {
		a := &b.admission[i]
		if (!isPolicy(*a) || b.cluster.Policies == nil) && a.Covers(w, labels) {
			names = append(names, a.String())
		}
	}
	return names
}

// withName adds the label that each namespace has.
func withName(labels map[string]string, namespace string) map[string]string {
	return withLabels(map[string]string{corev1.LabelMetadataName: namespace}, labels)
}

// guarded says that admission decides about a write; empty if nothing is asked.
func (b *builder) guarded(w inventory.Write, namespace string) string {
	return strings.Join(b.guards(w, namespace), "; ")
}
