package attackpaths_test

import (
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/rbac"
)

func verbs(list ...string) []string { return list }

var (
	reading  = verbs("get", "list", "watch")
	changing = verbs("update", "patch")
	creating = verbs("create")
	patching = verbs("patch")
	deleting = verbs("delete", deletingAll)
)

const (
	rbacGroup         = "rbac.authorization.k8s.io"
	certificatesGroup = "certificates.k8s.io"
	admissionGroup    = "admissionregistration.k8s.io"
)

func (n *naive) singleRights() {
	n.masters()
	for ns := range n.namespaces {
		n.rightsOnAccounts(ns)
		n.rightsOnPods(ns)
		n.rightsOnContainers(ns)
	}
	for _, node := range n.nodes {
		for _, p := range n.pods {
			if p.Node == node.Name && !p.Ended {
				n.step(1, p.Pending || n.guarded(admissionv1.Connect, "", "nodes", "proxy", ""), podHolding(p),
					n.right(ask{verbs: verbs("get", "create"), resource: "nodes", sub: "proxy", name: node.Name}))
			}
		}
	}
	for u := range n.users {
		if f := identityOf(u); f.kind == attackpaths.User {
			n.step(1, false, as(f), n.right(ask{verbs: verbs("impersonate"), resource: "users", name: u}))
		}
	}
	for _, a := range n.namedAccounts() {
		n.impersonateAccount(a)
	}
	if n.c.Features.Enabled(kubeversion.ConstrainedImpersonation) {
		n.associations()
	}
	n.configuration()
	n.newNamespaces()
}

// namedAccounts are the service accounts of all identities.
func (n *naive) namedAccounts() []inventory.Name {
	all := slices.Clone(n.scopedAccounts)
	for _, i := range n.identities {
		if i.fact.kind == attackpaths.ServiceAccount {
			all = append(all, inventory.Name{Namespace: i.fact.namespace, Name: i.fact.name})
		}
	}
	return all
}

// impersonateAccount leads to an account that need not exist.
func (n *naive) impersonateAccount(a inventory.Name) {
	may := n.right(ask{verbs: verbs("impersonate"), resource: "serviceaccounts", ns: a.Namespace, name: a.Name})
	n.step(1, false, as(n.credentialOfAccount(a)), may)
	n.createAccount(a)
}

// createAccount leads to an account that does not exist.
func (n *naive) createAccount(a inventory.Name) {
	if _, known := n.namespaces[a.Namespace]; !known || n.accounts[a] {
		return
	}
	create := n.createsAccount(a)
	token := n.right(ask{verbs: creating, resource: "serviceaccounts", sub: "token", ns: a.Namespace, name: a.Name})
	guarded := n.guarded(admissionv1.Create, "", "serviceaccounts", "", a.Namespace)
	guarded = guarded || n.guarded(admissionv1.Create, "", "serviceaccounts", "token", a.Namespace)
	if !n.isScoped(a) {
		n.newAccount(a, guarded, create, token)
		return
	}
	n.step(1, guarded, n.credentialOfAccount(a), create, token)
	if n.c.Features.Minor() >= 31 { // tokens are bound to nodes since then
		n.newAccount(a, guarded, create, token)
	}
}

func (n *naive) newAccount(a inventory.Name, possible bool, from ...fact) {
	if n.isScoped(a) {
		for _, token := range n.tokensOf(a) {
			n.step(1, possible, token, from...)
		}
		return
	}
	n.step(1, possible, accountOf(a), from...)
	if n.c.Features.Enabled(kubeversion.ConstrainedImpersonation) {
		for _, node := range n.nodes {
			n.step(1, possible, associated(a, node.Name), from...)
		}
	}
}

// masters follows roles with a rule for everything in the whole cluster.
func (n *naive) masters() {
	for _, i := range n.identities {
		n.static(i.user, i.groups, func(r naiveRole, scope string) {
			if r.everything && scope == "" && (i.token == nil || n.ownsAll(i)) {
				n.step(1, false, clusterAdmin, as(i.fact))
			}
		})
	}
	for _, sender := range n.senders() {
		n.anonymous(func(r naiveRole, scope string) {
			if r.everything && scope == "" {
				n.step(1, true, clusterAdmin, sender)
			}
		})
	}
	for _, r := range n.roles {
		if r.everything && r.ref.Kind != "Role" {
			n.step(0, false, clusterAdmin, n.toFree(owned(r.ref, ""))...)
		}
	}
}

