package attackpaths_test

import (
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	podsecurity "k8s.io/pod-security-admission/api"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// naive is an exhaustive search. It lists every derivation that a cluster allows and applies all
// of them until nothing changes. It shares nothing between identities, roles or rights.
type naive struct {
	c           *attackpaths.Cluster
	facts       map[fact]int
	derivations []derivation
	rights      map[string]fact
	policies    attackpaths.PolicyGuards
	// lost are bindings that give nothing any more; nil for none.
	lost func(rbac.BoundRole) bool

	nodes      []inventory.Node
	pods       []*inventory.Pod
	namespaces map[string]map[string]string
	ending     map[string]bool // namespaces
	accounts   map[inventory.Name]bool
	secrets    map[inventory.Name]inventory.Secret

	roles      []naiveRole
	bindings   []rbac.BoundRole
	users      map[string]bool
	groups     map[string]bool
	identities []naiveIdentity

	impersonations []impersonation
	scopes         []*v1alpha1.NodeScope
	scopedAccounts []inventory.Name
}

// fact is a holding, a credential of a node, a role that is owned, a right, and so on.
type fact struct{ kind, namespace, name string }

const (
	acting     = "as "
	credential = "credential of a node"
	privileged = "privileged pods are possible"
)

// derivation leads from all facts of from together to one fact.
type derivation struct {
	from     []int
	to, cost int
	possible bool
}

// naiveRole is a role that exists.
type naiveRole struct {
	ref        rbac.Ref
	rules      []rbacv1.PolicyRule
	everything bool
	// ending are the namespaces that terminate.
	ending map[string]bool
	// aggregates is true for one that selects others, and missing for one that only bindings name.
	aggregates, missing bool
}

// naiveIdentity is a user with its groups.
type naiveIdentity struct {
	fact   fact
	user   string
	groups []string
	node   bool
	// token is set for one of an account in NodeScopes.
	token *naiveToken
}

// ask is a set of requests. The attacker needs one of them.
type ask struct {
	verbs                    []string
	group, resource, sub, ns string
	name                     string
	// hasName is true for a create by a request that has the object's name.
	hasName bool
	// otherAudience is true for a request of a token for an audience that a rule names.
	otherAudience bool
	// content is true for custom techniques in scopes: it matters which name an object has that is created.
	content bool
	// unlimited ignores rules with names, limited those without. anyName matches rules with any
	// names.
	unlimited, limited, anyName bool
	// notEverything ignores roles that grant everything.
	notEverything bool
}

func newNaive(c *attackpaths.Cluster, scopes ...*v1alpha1.NodeScope) *naive {
	n := &naive{scopes: scopes, c: c, facts: map[fact]int{}, rights: map[string]fact{}, policies: attackpaths.NewPolicyGuards(c)}
	n.universe()
	n.impersonate()
	n.withoutRights()
	n.singleRights()
	n.togetherRights()
	n.otherIdentities()
	n.asNodes()
	n.customTechniques()
	return n
}

func (n *naive) id(f fact) int {
	if _, ok := n.facts[f]; !ok {
		n.facts[f] = len(n.facts)
	}
	return n.facts[f]
}

// step adds a derivation. Cost 1 is a use of a technique.
func (n *naive) step(cost int, possible bool, to fact, from ...fact) {
	d := derivation{to: n.id(to), cost: cost, possible: possible}
	for _, f := range from {
		d.from = append(d.from, n.id(f))
	}
	n.derivations = append(n.derivations, d)
}

const isAccount = "system:serviceaccount:"

func nodeHolding(name string) fact     { return fact{attackpaths.Node, "", name} }
func cred(name string) fact            { return fact{credential, "", name} }
func podHolding(p *inventory.Pod) fact { return fact{attackpaths.Pod, p.Namespace, p.Name.Name} }
func accountOf(name inventory.Name) fact {
	return fact{attackpaths.ServiceAccount, name.Namespace, name.Name}
}

func secretOf(name inventory.Name) fact { return fact{attackpaths.Secret, name.Namespace, name.Name} }

// as is that requests can be made as an identity, also without its credential. They impersonate nobody.
func as(identity fact) fact {
	identity.kind = acting + identity.kind
	return identity
}

func user(name string) fact        { return fact{attackpaths.User, "", name} }
func group(name string) fact       { return fact{attackpaths.Group, "", name} }
func inNamespace(name string) fact { return fact{attackpaths.Namespace, "", name} }

var clusterAdmin = fact{kind: attackpaths.ClusterAdmin}

// owned is a role that the attacker can bind in a scope.
func owned(role rbac.Ref, scope string) fact {
	return fact{"owned role in " + scope, role.Namespace, role.Kind + " " + role.Name}
}

// withGroups is a user together with every group.
func withGroups(user string) fact { return fact{"user with every group", "", user} }

// notNode is that an identity is held that is not a node.
var notNode = fact{kind: "an identity that is not a node"}

// free is that an identity is held that no NodeScope limits. A role that is bound to another counts as far as
// the scopes let its requests pass.
var free = fact{kind: "an identity that no NodeScope limits"}

// everythingRole is what escalate makes of any role.
var everythingRole = rbac.Ref{Kind: "everything"}

func everything(rules []rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.Verbs, "*") && slices.Contains(r.APIGroups, "*") &&
			slices.Contains(r.Resources, "*") && len(r.ResourceNames) == 0
	})
}

