package attackpaths

import (
	"slices"
	"sync"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/nodescope"
	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

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
