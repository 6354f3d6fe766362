package attackpaths

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/inventory"
)

// What else decides.
const (
	dependsOnAttach    = "whether the container's process takes commands from its standard input"
	dependsOnReach     = "whether the API server reaches a server of the attacker"
	dependsOnWrites    = "who writes the objects that the policy rewrites"
	dependsOnAWS       = "whether the cluster reads the identity mappings"
	dependsOnCA        = "whether the signer has the key of an authority that the API server trusts"
	dependsOnPlacement = "where the scheduler puts the pods"
	dependsOnNewPods   = "when new pods are made from the template"
	dependsOnTemplates = "whether the namespace has such a workload: no pod shows one"
)

// right is the vertex of a right; the empty name is any name, the empty namespace every one.
func (b *builder) rightVertex(r right, namespace, name string) vertex {
	return b.vertex(key{kind: isRight, variant: uint8(r), namespace: namespace, name: name})
}

// expandRight gives what some identity with a right can do.
func (b *builder) expandRight(v vertex, k key) {
	r := right(k.variant)
	if requestKinds[r].namespaced && k.namespace == "" {
		for _, ns := range b.namespaces {
			if k.name == "" || b.exists(r, ns, k.name) {
				b.implies(v, b.rightVertex(r, ns, k.name))
			}
		}
		return
	}
	admin := b.vertex(key{kind: isClusterAdmin})
	switch r {
	case readSecrets:
		b.readsSecrets(v, k)
	case createSecrets:
		b.createsSecrets(v, k)
	case createToken:
		b.eachAccount(TokenRequest, v, k, b.guardsOf(r, k.namespace))
	case impersonateServiceAccounts:
		b.eachAccount(Impersonate, v, k, "")
	case createPods, createDeployments, createDaemonSets, createStatefulSets, createReplicaSets,
		createReplicationControllers, createJobs, createCronJobs:
		b.createsPods(v, k.namespace, r)
	case patchDeployments, patchDaemonSets, patchStatefulSets, patchReplicaSets, patchReplicationControllers, patchCronJobs:
		b.changesTemplates(v, k, r)
	case patchPods:
		b.changesPods(v, k)
	case execPods:
		b.eachPod(PodExec, v, k, b.guardsOf(r, k.namespace), func(p *inventory.Pod) bool { return p.Node != "" })
	case attachPods:
		b.eachPod(PodExec, v, k, allOf(dependsOnAttach, b.guardsOf(r, k.namespace)), func(p *inventory.Pod) bool { return p.Node != "" })
	case addContainers:
		b.addsContainers(v, k)
	case proxyNodes:
		for _, n := range b.nodes {
			if k.name == "" || k.name == n.Name {
				b.step(NodeProxy, v, b.fact(podsOfNode, n.Name), -1, b.guardsOf(r, ""))
			}
		}
	case labelNamespaces:
		if k.name == "" || k.name == k.namespace {
			b.step(NamespaceRelabel, v, b.fact(privilegedPods, k.namespace), -1, b.guardsOf(r, k.namespace))
		}
	case writeMutatingWebhooks:
		b.step(AdmissionControl, v, admin, -1, dependsOnReach)
	case writeMutatingPolicies:
		if b.cluster.serves("admissionregistration.k8s.io", "mutatingadmissionpolicies") {
			b.together(AdmissionControl, admin, dependsOnWrites, v, b.rightVertex(writeMutatingPolicyBindings, "", ""))
		}
	case writeAPIServices:
		b.step(APIService, v, admin, -1, dependsOnReach)
	case createConfigMaps:
		b.writesMappings(v, k.namespace)
	case patchConfigMaps:
		if k.name == "" || k.name == "aws-auth" {
			b.writesMappings(v, k.namespace)
		}
	case writeIdentityMappings:
		if b.cluster.serves("iamauthenticator.k8s.aws", "iamidentitymappings") {
			b.step(NodeIdentityConfig, v, admin, -1, dependsOnAWS)
		}
	case createSigningRequests:
		b.implies(v, b.fact(clientRequests, ""))
	case impersonateUsers:
		b.impersonatesUsers(v, k.name)
	}
}

// allOf joins conditions, of which any may be empty.
func allOf(conditions ...string) string {
	return strings.Join(slices.DeleteFunc(conditions, func(c string) bool { return c == "" }), "; ")
}

// guardsOf names what admission is asked about a request that needs a right.
func (b *builder) guardsOf(r right, namespace string) string {
	kind := &requestKinds[r]
	operation := admissionv1.Update
	switch {
	case r == execPods || r == attachPods || r == proxyNodes:
		operation = admissionv1.Connect
	case slices.Contains(kind.verbs, "create"):
		operation = admissionv1.Create
	}
	return b.guarded(inventory.Write{
		Operation: operation, Group: kind.group, Resource: kind.resource, Subresource: kind.subresource,
		Namespaced: kind.namespaced && kind.resource != "namespaces",
	}, namespace)
}

// exists reports whether a namespace has an object that a right for one name is about.
func (b *builder) exists(r right, namespace, name string) bool {
	switch r {
	case readSecrets:
		return true // it can be created under that name
	case createToken, impersonateServiceAccounts:
		return slices.Contains(b.accounts[namespace], name)
	case patchPods, execPods, attachPods, addContainers:
		return b.has(key{kind: isPod, namespace: namespace, name: name})
	case labelNamespaces:
		return namespace == name
	case patchConfigMaps:
		return namespace == metav1.NamespaceSystem && name == "aws-auth"
	case patchDeployments, patchDaemonSets, patchStatefulSets, patchReplicaSets, patchReplicationControllers, patchCronJobs:
		return true
	}
	return false
}