// rightsOnAccounts leads to the accounts and secrets of a namespace.
func (n *naive) rightsOnAccounts(ns string) {
	read := []ask{{resource: "secrets", ns: ns, unlimited: true}}
	for _, name := range n.allNames() {
		if _, known := n.secrets[inventory.Name{Namespace: ns, Name: name}]; !known {
			read = append(read, ask{resource: "secrets", ns: ns, name: name})
		}
	}
	n.secretsByName(ns, n.guarded(admissionv1.Create, "", "secrets", "", ns))
	create := n.right(ask{verbs: creating, resource: "secrets", ns: ns})
	for s := range n.secrets {
		if s.Namespace == ns {
			n.step(1, false, secretOf(s), n.readsSecrets(ns, ask{resource: "secrets", ns: ns, name: s.Name}))
		}
	}
	for a := range n.accounts {
		if a.Namespace != ns {
			continue
		}
		guarded := n.guarded(admissionv1.Create, "", "secrets", "", ns)
		n.step(1, guarded, n.credentialOfAccount(a), create, n.readsSecrets(ns, read...))
		for s := range n.secrets {
			if s.Namespace == ns {
				again := ask{resource: "secrets", ns: ns, name: s.Name}
				n.step(1, guarded, n.credentialOfAccount(a), create, n.readsSecrets(ns, again), n.deleted(again, s.Name))
			}
		}
		n.requestToken(a, n.right(ask{verbs: creating, resource: "serviceaccounts", sub: "token", ns: ns, name: a.Name}))
	}
	if ns == "kube-system" {
		for _, g := range n.bootstrapGroups() {
			n.step(1, true, g, create)
		}
	}
}

// requestToken leads to the tokens of an account: bound to nothing, to a node, or to a pod.
func (n *naive) requestToken(a inventory.Name, may fact) {
	guarded := n.guarded(admissionv1.Create, "", "serviceaccounts", "token", a.Namespace)
	n.step(1, guarded, n.credentialOfAccount(a), may)
	if !n.isScoped(a) {
		return
	}
	n.step(1, guarded, n.tokenOf(a, chosenNode), may, inNamespace(a.Namespace)) // of a pod that is made on a node that need not exist
	for _, node := range n.nodes {
		ofPod := func(p *inventory.Pod) bool { return accountOfPod(p) == a && p.Node == node.Name }
		if n.c.Features.Minor() >= 31 || slices.ContainsFunc(n.pods, ofPod) {
			n.step(1, guarded, n.tokenOf(a, node.Name), may)
		}
	}
}

// rightsOnPods leads to the pods of a namespace, or the right to create some.
func (n *naive) rightsOnPods(ns string) {
	for _, w := range []struct {
		group, resources string
	}{
		{"", "pods"},
		{"", "replicationcontrollers"},
		{"apps", "deployments"},
		{"apps", "daemonsets"},
		{"apps", "statefulsets"},
		{"apps", "replicasets"},
		{"batch", "jobs"},
		{"batch", "cronjobs"},
	} {
		if n.ending[ns] {
			break
		}
		made, guarded := n.newPods(ns, inventory.Write{Operation: admissionv1.Create, Group: w.group, Resource: w.resources})
		n.step(1, guarded, made, n.creates(ask{verbs: creating, group: w.group, resource: w.resources, ns: ns}))
		if w.resources == "pods" || w.resources == "jobs" {
			continue
		}
		made, guarded = n.newPods(ns, inventory.Write{Operation: admissionv1.Update, Group: w.group, Resource: w.resources})
		n.step(1, true, made, n.right(ask{verbs: changing, group: w.group, resource: w.resources, ns: ns, anyName: true}))
		if !slices.Contains([]string{"deployments", "daemonsets", "statefulsets"}, w.resources) {
			continue
		}
		for _, p := range n.pods {
			if p.Namespace == ns && p.Workload.Group == w.group && p.Workload.Resource == w.resources {
				n.step(1, guarded, made,
					n.right(ask{verbs: changing, group: w.group, resource: w.resources, ns: ns, name: p.Workload.Name}))
			}
		}
	}
}