// systemNamespaces are in each cluster.
var systemNamespaces = []string{"default", "kube-node-lease", "kube-public", "kube-system"}

func (n *naive) universe() {
	i := n.c.Inventory
	n.pods, n.bindings = i.Pods(), n.c.RBAC.Bindings()
	n.namespaces, n.accounts, n.secrets = map[string]map[string]string{}, map[inventory.Name]bool{}, map[inventory.Name]inventory.Secret{}
	n.ending = map[string]bool{}
	n.users, n.groups = map[string]bool{}, map[string]bool{}
	known := func(ns string) {
		if _, ok := n.namespaces[ns]; !ok {
			n.namespaces[ns] = nil
		}
	}
	for _, ns := range systemNamespaces {
		known(ns)
	}
	for _, ns := range i.Namespaces() {
		n.namespaces[ns.Name], n.ending[ns.Name] = map[string]string{}, ns.Terminating
		maps.Copy(n.namespaces[ns.Name], ns.Labels)
	}
	for _, a := range i.ServiceAccounts() {
		known(a.Namespace)
		n.accounts[a] = true
	}
	for _, s := range i.Secrets() {
		known(s.Namespace)
		n.secrets[s.Name] = s
	}
	n.nodes = i.Nodes()
	for _, p := range n.pods {
		known(p.Namespace)
		if !p.Mirror && p.ServiceAccount != "" {
			n.accounts[inventory.Name{Namespace: p.Namespace, Name: p.ServiceAccount}] = true
		}
		for _, s := range slices.Concat(p.Secrets, p.PullSecrets) {
			name := inventory.Name{Namespace: p.Namespace, Name: s}
			if _, ok := n.secrets[name]; !ok {
				n.secrets[name] = inventory.Secret{Name: name}
			}
		}
		if p.Node != "" && !slices.ContainsFunc(n.nodes, func(o inventory.Node) bool { return o.Name == p.Node }) {
			n.nodes = append(n.nodes, inventory.Node{Name: p.Node})
		}
	}
	for _, role := range n.c.RBAC.Roles() {
		n.roles = append(n.roles, naiveRole{
			ref: role.Role, rules: role.Rules, everything: everything(role.Rules), aggregates: role.Aggregates, ending: n.ending,
		})
	}
	n.unseenRoles()
	for _, b := range n.bindings {
		if b.Binding.Namespace != "" {
			known(b.Binding.Namespace)
		}
		for _, s := range b.Subjects {
			switch s.Kind {
			case "User":
				n.users[s.Name] = true
			case "ServiceAccount":
				if s.Namespace != "" {
					n.users[isAccount+s.Namespace+":"+s.Name] = true
				}
			case "Group":
				n.groups[s.Name] = true
			}
		}
	}
	for name := range n.secrets {
		if id, ok := n.bootstrap(name); ok {
			n.users["system:bootstrap:"+id] = true
		}
	}
	for _, p := range n.pods {
		if p.ControlPlane == "kube-scheduler" {
			n.users["system:kube-scheduler"] = true // its pod names the user
		}
	}
	n.identify()
}

// identityOf is the holding of a user name: a user or a service account.
func identityOf(name string) fact {
	if rest, ok := strings.CutPrefix(name, isAccount); ok {
		if ns, account, ok := strings.Cut(rest, ":"); ok {
			return fact{attackpaths.ServiceAccount, ns, account}
		}
	}
	return user(name)
}

