// Package attackpaths computes what the holder of one credential can come to own in a cluster,
// and by which steps.
//
// Make a [Graph] from a [Cluster] with [New], and ask [Graph.From] for what a node, a service
// account, a user or a pod reaches:
//
//   - A [Holding] is something that an attacker can own: a node, the processes of a pod, the
//     identity of a service account, user or group, the content of a secret, the right to create
//     pods in a namespace, or the whole cluster.
//   - A technique leads from holdings to a holding. [Techniques] is the table of them; each is
//     described in docs/reference/techniques. [TableOfRights] says of every right which of them use it.
//   - The result is everything that techniques reach from the start, each with its shortest
//     path.
//
// A step is certain if Kubernetes' own authorization and admission allow each of its requests
// and Kubernetes' own components then have the effect. It is possible if something decides that
// the cluster's objects do not show, such as a webhook; the step names it. A holding is certain
// if a path of certain steps leads to it.
//
// [Cluster].NodeScopes limits the tokens of service accounts (package nodescope). A scope counts in the
// mode Enforce; that kube-apiserver asks about it is taken for granted, as [Graph.Notes] says. What is
// held of an account is a token of one node then, or a credential without a node. Quarantines do not
// count: what they cut off had been reached before.
//
// [ScopeWarnings] names the rules of a NodeScope that let pass a right which techniques use.
//
// [Compare] says what nodes and service accounts reach in one state of a cluster and not in another.
//
// [WhatToChange] finds bindings, rules, mounts and Pod Security labels to change so that nodes no
// longer reach cluster-admin.
//
// What is reached through cluster-admin alone is not listed: cluster-admin owns everything.
package attackpaths

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodescope"
	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Cluster is what paths are computed from. It must not change while [New] runs.
type Cluster struct {
	// Inventory is what runs and exists.
	Inventory *inventory.Inventory
	// Relations are those between nodes and objects, for what a node's credential reads.
	Relations *graph.Graph
	// RBAC is the roles and bindings.
	RBAC *rbac.Policy
	// Features are the features of the cluster's Kubernetes version.
	Features kubeversion.Features
	// Audiences lists the audiences of tokens that a node may request for a pod, and
	// whether they are restricted: noderestriction's Audiences. It is asked about pods with
	// volumes of CSI drivers; nil stands for no such volumes. It is not asked where
	// Features restrict no audiences.
	Audiences func(namespace, pod string) (audiences []string, restricted bool)
	// Users are identities from which paths start, beside those in bindings.
	Users []Identity
	// EKS is true for clusters that read the ConfigMap kube-system/aws-auth.
	EKS bool
	// Serves reports whether the API server serves a resource; nil if that is unknown.
	Serves func(group, resource string) bool
	// Custom are techniques that the user adds.
	Custom []CustomTechnique
	// NodeScopes are the scopes that kube-apiserver is taken to ask about; nil for none. Those in the
	// mode Observe do not count.
	NodeScopes *nodescope.Policy
	// Policies evaluates admission policies; nil leaves them undecided.
	Policies PolicyEvaluator
}

// Identity is a user with its groups; system:authenticated need not be named.
type Identity struct {
	Name   string
	Groups []string
}

func (c *Cluster) check() error {
	if c.Inventory == nil || c.Relations == nil || c.RBAC == nil {
		return errors.New("attack paths: the cluster has no inventory, relations or RBAC policy")
	}
	return checkCustom(c.Custom)
}

// serves is false only for what is known not to be served.
func (c *Cluster) serves(group, resource string) bool {
	return c.Serves == nil || c.Serves(group, resource)
}

// systemNamespaces are in each cluster: API servers make them again, and nobody may delete them.
var systemNamespaces = []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease}

