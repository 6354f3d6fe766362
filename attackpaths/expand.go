package attackpaths

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// Groups of users. Source: https://kubernetes.io/docs/reference/access-authn-authz/rbac/
const (
	authenticated      = "system:authenticated"
	unauthenticated    = "system:unauthenticated"
	anonymous          = "system:anonymous"
	masters            = "system:masters"
	allServiceAccounts = "system:serviceaccounts"
	bootstrapUsers     = "system:bootstrap:"
	bootstrappers      = "system:bootstrappers"
)

// What else decides.
const (
	dependsOnAnonymous = "whether the API server answers anonymous requests"
	dependsOnTokenAuth = "whether the API server accepts bootstrap tokens, and whether this one has not expired"
	dependsOnAudience  = "whether the API server accepts tokens for the audience"
	dependsOnKept      = "whether the kubelet still has the token of a pod that has ended"
)

// expandNode gives everything that is on the disk and in the memory of a node.
func (b *builder) expandNode(v vertex, k key) {
	b.implies(v, b.nodeUserVertex(k.name))
	for _, i := range b.podsOn[k.name] {
		p := b.pods[i]
		if mayRun(p) {
			b.step(PodOnNode, v, b.podVertex(i), i, "")
		}
		b.mounted(PodTokenOnNode, v, p, i)
	}
	b.controlPlane(v, k.name)
}

// mounted adds steps to the accounts whose tokens a pod has.
func (b *builder) mounted(code Code, from vertex, p *inventory.Pod, i int32) {
	if !hasToken(p) {
		return
	}
	dependsOn := dependsOnAudience
	if p.Audiences[0] == "" {
		dependsOn = ""
	}
	dependsOn = allOf(bound(p), dependsOn)
	if p.Ended && code == PodTokenOnNode {
		dependsOn = allOf(dependsOnKept, dependsOn)
	}
	t := b.templateOf(p)
	if t.scoped != nil {
		node := b.fact(everyNodeUser, "")
		if p.Node != "" {
			node = b.nodeUserVertex(p.Node)
		}
		b.step(code, from, b.tokenVertex(p.Namespace, p.ServiceAccount, node, 0), i, dependsOn)
		return
	}
	b.step(code, from, t.account, i, dependsOn)
	if code == PodToken && p.Node != "" && b.associates() {
		b.step(code, from, b.tokenVertex(p.Namespace, p.ServiceAccount, b.nodeUserVertex(p.Node), 0), i, dependsOn)
	}
}

// bound is what else decides about the processes of a pod: they start on a node.
func bound(p *inventory.Pod) string {
	if p.Node == "" {
		return dependsOnPlacement
	}
	return ""
}

// expandNodeUser gives what the Node authorizer and NodeRestriction allow a node's credential,
// and what RBAC adds.
func (b *builder) expandNodeUser(v vertex, k key) {
	b.actsAs(v, k)
	node := strings.TrimPrefix(k.name, nodeidentity.UserPrefix)
	for _, i := range b.podsOn[node] {
		if p := b.pods[i]; b.hasTokens(p) && b.mints(p) {
			b.step(TokenOfPodOnNode, v, b.tokenOfPod(p, node), i, b.guardsOf(createToken, p.Namespace))
		}
	}
	for _, o := range b.objects.secretsOn(node) {
		b.step(SecretOnNode, v, b.vertex(key{kind: isSecret, namespace: o.Namespace, name: o.Name}), -1, "")
	}
	// The Node authorizer lets nodes make requests for certificates and read them;
	// NodeRestriction looks only at requests to the kubelets' signers.
	b.implies(v, b.fact(clientRequests, ""))
	b.implies(v, b.rightVertex(readSigningRequests, "", ""))
	b.holdsFreeIdentity(v)
	b.impliesIf(v, b.fact(holdsIdentity, ""), dependsOnAnonymous)
	b.inGroups(v, k, b.subjects(k.name, restricted, nodeidentity.Group, authenticated))
}

// hasTokens reports whether the API server gives the node of a pod tokens of the pod's account.
func (b *builder) hasTokens(p *inventory.Pod) bool {
	return !p.Mirror && p.ServiceAccount != "" && !b.terminating[p.Namespace]
}

