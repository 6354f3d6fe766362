package attackpaths

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

// What else decides.
const (
	dependsOnAttach    = "whether the container's process takes commands from its standard input"
	dependsOnReach     = "whether the API server reaches a server of the attacker"
	dependsOnReview    = dependsOnReach + ", and whether the secret is written again"
	dependsOnWrites    = "who writes the objects that the policy rewrites"
	dependsOnPolicies  = "whether the API server serves mutating admission policies"
	dependsOnAWS       = "whether the cluster reads the identity mappings"
	dependsOnCA        = "whether the signer has the key of an authority that the API server trusts"
	dependsOnPlacement = "where the scheduler puts the pods"
	dependsOnNewPods   = "when new pods are made from the template"
	dependsOnTemplates = "whether the namespace has such a workload: no pod shows one"
)

// right is the vertex of a right; the empty name is any name, the empty namespace every one.
func (b *builder) rightVertex(r right, namespace, name string) vertex {
	return b.vertex(key{kind: isRight, variant: uint16(r), namespace: namespace, name: name})
}

// expandRight gives what some identity with a right can do. A right in all namespaces gives the right in each of them, and one by
// name may give the right to any object.
func (b *builder) expandRight(v vertex, k key) {
	r := right(k.variant)
	kind := &b.kinds[r]
	contained, contains := r.contains()
	switch {
	case kind.custom && k.name != "": // the state does not show the object
		object := objectText(kind.group, kind.resource, kind.subresource)
		b.impliesIf(v, b.rightVertex(r, k.namespace, ""), "whether there is "+object+" "+k.name)
	case kind.namespaced && k.namespace == "" && k.of == 0:
		if r >= createPods && r <= createCronJobs { // the author of a namespace labels it, so that Pod Security lets privileged pods pass
			b.together(PodCreate, b.fact(everyNode, ""), b.guardsInNew(r), v, b.rightVertex(createNamespaces, "", ""))
		}
		namespaces := b.namespaces
		if r == impersonateServiceAccounts {
			namespaces = slices.Sorted(maps.Keys(b.accountNames)) // they need not exist
		}
		for _, ns := range namespaces {
			if kind.holdsIn(ns) && (k.name == "" || b.exists(r, ns, k.name)) {
				b.implies(v, b.rightVertex(r, ns, k.name))
			}
		}
	case kind.custom:
		if b.cluster.serves(kind.group, kind.resource) {
			b.customSteps(v, kind, k.namespace)
		}
	case contains:
		name, dependsOn := k.name, ""
		switch {
		case requestKinds[contained].unnamed:
			name, dependsOn = "", whetherExists(r, k.name)
		case kind.verbs[0] != "get":
			dependsOn = b.guardsOf(r, k.namespace)
		}
		b.impliesIf(v, b.rightVertex(contained, k.namespace, name), dependsOn)
	case k.name != "" && kind.unnamed:
		b.createsNamed(v, k, r)
	case k.name != "" && r == writeAPIServices:
		b.impliesIf(v, b.rightVertex(r, "", ""), whetherExists(r, k.name))
	default:
		b.stepsOf(v, k)
	}
}