// collect reads the cluster into tables.
func (b *builder) collect() {
	if b.objects == nil {
		b.objects = b.cluster.objects()
	}
	o := b.objects
	b.collectClaims()
	known := map[string]bool{}
	for _, ns := range slices.Concat(o.known, systemNamespaces) {
		known[ns] = true
	}
	for _, n := range o.namespaces {
		known[n.Name], b.labels[n.Name] = true, n.Labels
		if n.Terminating {
			b.terminating[n.Name] = true
		}
	}
	b.nodes, b.pods, b.admission = slices.Clone(o.nodes), o.pods, o.admission
	accounts, secrets, templates := map[inventory.Name]bool{}, map[inventory.Name]bool{}, map[*inventory.Template]bool{}
	for _, a := range o.accounts {
		accounts[a] = true
	}
	for i, p := range b.pods {
		known[p.Namespace] = true
		b.podsIn[p.Namespace] = append(b.podsIn[p.Namespace], int32(i))
		if p.Node != "" {
			b.podsOn[p.Node] = append(b.podsOn[p.Node], int32(i))
		}
		if templates[p.Template] {
			continue
		}
		templates[p.Template] = true
		if p.ServiceAccount != "" && !p.Mirror {
			accounts[inventory.Name{Namespace: p.Namespace, Name: p.ServiceAccount}] = true
		}
		for _, name := range slices.Concat(p.Secrets, p.PullSecrets) {
			secrets[inventory.Name{Namespace: p.Namespace, Name: name}] = true
		}
	}
	for a := range accounts {
		known[a.Namespace] = true
		b.accounts[a.Namespace] = append(b.accounts[a.Namespace], a.Name)
	}
	for _, names := range b.accounts {
		slices.Sort(names)
	}
	b.collectSecrets(known, secrets)
	b.collectNodes()
	b.roles, b.existing, b.bindings = slices.Clip(o.roles), o.existing, o.bindings
	b.roleIndex, b.roles = o.roleIndex(), append(b.roles, everyRule)
	b.collectAccountNames()
	for _, bound := range b.bindings {
		if bound.Binding.Namespace != "" {
			known[bound.Binding.Namespace] = true
		}
	}
	b.namespaces = slices.Sorted(maps.Keys(known))
}

// collectAccountNames also takes the accounts that bindings name: to impersonate one, it need not
// exist.
func (b *builder) collectAccountNames() {
	b.accountNames = maps.Clone(b.accounts)
	for _, user := range b.subjectsOf("User") {
		if namespace, name, ok := accountOfUser(user); ok {
			names := append(slices.Clone(b.accountNames[namespace]), name)
			slices.Sort(names)
			b.accountNames[namespace] = slices.Compact(names)
		}
	}
}

// collectSecrets also takes the secrets that pods name and that could not be listed.
func (b *builder) collectSecrets(known map[string]bool, named map[inventory.Name]bool) {
	for _, s := range b.objects.secrets {
		delete(named, s.Name)
		known[s.Namespace] = true
		b.secrets[s.Namespace] = append(b.secrets[s.Namespace], s)
	}
	for n := range named {
		b.secrets[n.Namespace] = append(b.secrets[n.Namespace], inventory.Secret{Name: n})
	}
	for _, list := range b.secrets {
		slices.SortFunc(list, func(a, b inventory.Secret) int { return strings.Compare(a.Name.Name, b.Name.Name) })
	}
}

// collectClaims takes the claims behind which there is something of a node.
func (b *builder) collectClaims() {
	b.references, b.claimsIn = b.cluster.Inventory.References(), map[string][]inventory.Name{}
	claimed := b.references.Claimed
	b.references.Free = slices.DeleteFunc(b.references.Free, func(v inventory.Volume) bool {
		return len(v.WaysOut()) == 0 || b.objects.removed[verdict.Object{Kind: volumeKind, Name: v.Name}]
	})
	gives := map[*inventory.Volume]bool{} // by the lists that claims share
	for _, volumes := range claimed {
		if _, known := gives[&volumes[0]]; !known {
			gives[&volumes[0]] = slices.ContainsFunc(volumes, func(v inventory.Volume) bool { return len(v.WaysOut()) > 0 })
		}
	}
	for claim, volumes := range claimed {
		if b.objects.removed[verdict.Object{Kind: claimKind, Namespace: claim.Namespace, Name: claim.Name}] {
			delete(claimed, claim)
		} else if gives[&volumes[0]] {
			b.claimsIn[claim.Namespace] = append(b.claimsIn[claim.Namespace], claim)
		}
	}
	for _, claims := range b.claimsIn {
		slices.SortFunc(claims, func(a, b inventory.Name) int { return strings.Compare(a.Name, b.Name) })
	}
}

// collectNodes also takes the nodes that pods are bound to and that could not be listed.
func (b *builder) collectNodes() {
	have := map[string]bool{}
	for _, n := range b.nodes {
		have[n.Name] = true
	}
	for name := range b.podsOn {
		if !have[name] {
			b.nodes = append(b.nodes, inventory.Node{Name: name})
		}
	}
	slices.SortFunc(b.nodes, func(a, b inventory.Node) int { return strings.Compare(a.Name, b.Name) })
}