// mints reports whether the node of a pod may request a token of the pod's account that the
// API server accepts.
func (b *builder) mints(p *inventory.Pod) bool {
	return slices.Contains(p.Audiences, "") || b.mintsUnnamed(p)
}

// mintsUnnamed reports whether it may also if the pod names no token: before Kubernetes 1.33, and where something else lets
// nodes ask for the API server's audience.
func (b *builder) mintsUnnamed(p *inventory.Pod) bool {
	if !b.cluster.Features.Enabled(kubeversion.ServiceAccountNodeAudienceRestriction) {
		return true
	}
	if b.cluster.Audiences == nil {
		return false
	}
	audiences, restricted := b.cluster.Audiences(p.Namespace, p.Name.Name)
	return !restricted || slices.Contains(audiences, "")
}

func (b *builder) expandServiceAccount(v vertex, k key) {
	if k.variant == scopedHolding {
		return
	}
	if k.variant == scopedStart {
		b.expandScopedStart(v, k)
		return
	}
	b.actsAs(v, k)
	if a := b.scopeOf(k.namespace, k.name); a != nil {
		b.holdsAccount(v, a)
	} else if k.variant != impersonated && b.associates() {
		b.mayBeOnNodes(v, k)
	}
	b.holds(v)
	b.inGroups(v, k, b.subjectsOfIdentity(k))
}

// accountOfUser is the service account for which the API server takes a user name.
func accountOfUser(user string) (namespace, name string, ok bool) {
	namespace, name, ok = nodeidentity.ServiceAccount(user)
	return namespace, name, ok && !strings.Contains(name, ":")
}

// expandUser gives what a user or a group may do.
func (b *builder) expandUser(v vertex, k key) {
	b.actsAs(v, k)
	user, groups := k.name, []string{authenticated}
	switch {
	case k.kind == isGroup:
		user, groups = "", []string{k.name, authenticated}
	case k.variant == given:
		groups = append(groups, b.given[k.name]...)
	}
	if slices.Contains(groups, masters) {
		b.step(Masters, v, b.vertex(key{kind: isClusterAdmin}), -1, "")
	}
	switch {
	case k.kind == isGroup && k.name == masters:
	case nodeidentity.Of(user, groups).IsNode:
		b.implies(v, b.vertex(key{kind: isNodeUser, name: user}))
	default:
		b.holds(v)
		b.inGroups(v, k, b.subjects(user, anybody, groups...))
	}
}

// inGroups gives an identity the rights of its subjects, and the rights of anonymous requests.
func (b *builder) inGroups(v vertex, k key, subjects []vertex) {
	for _, s := range subjects {
		if k.variant == impersonated {
			s = b.impersonatedSubject(s)
		}
		b.implies(v, s)
	}
	b.anonymously(v)
	b.addIdentity(v, k, subjects)
}

// anonymously gives the rights of requests without an identity.
func (b *builder) anonymously(v vertex) {
	for _, s := range b.subjects(anonymous, anybody, unauthenticated) {
		b.impliesIf(v, s, dependsOnAnonymous)
	}
}

// expandNamespace gives what pods in a namespace can be given.
func (b *builder) expandNamespace(v vertex, k key) {
	if k.variant != 0 {
		b.implies(v, b.vertex(key{kind: isNamespace, name: k.name}))
	} else if b.splits(k.name) {
		return
	}
	guards := func(use podUse, name string) string { return b.useGuards(k, use, name) }
	for _, name := range b.accounts[k.name] {
		if b.scopeOf(k.name, name) == nil { // the token of a pod has its node
			b.step(PodCreate, v, b.accountVertex(k.name, name), -1, guards(usesAccount, name))
		}
		if b.nodeMatters(k.name, name) {
			b.step(PodCreate, v, b.anyToken(k.name, name), -1, guards(usesAccount, name))
		}
	}
	for _, name := range b.missingAccounts(k.name) { // of who creates the account too
		guards := allOf(b.guardsOf(createAccounts, k.name), guards(usesAccount, name))
		for _, of := range [...]string{"", name} {
			b.together(PodCreate, b.anyToken(k.name, name), guards, v, b.rightVertex(createAccounts, k.name, of))
		}
	}
	for _, s := range b.secrets[k.name] {
		name := s.Name.Name
		b.step(PodCreate, v, b.vertex(key{kind: isSecret, namespace: k.name, name: name}), -1, guards(usesSecret, name))
	}
	b.privileged(PodCreate, b.fact(everyNode, ""), k.name, guards(takesHost, ""), v)
	b.mountsVolumes(v, k)
}