// stepsOf adds the steps that a right gives where it holds.
func (b *builder) stepsOf(v vertex, k key) {
	r, admin := right(k.variant), b.vertex(key{kind: isClusterAdmin})
	covers := func(name string) bool { return k.name == "" || k.name == name }
	switch r {
	case readSecrets:
		b.readsSecrets(v, k)
	case createSecrets:
		b.createdAccountSecret(b.rightVertex(readSecrets, k.namespace, ""), k.namespace, none)
		if k.namespace == metav1.NamespaceSystem {
			b.createsBootstrapTokens(v, k.namespace)
		}
	case createToken:
		b.requestsTokens(v, k)
	case createAccounts:
		for _, name := range b.missingAccounts(k.namespace) {
			b.createsAccount(v, k.namespace, name)
		}
	case createPods, createDeployments, createDaemonSets, createStatefulSets, createReplicaSets,
		createReplicationControllers, createJobs, createCronJobs:
		b.step(PodCreate, v, b.namespaceVertex(k.namespace, r), -1, b.podGuards(r, k.namespace))
	case patchDeployments, patchDaemonSets, patchStatefulSets, patchReplicaSets, patchReplicationControllers, patchCronJobs:
		b.changesTemplates(v, k, r)
	case patchPods, execPods, attachPods, addContainers:
		for _, i := range b.podsOf(k) {
			b.controlsPod(v, r, i)
		}
	case proxyNodes:
		for _, n := range b.nodes {
			if covers(n.Name) {
				b.step(NodeProxy, v, b.fact(podsOfNode, n.Name), -1, b.guardsOf(r, ""))
			}
		}
	case changeNodes, changeNodeStatus:
		b.labelsNodes(v, k)
	case labelNamespaces, labelByStatus, finalizeNamespaces:
		if covers(k.namespace) {
			b.step(NamespaceRelabel, v, b.fact(privilegedPods, k.namespace), -1, b.guardsOf(r, k.namespace))
		}
	case createMutatingWebhooks, changeMutatingWebhooks:
		if r == createMutatingWebhooks || b.mayChange(requestKinds[r].resource, k.name) {
			b.step(AdmissionControl, v, admin, -1, dependsOnReach)
		}
	case createValidatingWebhooks, changeValidatingWebhooks:
		if r == createValidatingWebhooks || b.mayChange(requestKinds[r].resource, k.name) {
			b.step(SecretRead, v, b.fact(writtenSecrets, ""), -1, dependsOnReview)
		}
	case createMutatingPolicies:
		if condition, ok := b.policiesCondition(); ok {
			b.together(AdmissionControl, admin, condition, v, b.rightVertex(createMutatingPolicyBindings, "", ""))
		}
	case writeAPIServices:
		b.step(APIService, v, admin, -1, dependsOnReach)
	case createConfigMaps, patchConfigMaps:
		if b.cluster.EKS && k.namespace == metav1.NamespaceSystem && covers(awsAuth) {
			b.step(NodeIdentityConfig, v, admin, -1, dependsOnAWS)
		}
	case writeIdentityMappings:
		if b.cluster.serves("iamauthenticator.k8s.aws", "iamidentitymappings") {
			b.step(NodeIdentityConfig, v, admin, -1, dependsOnAWS)
		}
	case createSigningRequests:
		b.implies(v, b.fact(clientRequests, ""))
	case requestAudience:
		b.requestsAudience(v, k, "")
	case requestOtherAudience:
		b.requestsAudience(v, k, dependsOnAudience)
	case impersonateServiceAccounts:
		for _, name := range b.accountNames[k.namespace] {
			if covers(name) {
				b.step(Impersonate, v, b.asImpersonated(key{kind: isServiceAccount, namespace: k.namespace, name: name}), -1, "")
			}
		}
	case impersonateUsers:
		// The API server takes the name of a service account for that account, which needs another right.
		for _, user := range b.subjectsOf("User") {
			if _, _, isAccount := accountOfUser(user); !isAccount && covers(user) {
				b.step(Impersonate, v, b.asImpersonated(key{kind: isUser, name: user}), -1, "")
			}
		}
	}
}

// whetherExists is what else decides about a right to change an object that the state does not show, or any of its kind.
func whetherExists(r right, name string) string {
	if name == "" {
		return "whether any of the " + requestKinds[r].resource + " exists"
	}
	return "whether " + requestKinds[r].resource + "/" + name + " exists"
}

// policiesCondition is what else decides about mutating admission policies; false if the API server
// does not serve them. They exist since 1.32, and are served by default since 1.36.
func (b *builder) policiesCondition() (dependsOn string, served bool) {
	minor := b.cluster.Features.Minor()
	if minor < 32 || !b.cluster.serves("admissionregistration.k8s.io", "mutatingadmissionpolicies") {
		return "", false
	}
	if minor < 36 && b.cluster.Serves == nil {
		return allOf(dependsOnPolicies, dependsOnWrites), true
	}
	return dependsOnWrites, true
}

// allOf joins conditions, of which any may be empty.
func allOf(conditions ...string) string {
	return strings.Join(slices.Compact(slices.DeleteFunc(conditions, func(c string) bool { return c == "" })), "; ")
}

// guardsOf names what admission is asked about a request that needs a right.
func (b *builder) guardsOf(r right, namespace string) string {
	return b.guardsFor(r, namespace, "", func() []attempt { return b.attemptsOf(r, namespace) })
}

// exists reports whether a namespace has an object that a right for one name is about, as far as it matters.
func (b *builder) exists(r right, namespace, name string) bool {
	switch kind := &requestKinds[r]; {
	case kind.unnamed:
		return b.free(r, namespace, name) || deleteOf[r] != 0
	case kind.resource == "serviceaccounts":
		return slices.Contains(b.accountNames[namespace], name) // it can be created
	case kind.resource == "pods":
		return b.has(key{kind: isPod, namespace: namespace, name: name})
	case kind.resource == "namespaces":
		return namespace == name
	case kind.resource == "configmaps":
		return namespace == metav1.NamespaceSystem && name == awsAuth
	}
	return true // it can be created under that name, or is deleted
}

func (b *builder) readsSecrets(v vertex, k key) {
	for _, s := range b.secrets[k.namespace] {
		if k.name == "" || k.name == s.Name.Name {
			b.step(SecretRead, v, b.vertex(key{kind: isSecret, namespace: k.namespace, name: s.Name.Name}), -1, "")
		}
	}
	if k.name != "" {
		gone, _ := b.madeFree(createSecrets, k.namespace, k.name)
		b.createdAccountSecret(v, k.namespace, gone)
	}
}