// identify lists all identities that an attacker can hold.
func (n *naive) identify() {
	done := map[fact]bool{}
	addOne := func(i naiveIdentity) {
		if !done[i.fact] {
			done[i.fact] = true
			n.identities = append(n.identities, i)
		}
	}
	add := func(f fact, node bool, name string, groups ...string) {
		addOne(naiveIdentity{fact: f, user: name, groups: groups, node: node})
	}
	ofAccount := func(ns, name string) {
		if a := (inventory.Name{Namespace: ns, Name: name}); n.isScoped(a) {
			n.identifyScoped(a, addOne)
			return
		}
		add(fact{attackpaths.ServiceAccount, ns, name}, false, isAccount+ns+":"+name,
			"system:serviceaccounts", "system:serviceaccounts:"+ns, "system:authenticated")
	}
	for a := range n.accounts {
		ofAccount(a.Namespace, a.Name)
	}
	for name := range n.users {
		if f := identityOf(name); f.kind == attackpaths.ServiceAccount {
			ofAccount(f.namespace, f.name)
		} else {
			add(f, false, name, "system:authenticated")
		}
	}
	for _, name := range n.customIdentities(attackpaths.User) {
		add(user(name), false, name, "system:authenticated")
	}
	add(user("system:kube-scheduler"), false, "system:kube-scheduler", "system:authenticated")
	for name := range n.secrets {
		if id, ok := n.bootstrap(name); ok {
			add(user("system:bootstrap:"+id), false, "system:bootstrap:"+id, "system:authenticated")
		}
	}
	named := slices.Concat(slices.Collect(maps.Keys(n.groups)), n.allNames(), n.customIdentities(attackpaths.Group))
	for _, g := range append(named, "system:bootstrappers") {
		if g != "system:masters" {
			add(group(g), false, "", g, "system:authenticated")
		}
	}
	for _, node := range n.nodes {
		add(cred(node.Name), true, "system:node:"+node.Name, "system:nodes", "system:authenticated")
	}
	groups := []string{"system:authenticated"}
	for g := range n.groups {
		if g != "system:masters" {
			groups = append(groups, g)
		}
	}
	for u := range n.users {
		if !strings.HasPrefix(u, "system:node:") && !n.deniedUser(u) {
			add(withGroups(u), false, u, groups...)
		}
	}
	add(withGroups(""), false, "", groups...)
	for _, i := range n.identities {
		n.step(0, false, as(i.fact), i.fact)
		n.step(0, i.node || i.token != nil, notNode, as(i.fact)) // anonymous requests are not a node's either
		n.step(0, i.token != nil, free, as(i.fact))
	}
}

func (n *naive) bootstrap(name inventory.Name) (id string, ok bool) {
	id, ok = strings.CutPrefix(name.Name, "bootstrap-token-")
	return id, ok && name.Namespace == "kube-system" && n.secrets[name].Type == "bootstrap.kubernetes.io/token"
}

func (n *naive) bootstrapGroups() []fact {
	all := []fact{group("system:bootstrappers")}
	for g := range n.groups {
		if strings.HasPrefix(g, "system:bootstrappers:") {
			all = append(all, group(g))
		}
	}
	return all
}

// level is empty for a namespace whose labels nothing shows.
func (n *naive) level(ns string) podsecurity.Level {
	if n.namespaces[ns] == nil {
		return ""
	}
	allowAll := podsecurity.LevelVersion{Level: podsecurity.LevelPrivileged, Version: podsecurity.LatestVersion()}
	policy, _ := podsecurity.PolicyToEvaluate(n.namespaces[ns], podsecurity.Policy{Enforce: allowAll, Audit: allowAll, Warn: allowAll})
	return policy.Enforce.Level
}

// keepsRoot reports whether pods of a namespace may not, or perhaps not, run as root.
func (n *naive) keepsRoot(ns string) bool {
	level := n.level(ns)
	return level == podsecurity.LevelRestricted || level == ""
}

// withoutRights are the steps that need no right in RBAC.
func (n *naive) withoutRights() {
	for _, node := range n.nodes {
		n.step(0, false, cred(node.Name), nodeHolding(node.Name))
		n.labelledControlPlane(node)
		for _, p := range n.pods {
			n.stealPod(node, p)
		}
		for _, s := range n.c.Relations.Objects(node.Name, graph.Secret) {
			n.step(1, false, fact{attackpaths.Secret, s.Namespace, s.Name}, as(cred(node.Name)))
		}
	}
	for _, p := range n.pods {
		n.pod(p)
	}
	for name, s := range n.secrets {
		of := inventory.Name{Namespace: name.Namespace, Name: s.ServiceAccount}
		if s.Type == "kubernetes.io/service-account-token" && n.accounts[of] {
			n.step(1, false, n.credentialOfAccount(of), secretOf(name))
		}
		if id, ok := n.bootstrap(name); ok {
			for _, to := range append(n.bootstrapGroups(), user("system:bootstrap:"+id)) {
				n.step(1, true, to, secretOf(name))
			}
		}
	}
	n.step(1, false, clusterAdmin, group("system:masters"))
	n.step(1, false, clusterAdmin, as(group("system:masters")))
	for ns := range n.namespaces {
		if level := n.level(ns); level == podsecurity.LevelPrivileged || level == "" {
			n.step(0, level == "", fact{privileged, ns, ""})
		}
	}
}