// bootstrapUser is the user of the bootstrap token in a secret.
func bootstrapUser(s *inventory.Secret) (string, bool) {
	id, ok := strings.CutPrefix(s.Name.Name, "bootstrap-token-")
	return bootstrapUsers + id, ok && s.Namespace == metav1.NamespaceSystem && s.Type == corev1.SecretTypeBootstrapToken
}

// expandSecret gives the identity whose token is in a secret.
func (b *builder) expandSecret(v vertex, k key) {
	list := b.secrets[k.namespace]
	byName := func(s inventory.Secret, name string) int { return strings.Compare(s.Name.Name, name) }
	i, found := slices.BinarySearchFunc(list, k.name, byName)
	if !found {
		return
	}
	switch s := list[i]; s.Type {
	case corev1.SecretTypeServiceAccountToken:
		if s.ServiceAccount != "" && slices.Contains(b.accounts[k.namespace], s.ServiceAccount) {
			b.step(ServiceAccountTokenSecret, v, b.accountVertex(k.namespace, s.ServiceAccount), -1, "")
		}
	case corev1.SecretTypeBootstrapToken:
		if user, ok := bootstrapUser(&s); ok {
			b.step(BootstrapToken, v, b.vertex(key{kind: isUser, name: user}), -1, dependsOnTokenAuth)
			for _, group := range b.bootstrapGroups() {
				b.step(BootstrapToken, v, b.vertex(key{kind: isGroup, name: group}), -1, dependsOnTokenAuth)
			}
		}
	}
}

// bootstrapGroups are the groups that bindings name and bootstrap tokens can have.
func (b *builder) bootstrapGroups() []string {
	return append([]string{bootstrappers}, slices.DeleteFunc(b.subjectsOf("Group"), func(group string) bool {
		return !strings.HasPrefix(group, bootstrappers+":")
	})...)
}

// expandPod gives what the processes of a pod hold.
func (b *builder) expandPod(v vertex) {
	i := int32(v - b.firstPod)
	p := b.pods[i]
	b.mounted(PodToken, v, p, i)
	t := b.templateOf(p)
	if !hasToken(p) || t.scoped != nil && t.scoped.nothing {
		b.anonymously(v)
	}
	for _, secret := range t.secrets {
		b.step(PodSecret, v, secret, i, bound(p))
	}
	if mayRun(p) {
		b.escapes(v, i)
	}
}

func (b *builder) podVertex(i int32) vertex { return b.firstPod + vertex(i) }

// accountVertex is a service account with a credential that need not have a node; none if NodeScopes
// refuse everything to it.
func (b *builder) accountVertex(namespace, name string) vertex {
	if a := b.scopeOf(namespace, name); a != nil && !a.unbound {
		return none
	}
	return b.vertex(key{kind: isServiceAccount, namespace: namespace, name: name})
}

// createsAccount gives a service account that only bindings name to who may create it and a token of it. Where
// NodeScopes matter, a token without a node is something else; tokens are bound to nodes since 1.31. Source: KEP-4193.
func (b *builder) createsAccount(v vertex, namespace, name string) {
	guards := allOf(b.guardsOf(createAccounts, namespace), b.guardsOf(createToken, namespace))
	scoped := b.scopeOf(namespace, name) != nil
	for _, of := range [...]string{"", name} {
		token := b.rightVertex(createToken, namespace, of)
		if scoped {
			b.together(TokenRequest, b.accountVertex(namespace, name), guards, v, token)
		}
		if !scoped || b.cluster.Features.Minor() >= 31 {
			b.together(TokenRequest, b.anyToken(namespace, name), guards, v, token)
		}
	}
}

// missingAccounts are those that bindings name and that do not exist.
func (b *builder) missingAccounts(namespace string) []string {
	return slices.DeleteFunc(slices.Clone(b.accountNames[namespace]), func(name string) bool {
		return slices.Contains(b.accounts[namespace], name)
	})
}