func (b *builder) readsSecrets(v vertex, k key) {
	found := false
	for _, s := range b.secrets[k.namespace] {
		if k.name == "" || k.name == s.Name.Name {
			found = true
			b.step(SecretRead, v, b.vertex(key{kind: isSecret, namespace: k.namespace, name: s.Name.Name}), -1, "")
		}
	}
	if k.name != "" && !found {
		b.createdAccountSecret(v, k.namespace)
	}
}

// createdAccountSecret gives every service account of a namespace to who creates a secret of
// type service-account-token and reads what the token controller puts into it.
func (b *builder) createdAccountSecret(read vertex, namespace string) {
	b.together(ServiceAccountTokenSecret, b.fact(everyAccount, namespace), b.guardsOf(createSecrets, namespace),
		b.rightVertex(createSecrets, namespace, ""), read)
}

func (b *builder) createsSecrets(v vertex, k key) {
	b.createdAccountSecret(b.rightVertex(readSecrets, k.namespace, ""), k.namespace)
	if k.namespace != metav1.NamespaceSystem {
		return
	}
	for _, group := range b.bootstrapGroups() {
		condition := allOf("whether the API server accepts bootstrap tokens", b.guardsOf(createSecrets, k.namespace))
		b.step(BootstrapToken, v, b.vertex(key{kind: isGroup, name: group}), -1, condition)
	}
}

// eachAccount adds a step to the service accounts that a right is about.
func (b *builder) eachAccount(code Code, v vertex, k key, dependsOn string) {
	for _, name := range b.accounts[k.namespace] {
		if k.name == "" || k.name == name {
			b.step(code, v, b.accountVertex(k.namespace, name), -1, dependsOn)
		}
	}
}

// eachPod adds a step to the pods that a right is about.
func (b *builder) eachPod(code Code, v vertex, k key, dependsOn string, keep func(*inventory.Pod) bool) {
	for _, i := range b.podsIn[k.namespace] {
		if p := b.pods[i]; (k.name == "" || k.name == p.Name.Name) && keep(p) {
			b.step(code, v, b.podVertex(p), -1, dependsOn)
		}
	}
}

func (b *builder) createsPods(v vertex, namespace string, r right) {
	guards := b.guards(inventory.Write{Operation: admissionv1.Create, Resource: "pods", Namespaced: true}, namespace)
	if r != createPods {
		if own := b.guardsOf(r, namespace); own != "" {
			guards = append(guards, own)
		}
	}
	b.step(PodCreate, v, b.vertex(key{kind: isNamespace, name: namespace}), -1, strings.Join(guards, "; "))
}

// changesPods gives the pods whose image a right lets be replaced. Pod Security then looks at the
// whole pod.
func (b *builder) changesPods(v vertex, k key) {
	guards := b.guardsOf(patchPods, k.namespace)
	for _, i := range b.podsIn[k.namespace] {
		if p := b.pods[i]; !p.Mirror && (k.name == "" || k.name == p.Name.Name) {
			b.together(PodUpdate, b.podVertex(p), guards, v, b.admits(p))
		}
	}
}

// admits is the vertex that has to be reached so that Pod Security lets a pod be changed; none
// if it lets it anyway. Ways out of containers are what each level but privileged refuses.
func (b *builder) admits(p *inventory.Pod) vertex {
	if len(p.Escapes) == 0 {
		return none
	}
	return b.privileged(p.Namespace)
}

// changesTemplates gives the pods that are made from templates which a right lets be changed.
func (b *builder) changesTemplates(v vertex, k key, r right) {
	kind := &requestKinds[r]
	found := slices.ContainsFunc(b.podsIn[k.namespace], func(i int32) bool {
		w := b.pods[i].Workload
		return w.Resource == kind.resource && w.Group == kind.group && (k.name == "" || k.name == w.Name)
	})
	created := b.guarded(inventory.Write{Operation: admissionv1.Create, Resource: "pods", Namespaced: true}, k.namespace)
	dependsOn := allOf(b.guardsOf(r, k.namespace), created)
	switch {
	case !found:
		dependsOn = allOf(dependsOnTemplates, dependsOn)
	case r == patchReplicaSets || r == patchReplicationControllers:
		dependsOn = allOf(dependsOnNewPods, dependsOn)
	}
	b.step(PodUpdate, v, b.vertex(key{kind: isNamespace, name: k.namespace}), -1, dependsOn)
}

// addsContainers gives the pods to which a container can be added, and their nodes where the
// container may be privileged.
func (b *builder) addsContainers(v vertex, k key) {
	guards := b.guardsOf(addContainers, k.namespace)
	for _, i := range b.podsIn[k.namespace] {
		p := b.pods[i]
		if p.Mirror || p.Node == "" || (k.name != "" && k.name != p.Name.Name) {
			continue
		}
		b.together(PodExec, b.podVertex(p), guards, v, b.admits(p))
		b.together(PodExec, b.vertex(key{kind: isNode, name: p.Node}), guards, v, b.privileged(k.namespace))
	}
}

func (b *builder) writesMappings(v vertex, namespace string) {
	if b.cluster.EKS && namespace == metav1.NamespaceSystem {
		b.step(NodeIdentityConfig, v, b.vertex(key{kind: isClusterAdmin}), -1, dependsOnAWS)
	}
}

// impersonatesUsers gives users. The API server takes the name of a service account for that
// account, which needs another right.
func (b *builder) impersonatesUsers(v vertex, name string) {
	for _, user := range b.subjectsOf("User") {
		if _, _, isAccount := accountOfUser(user); !isAccount && (name == "" || name == user) {
			b.step(Impersonate, v, b.vertex(key{kind: isUser, name: user}), -1, "")
		}
	}
}