// objects are what a graph is made of: a cluster's objects, all or without some.
// They are shared between graphs and must not be changed.
type objects struct {
	nodes      []inventory.Node
	namespaces []inventory.Namespace
	pods       []*inventory.Pod
	accounts   []inventory.Name
	secrets    []inventory.Secret
	admission  []inventory.Admission
	roles      []rbac.RoleRules
	bindings   []rbac.BoundRole
	// existing is how many roles there are. The others are named by bindings, and grant nothing.
	existing int
	// roleIndex and bindingIndex find roles and bindings of the cluster.
	roleIndex    func() map[roleName]int32
	bindingIndex func() map[verdict.Object]int32
	// secretsOn lists the secrets that a node's credential reads.
	secretsOn func(node string) []verdict.Object
	// known are namespaces that objects which are left out are in.
	known []string
	// removed are claims, volumes and secrets that were removed.
	removed map[verdict.Object]bool
	// alike are the nodes that have pods of one workload and placement.
	alike func() map[workloadPods][]string
	// rights is the graph that says what rules give, and claimed has the volumes of claims. They are set for remedies only.
	rights  *Graph
	claimed map[inventory.Name][]inventory.Volume
}

// objects are all of a cluster.
func (c *Cluster) objects() *objects {
	o := &objects{
		nodes: c.Inventory.Nodes(), namespaces: c.Inventory.Namespaces(), pods: c.Inventory.Pods(),
		accounts: c.Inventory.ServiceAccounts(), secrets: c.Inventory.Secrets(), admission: c.admission(),
		bindings:  c.RBAC.Bindings(),
		secretsOn: func(node string) []verdict.Object { return c.Relations.Objects(node, graph.Secret) },
	}
	o.alike = sync.OnceValue(func() map[workloadPods][]string { return nodesOfWorkloads(o.pods) })
	o.roles, o.existing = withNamedRoles(c.RBAC.Roles(), o.bindings)
	o.roleIndex = indexOf(o.roles, func(r *rbac.RoleRules) roleName { return roleName{r.Role.Namespace, r.Role.Name} })
	o.bindingIndex = indexOf(o.bindings, func(b *rbac.BoundRole) verdict.Object { return verdict.Object(b.Binding) })
	return o
}

// indexOf finds the places of objects, once they are asked for.
func indexOf[K comparable, T any](all []T, keyOf func(*T) K) func() map[K]int32 {
	return sync.OnceValue(func() map[K]int32 {
		index := map[K]int32{}
		for i := range all {
			index[keyOf(&all[i])] = int32(i)
		}
		return index
	})
}

// withNamedRoles adds the default roles that an API server has even if the objects lack them: those
// that bindings name, and those that whoever may bind takes. The roles after the first ones are those
// that bindings name and that do not exist.
func withNamedRoles(roles []rbac.RoleRules, bindings []rbac.BoundRole) (all []rbac.RoleRules, existing int) {
	known := map[rbac.Ref]bool{}
	for _, r := range roles {
		known[r.Role] = true
	}
	all = slices.Clone(roles)
	var missing []rbac.RoleRules
	add := func(role rbac.Ref) {
		if known[role] {
			return
		}
		known[role] = true
		if rules, ok := rbac.DefaultRules(role); ok {
			all = append(all, rbac.RoleRules{Role: role, Rules: rules, Default: true})
		} else {
			missing = append(missing, rbac.RoleRules{Role: role})
		}
	}
	for _, name := range [...]string{clusterAdmin, "admin", "edit"} {
		add(rbac.Ref{Kind: "ClusterRole", Name: name})
	}
	for _, b := range bindings {
		if b.Role.Kind == "ClusterRole" || b.Role.Kind == "Role" && b.Role.Namespace != "" {
			add(b.Role)
		}
	}
	return append(all, missing...), len(all)
}

// admission are the webhooks and policies that may refuse a step. The webhook of node-authorizer is none of them:
// it refuses by NodeScopes, which limit the tokens in the graph, and by Quarantines, which do not count.
func (c *Cluster) admission() []inventory.Admission {
	return slices.DeleteFunc(c.Inventory.Admission(), func(a inventory.Admission) bool {
		return a.Kind == "MutatingWebhookConfiguration" && a.Webhook == nodescope.Webhook
	})
}