// newPods is the fact that pods can be made by a kind of write.
func (n *naive) newPods(ns string, by inventory.Write) (made fact, guarded bool) {
	made = fact{"pods by " + string(by.Operation) + " " + by.Resource, ns, ""}
	if !slices.ContainsFunc(n.c.Inventory.Admission(), func(a inventory.Admission) bool { return a.Policy != nil }) {
		made = fact{"pods by any write", ns, ""}
	}
	if _, known := n.facts[made]; !known {
		n.usePods(ns, by, made)
	}
	full := n.full(ns, "", "pods") || by.Operation == admissionv1.Create && n.full(ns, by.Group, by.Resource)
	return made, full || n.asksWebhook(admissionv1.Create, "", "pods", "", ns) || n.policies.Pods(by, ns, "any", "") ||
		n.asksWebhook(by.Operation, by.Group, by.Resource, "", ns)
}

// usePods leads to what pods give that can be made by a kind of write.
func (n *naive) usePods(ns string, by inventory.Write, made fact) {
	n.step(0, false, inNamespace(ns), made)
	for a := range n.accounts {
		if a.Namespace == ns {
			n.newAccount(a, n.policies.Pods(by, ns, "account", a.Name), made)
		}
	}
	for _, a := range n.namedAccounts() {
		if _, known := n.namespaces[ns]; known && a.Namespace == ns && !n.accounts[a] {
			guarded := n.guarded(admissionv1.Create, "", "serviceaccounts", "", ns) || n.policies.Pods(by, ns, "account", a.Name)
			n.newAccount(a, guarded, made, n.createsAccount(a))
		}
	}
	for s := range n.secrets {
		if s.Namespace == ns {
			n.step(1, n.policies.Pods(by, ns, "secret", s.Name), secretOf(s), made)
		}
	}
	for _, node := range n.nodes {
		n.step(1, n.policies.Pods(by, ns, "host", ""), nodeHolding(node.Name), made, fact{privileged, ns, ""})
		n.existingClaims(ns, node, made, n.policies.Pods(by, ns, "claim", ""))
		n.freeVolumes(ns, node, made, n.policies.Pods(by, ns, "claim", ""), n.policies.Pods(by, ns, "ephemeral", ""))
		n.rightsOnVolumes(ns, node, made, n.policies.Pods(by, ns, "claim", ""), n.policies.Pods(by, ns, "ephemeral", ""))
	}
}

// rightsOnContainers leads to the pods of a namespace.
func (n *naive) rightsOnContainers(ns string) {
	connecting := creating
	if v135, err := kubeversion.Parse("1.35"); err != nil || n.c.Features.Minor() < v135 {
		connecting = verbs("create", "get")
	}
	for _, p := range n.pods {
		if p.Namespace != ns || p.Ended { // no processes start
			continue
		}
		on := func(verbs []string, sub string) fact {
			return n.right(ask{verbs: verbs, resource: "pods", sub: sub, ns: ns, name: p.Name.Name})
		}
		// Pod Security looks at the whole pod when its image or its containers change.
		var admitted []fact
		if len(p.Escapes) > 0 || p.HostPath {
			admitted = append(admitted, fact{privileged, ns, ""})
		}
		if !p.Mirror {
			n.step(1, n.guarded(admissionv1.Update, "", "pods", "", ns), podHolding(p), append(admitted, on(changing, ""))...)
		}
		if p.Node == "" {
			continue
		}
		n.step(1, p.Pending || n.guarded(admissionv1.Connect, "", "pods", "exec", ns), podHolding(p), on(connecting, "exec"))
		n.step(1, true, podHolding(p), on(connecting, "attach"))
		if !p.Mirror {
			asked := p.Pending || n.asksWebhook(admissionv1.Update, "", "pods", "ephemeralcontainers", ns)
			n.step(1, asked || n.policies.Container(p, false), podHolding(p), append(admitted, on(changing, "ephemeralcontainers"))...)
			n.step(1, asked || n.policies.Container(p, true), nodeHolding(p.Node),
				on(changing, "ephemeralcontainers"), fact{privileged, ns, ""})
		}
	}
	for sub, verbs := range map[string][]string{"": changing, "status": changing, "finalize": {"update"}} { // each keeps labels
		n.step(1, n.guarded(admissionv1.Update, "", "namespaces", sub, ns), fact{privileged, ns, ""},
			n.right(ask{verbs: verbs, resource: "namespaces", sub: sub, ns: ns, name: ns}))
	}
}