func (n *naive) stealPod(node inventory.Node, p *inventory.Pod) {
	if p.Ended && (p.Workload == inventory.Workload{}) || n.ending[p.Namespace] {
		return
	}
	if p.Mirror || p.Placement.Pinned() || p.Workload.Resource == "daemonsets" || (p.Workload == inventory.Workload{} && p.Node != "") {
		return
	}
	holds := []fact{nodeHolding(node.Name)}
	if p.Placement.Allows(&node, noderestriction.OwnLabel) {
		n.movePod(node, p, holds...)
	}
	// NodeRestriction holds nodes only: an account that may change one gives it any label.
	every := func(string) bool { return true }
	may := func(sub string) []fact {
		return append(holds, n.right(ask{verbs: changing, resource: "nodes", sub: sub, name: node.Name}))
	}
	if p.Placement.Allows(&node, every) {
		n.movePod(node, p, may("status")...)
	}
	if node.Taints = nil; p.Placement.Allows(&node, every) {
		n.movePod(node, p, may("")...)
	}
}

// movePod leads to what a pod brings to a node.
func (n *naive) movePod(node inventory.Node, p *inventory.Pod, from ...fact) {
	if slices.Contains(p.Audiences, "") {
		n.step(1, true, n.tokenOf(accountOfPod(p), node.Name), from...)
	}
	for _, s := range p.Secrets {
		n.step(1, true, fact{attackpaths.Secret, p.Namespace, s}, from...)
	}
}

// mints reports whether the node of a pod may request a token of its account.
func (n *naive) mints(p *inventory.Pod) bool {
	var audiences []string
	restricted := true
	if n.c.Audiences != nil {
		audiences, restricted = n.c.Audiences(p.Namespace, p.Name.Name)
	}
	unlimited := !n.c.Features.Enabled(kubeversion.ServiceAccountNodeAudienceRestriction)
	tokens := unlimited || slices.Contains(p.Audiences, "") || !restricted || slices.Contains(audiences, "")
	return !p.Mirror && tokens && !n.ending[p.Namespace] &&
		n.c.Relations.HasPath(p.Node, graph.ServiceAccount, p.Namespace, p.ServiceAccount)
}

func (n *naive) pod(p *inventory.Pod) {
	n.id(podHolding(p)) // a start, whether something leads to it or not
	of := n.tokenOf(accountOfPod(p), p.Node)
	ours := slices.Contains(p.Audiences, "")
	if !p.Mirror && len(p.Audiences) > 0 {
		to := []fact{of}
		if p.Node == "" && n.isScoped(accountOfPod(p)) {
			to = n.tokensOf(accountOfPod(p))
		}
		for _, of := range to {
			n.step(1, !ours || p.Node == "", of, podHolding(p))
		}
	}
	for _, s := range p.Secrets {
		n.step(1, p.Node == "", fact{attackpaths.Secret, p.Namespace, s}, podHolding(p))
	}
	if p.Node == "" {
		return
	}
	if !p.Ended {
		n.step(1, false, podHolding(p), nodeHolding(p.Node))
	}
	if !p.Ended {
		n.escapes(p)
	}
	if !p.Mirror && len(p.Audiences) > 0 {
		n.step(1, !ours || p.Ended, of, nodeHolding(p.Node))
	}
	guarded := n.guarded(admissionv1.Create, "", "serviceaccounts", "token", p.Namespace)
	switch {
	case n.mints(p):
		n.step(1, guarded, of, as(cred(p.Node)))
	case !p.Mirror && n.c.Relations.HasPath(p.Node, graph.ServiceAccount, p.Namespace, p.ServiceAccount):
		request := ask{verbs: verbs("request-serviceaccounts-token-audience"), ns: p.Namespace, name: p.ServiceAccount}
		n.step(1, guarded, of, n.rightOfNode(p.Node, request))
		request.otherAudience = true
		n.step(1, true, of, n.rightOfNode(p.Node, request))
	}
	n.controlPlanePod(p)
}