// createdAccountSecret gives every service account of a namespace to who creates a secret of
// type service-account-token and reads what the token controller puts into it. Gone is that no secret has its name any more.
func (b *builder) createdAccountSecret(read vertex, namespace string, gone vertex) {
	b.together(ServiceAccountTokenSecret, b.fact(everyAccount, namespace), b.guardsOf(createSecrets, namespace),
		b.rightVertex(createSecrets, namespace, ""), read, gone)
}

func (b *builder) createsBootstrapTokens(v vertex, namespace string) {
	for _, group := range b.bootstrapGroups() {
		guards := b.guardsFor(createSecrets, namespace, "bootstrap", func() []attempt {
			return b.secretOf(namespace, corev1.SecretTypeBootstrapToken)
		})
		condition := allOf("whether the API server accepts bootstrap tokens", guards)
		b.step(BootstrapToken, v, b.vertex(key{kind: isGroup, name: group}), -1, condition)
	}
}

// requestsTokens gives the service accounts for which tokens can be requested, bound to any node.
func (b *builder) requestsTokens(v vertex, k key) {
	guards := b.guardsOf(createToken, k.namespace)
	for _, name := range b.accounts[k.namespace] {
		if k.name == "" || k.name == name {
			b.step(TokenRequest, v, b.accountVertex(k.namespace, name), -1, guards)
			if b.scopeOf(k.namespace, name) != nil {
				b.requestsScopedToken(v, k.namespace, name, guards)
			} else if b.associates() {
				b.step(TokenRequest, v, b.anyToken(k.namespace, name), -1, guards)
			}
		}
	}
}

// podsOf are the pods that a right is about.
func (b *builder) podsOf(k key) []int32 {
	if k.of != 0 {
		return b.podsOnNode(k)
	}
	if k.name == "" {
		return b.podsIn[k.namespace]
	}
	if v, ok := b.index[key{kind: isPod, namespace: k.namespace, name: k.name}]; ok {
		return []int32{int32(v - b.firstPod)}
	}
	return nil
}

// controlsPod gives a pod whose image a right lets be replaced, or in which it lets processes be started or a container be added; and
// its node where the container may be privileged. Pod Security looks at the whole pod if the pod changes.
func (b *builder) controlsPod(v vertex, r right, i int32) {
	p, to := b.pods[i], b.podVertex(i)
	switch {
	case r == patchPods:
		if !p.Mirror && !p.Ended {
			b.admits(PodUpdate, p, to, b.guardsOf(r, p.Namespace), v)
		}
	case !mayRun(p):
	case r == execPods:
		b.step(PodExec, v, to, -1, allOf(starting(p), b.guardsOf(r, p.Namespace)))
	case r == attachPods:
		b.step(PodExec, v, to, -1, allOf(starting(p), dependsOnAttach, b.guardsOf(r, p.Namespace)))
	case !p.Mirror:
		b.admits(PodExec, p, to, allOf(starting(p), b.containerGuards(p, false)), v)
		if p.Node != "" {
			dependsOn := allOf(starting(p), b.containerGuards(p, true))
			b.privileged(PodExec, b.vertex(key{kind: isNode, name: p.Node}), p.Namespace, dependsOn, v)
		}
	}
}

// admits adds a step to who may change a pod, where Pod Security lets it be changed. Ways out of containers are what each level but
// privileged refuses.
func (b *builder) admits(code Code, p *inventory.Pod, to vertex, dependsOn string, v vertex) {
	if len(p.Escapes) == 0 && !p.HostPath {
		b.together(code, to, dependsOn, v)
		return
	}
	b.privileged(code, to, p.Namespace, dependsOn, v)
}

// changesTemplates gives the pods that are made from templates which a right lets be changed.
func (b *builder) changesTemplates(v vertex, k key, r right) {
	if b.terminating[k.namespace] {
		return
	}
	kind := &requestKinds[r]
	found := slices.ContainsFunc(b.podsIn[k.namespace], func(i int32) bool {
		w := b.pods[i].Workload
		return w.Resource == kind.resource && w.Group == kind.group && (k.name == "" || k.name == w.Name)
	})
	dependsOn := b.podGuards(r, k.namespace)
	switch {
	case !found:
		dependsOn = allOf(dependsOnTemplates, dependsOn)
	case r == patchReplicaSets || r == patchReplicationControllers:
		dependsOn = allOf(dependsOnNewPods, dependsOn)
	}
	b.step(PodUpdate, v, b.namespaceVertex(k.namespace, r), -1, dependsOn)
}