// rightsOnVolumes leads to a node from pods that can be made.
func (n *naive) rightsOnVolumes(ns string, node inventory.Node, made fact, claim, ephemeral bool) {
	volumes := n.guarded(admissionv1.Create, "", "persistentvolumes", "", "") ||
		n.guarded(admissionv1.Create, "", "persistentvolumeclaims", "", ns) || n.keepsRoot(ns)
	// The claim is made by the attacker, or by the controller of ephemeral volumes.
	n.step(1, volumes || claim, nodeHolding(node.Name), made, n.creates(ask{verbs: creating, resource: "persistentvolumes"}),
		n.creates(ask{verbs: creating, resource: "persistentvolumeclaims", ns: ns}))
	n.step(1, volumes || ephemeral, nodeHolding(node.Name), made, n.creates(ask{verbs: creating, resource: "persistentvolumes"}))
}

// configuration leads to cluster-admin through what configures the API server.
func (n *naive) configuration() {
	write := func(group, resource string) []ask {
		return []ask{
			{verbs: creating, group: group, resource: resource},
			{verbs: changing, group: group, resource: resource, anyName: true},
		}
	}
	n.configureWebhooks()
	if n.c.Features.Minor() >= 32 {
		n.step(1, true, clusterAdmin, n.right(write(admissionGroup, "mutatingadmissionpolicies")...),
			n.right(write(admissionGroup, "mutatingadmissionpolicybindings")...))
	}
	n.step(1, true, clusterAdmin, n.right(write("apiregistration.k8s.io", "apiservices")...))
	n.step(1, true, clusterAdmin, n.right(write("iamauthenticator.k8s.aws", "iamidentitymappings")...))
	if n.c.EKS {
		n.step(1, true, clusterAdmin, n.right(
			ask{verbs: creating, resource: "configmaps", ns: "kube-system"},
			ask{verbs: changing, resource: "configmaps", ns: "kube-system", name: "aws-auth"},
		))
	}
}

// allNames are the names in all rules.
func (n *naive) allNames() []string {
	var all []string
	for _, r := range n.roles {
		for _, rule := range r.rules {
			all = append(all, rule.ResourceNames...)
		}
	}
	all = append(all, n.namesInScopes()...)
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(name string) bool { return name == "" })
}

func (n *naive) togetherRights() {
	n.bindRoles()
	n.escalateRoles()
	n.impersonateGroups()
	n.certificates()
	n.impersonateTokens()
	n.passOn()
}

// credentialOfUser is a certificate of a user.
func (n *naive) credentialOfUser(name string) fact {
	f := identityOf(name)
	if f.kind == attackpaths.ServiceAccount {
		return n.credentialOfAccount(inventory.Name{Namespace: f.namespace, Name: f.name})
	}
	return f
}

func onRoles(verb []string, role rbac.Ref, scope string) []ask {
	resource := "clusterroles"
	if role.Kind == "Role" {
		resource = "roles"
	}
	return []ask{{verbs: verb, group: rbacGroup, resource: resource, ns: scope, name: role.Name}}
}

func (n *naive) bindRoles() {
	n.eachOwned(func(r naiveRole, scope string) {
		if r.ref == everythingRole {
			return
		}
		resource := "clusterrolebindings"
		if scope != "" {
			resource = "rolebindings"
		}
		bind := onRoles(verbs("bind"), r.ref, scope)
		bindNew := slices.Clone(bind)
		// With the right to bind any cluster role, the attacker takes one with every right.
		bindNew[0].limited = r.ref.Kind == "ClusterRole" && !r.everything
		create := []ask{{verbs: creating, group: rbacGroup, resource: resource, ns: scope}}
		n.step(1, n.newBindingGuarded(r.ref, scope), owned(r.ref, scope), n.together(create, bindNew))
		for _, name := range append(n.allNames(), anyOtherName) {
			if n.isFree(create[0], name) {
				n.step(1, n.newBindingGuarded(r.ref, scope), owned(r.ref, scope), n.together(append(byName(create[0], name), bindNew)...))
				continue
			}
			n.step(1, n.newBindingGuarded(r.ref, scope), owned(r.ref, scope), n.deleted(create[0], name),
				n.without(isBinding(scope, name), append(byName(create[0], name), bindNew)...))
		}
		for _, b := range n.bindings {
			if of, ok := n.roleOf(b); ok && of.ref == r.ref && b.Binding.Namespace == scope {
				change := []ask{{verbs: changing, group: rbacGroup, resource: resource, ns: scope, name: b.Binding.Name}}
				n.step(1, n.changedBindingGuarded(b), owned(r.ref, scope), n.together(change, bind))
			}
		}
	})
}

// isBinding tells one binding from others.
func isBinding(ns, name string) func(rbac.BoundRole) bool {
	return func(b rbac.BoundRole) bool { return b.Binding == bindingRef(ns, name) }
}

// ofRole tells the bindings of a role from others.
func (n *naive) ofRole(role rbac.Ref) func(rbac.BoundRole) bool {
	return func(b rbac.BoundRole) bool {
		of, ok := n.roleOf(b)
		return ok && of.ref == role
	}
}

func (n *naive) newBindingGuarded(role rbac.Ref, ns string) bool {
	w := inventory.Write{Operation: admissionv1.Create, Group: rbacGroup, Resource: bindingsIn(ns)}
	return n.full(ns, w.Group, w.Resource) || n.asksWebhook(w.Operation, w.Group, w.Resource, "", ns) || n.policies.NewBinding(w, ns, role)
}

func (n *naive) changedBindingGuarded(b rbac.BoundRole) bool {
	ns := b.Binding.Namespace
	w := inventory.Write{Operation: admissionv1.Update, Group: rbacGroup, Resource: bindingsIn(ns)}
	return n.asksWebhook(w.Operation, w.Group, w.Resource, "", ns) || n.policies.ChangedBinding(w, b)
}

func (n *naive) changedRoleGuarded(r naiveRole) bool {
	w := inventory.Write{Operation: admissionv1.Update, Group: rbacGroup, Resource: strings.ToLower(r.ref.Kind) + "s"}
	return n.asksWebhook(w.Operation, w.Group, w.Resource, "", r.ref.Namespace) ||
		n.policies.ChangedRole(w, rbac.RoleRules{Role: r.ref, Rules: r.rules})
}

// heldRole is that an identity holds a role in a scope.
func heldRole(role rbac.Ref, scope string) fact {
	return fact{"held role in " + scope, role.Namespace, role.Kind + " " + role.Name}
}

func (n *naive) impersonateGroups() {
	impersonate := verbs("impersonate")
	anyIdentity := []ask{{verbs: impersonate, resource: "users", name: anyOtherName}}
	for _, name := range n.allNames() {
		if identityOf(name).kind == attackpaths.User {
			anyIdentity = append(anyIdentity, ask{verbs: impersonate, resource: "users", name: name})
		}
	}
	for _, ns := range n.sortedNamespaces() {
		if !n.enforces() {
			anyIdentity = append(anyIdentity, ask{verbs: impersonate, resource: "serviceaccounts", ns: ns, anyName: true})
			continue
		}
		for _, name := range append(n.allNames(), anyOtherName) {
			if !n.deniedWithoutNode(inventory.Name{Namespace: ns, Name: name}) {
				anyIdentity = append(anyIdentity, ask{verbs: impersonate, resource: "serviceaccounts", ns: ns, name: name})
			}
		}
	}
	for _, g := range n.allNames() {
		n.step(1, false, as(group(g)), n.together([]ask{{verbs: impersonate, resource: "groups", name: g, limited: true}}, anyIdentity))
	}
	for _, g := range append(slices.Collect(maps.Keys(n.groups)), "system:masters") {
		n.step(1, false, as(group(g)), n.together([]ask{{verbs: impersonate, resource: "groups", name: g}}, anyIdentity))
	}
	everyGroup := []ask{{verbs: impersonate, resource: "groups", unlimited: true, name: anyOtherName}}
	n.step(1, false, as(withGroups("")), n.together(everyGroup, anyIdentity))
	for u := range n.users {
		f := identityOf(u)
		user := ask{verbs: impersonate, resource: "users", name: u}
		if f.kind == attackpaths.ServiceAccount {
			user = ask{verbs: impersonate, resource: "serviceaccounts", ns: f.namespace, name: f.name}
		}
		if !strings.HasPrefix(u, "system:node:") && !n.deniedUser(u) {
			n.step(1, false, as(withGroups(u)), n.together(everyGroup, []ask{user}))
		}
	}
	for _, node := range n.nodes {
		n.step(1, false, as(cred(node.Name)), n.together([]ask{{verbs: impersonate, resource: "groups", name: "system:nodes"}},
			[]ask{{verbs: impersonate, resource: "users", name: "system:node:" + node.Name}}))
	}
}

func (n *naive) sortedNamespaces() []string {
	var all []string
	for ns := range n.namespaces {
		all = append(all, ns)
	}
	slices.Sort(all)
	return all
}

var requestsCanBeMade = fact{kind: "requests for client certificates can be made"}

// anyOtherName is a name that no rule has.
const anyOtherName = "any other name"

func (n *naive) certificates() {
	requests := func(verbs []string, sub, name string) ask {
		return ask{verbs: verbs, group: certificatesGroup, resource: "certificatesigningrequests", sub: sub, name: name}
	}
	byRBAC := n.creates(requests(creating, "", ""))
	canBeMade := requestsCanBeMade
	n.step(0, false, canBeMade, byRBAC)
	for _, node := range n.nodes {
		n.step(0, false, canBeMade, as(cred(node.Name)))
	}
	made := n.guarded(admissionv1.Create, certificatesGroup, "certificatesigningrequests", "", "")
	approval := n.guarded(admissionv1.Update, certificatesGroup, "certificatesigningrequests", "approval", "")
	client, kubelet := "kubernetes.io/kube-apiserver-client", "kubernetes.io/kube-apiserver-client-kubelet"
	for _, name := range append(n.allNames(), anyOtherName) {
		for _, way := range []struct {
			verb     string
			write    []string
			sub      string
			possible bool
		}{{"approve", changing, "approval", made || approval}, {"sign", changing, "status", true}} {
			signing := func(signer string) fact {
				return n.together([]ask{requests(way.write, way.sub, name)}, []ask{
					{verbs: verbs(way.verb), group: certificatesGroup, resource: "signers", name: signer},
					{verbs: verbs(way.verb), group: certificatesGroup, resource: "signers", name: "kubernetes.io/*"},
				})
			}
			for u := range n.users {
				n.step(1, way.possible, n.credentialOfUser(u), signing(client), canBeMade)
			}
			for a := range n.accounts {
				n.step(1, way.possible, n.credentialOfAccount(a), signing(client), canBeMade)
			}
			for _, i := range n.identities {
				if i.fact == withGroups(i.user) {
					n.step(1, way.possible, i.fact, signing(client), canBeMade)
				}
			}
			for g := range n.groups {
				if g != "system:masters" {
					n.step(1, way.possible, group(g), signing(client), canBeMade)
				}
			}
			for _, node := range n.nodes {
				n.step(1, way.possible, cred(node.Name), signing(kubelet), byRBAC)
				n.step(1, way.possible, cred(node.Name), signing(client), canBeMade)
			}
		}
		read := n.readsRequest(name)
		for _, node := range n.nodes {
			n.step(0, false, read, as(cred(node.Name)))
			auto := []ask{requests(creating, "nodeclient", "")}
			n.step(1, made, cred(node.Name), read, n.together(auto, []ask{requests(creating, "", "")}))
			possible := made || name != anyOtherName
			n.step(1, possible, cred(node.Name), read, n.together(append(byName(requests(creating, "", ""), name), auto)...))
		}
	}
}
