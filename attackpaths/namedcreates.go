package attackpaths

import (
	"encoding/binary"
	"regexp"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// A rule with names of objects lets none be created by a POST, which has no name. A request that has the name creates
// one too, and the API server then asks for two rights with the name: for patch and create if the request applies an
// object (server-side apply), and of roles and bindings for update and create if it puts one. Other objects are not
// made by a PUT. test/e2e/attackpaths shows this for each kind.

// madeByName are the rights to create objects that are also had by name. For each there are two parts, after the rights of the table: to
// create an object by name, and to apply or put it. Both count for the identity that has them.
var madeByName = [...]right{
	createSecrets, createAccounts, createPods, createDeployments, createDaemonSets, createStatefulSets, createReplicaSets,
	createReplicationControllers, createJobs, createCronJobs, createClaims, createVolumes, createNamespaces, createSigningRequests,
	createMutatingWebhooks, createValidatingWebhooks, createConfigMaps, createClusterRoleBindings, createRoleBindings,
	createClusterRoles, createRoles,
}

// withParts adds the rows of the parts.
func withParts(kinds [rightCount]requestKind) [rightCount]requestKind {
	for i, r := range madeByName {
		k := kinds[r]
		k.unnamed, k.hasName, k.beside = false, true, true // the request is the one that applies or puts the object
		kinds[partOf(i)] = k
		k.beside = false
		if k.verbs = []string{"patch"}; k.group == rbacG {
			k.verbs = write
		}
		kinds[partOf(i)+1] = k
	}
	return kinds
}

// partOf is the part of a right of madeByName that creates; the other part follows.
func partOf(i int) right { return declaredRights + 2*right(i) }

// isPart reports whether a right is a part of one to create an object by its name.
func (r right) isPart() bool { return declaredRights <= r && r < rightCount }

// countsAlone reports whether a right gives something to whoever has it, without other rights of the same identity.
func (r right) countsAlone() bool {
	return r.isCustom() || r < rightCount && requestKinds[r].mode == 0 && !r.isPart() && requestKinds[r].resource != anyAudience
}

// countsTogether reports whether a right counts together with others of the same identity.
func (r right) countsTogether() bool {
	return firstOwn <= r && r < rightCount || !r.isCustom() && table[r].on != 0
}

// isCustom reports whether a right is one to make a request of a custom technique. These follow the table.
func (r right) isCustom() bool { return int(r) >= len(table) }

// whole is the right of which a right is a part, or the right itself.
func (r right) whole() right {
	if r.isPart() {
		return madeByName[(r-declaredRights)/2]
	}
	return r
}

// keys are the parts of a right, or the right itself.
func (h held) keys() []grant {
	if len(h.parts) > 0 {
		return h.parts
	}
	return []grant{h.grant}
}

// usedParts leaves out the parts of rights that no rule limits to names.
func (b *builder) usedParts(all []grant) []grant {
	return slices.DeleteFunc(all, func(g grant) bool { return g.right.isPart() && !b.isNamed(g.right.whole()) })
}

// isNamed reports whether the parts of a right to create objects count: if a rule limits it to some names, or if identities can be
// impersonated to apply objects. Otherwise, who has both parts may create any.
func (b *builder) isNamed(r right) bool {
	if b.named == nil {
		b.named = map[right]bool{}
		for i := range b.roles {
			for j := range b.roles[i].Rules {
				b.noteNamed(&b.roles[i].Rules[j])
			}
		}
	}
	return b.constrains() || b.named[r]
}

// noteNamed notes which objects a rule with names lets be created. The right to give a role any rule is asked for with
// the name that the request has.
func (b *builder) noteNamed(rule *rbacv1.PolicyRule) {
	if len(rule.ResourceNames) == 0 {
		return
	}
	for i, r := range madeByName {
		if len(requestKinds[partOf(i)].namesIn(rule, "create")) > 0 {
			b.named[r] = true
		}
	}
	for escalate, r := range map[right]right{escalateClusterRoles: createClusterRoles, escalateRoles: createRoles} {
		if len(requestKinds[escalate].namesBy(rule)) > 0 {
			b.named[r] = true
		}
	}
}

// byName lists the rights to create objects by name that the identity has, or is given, in two parts.
func (c *combiner) byName(r right) []held {
	i := slices.Index(madeByName[:], r)
	if i < 0 || !c.isNamed(r) {
		return nil
	}
	escalated := r == createClusterRoles || r == createRoles
	var all []held
	for _, h := range c.have(partOf(i)) {
		if h.name == "" && !escalated && !c.who.alone {
			continue // it creates any
		}
		for _, g := range c.have(partOf(i) + 1) {
			if l, ok := h.and(g.limit); ok {
				k := grant{r, l}
				all = append(all, held{grant: k, parts: []grant{h.grant, g.grant}, through: c.throughBoth(k, h.through, g.through)})
			}
		}
	}
	return all
}

// throughBoth is the vertex through which an identity gets both parts of a right.
func (c *combiner) throughBoth(k grant, one, other vertex) vertex {
	if one == none || other == none || one == other {
		return max(one, other)
	}
	one, other = min(one, other), max(one, other)
	both := c.vertex(key{kind: isOwnRight, variant: uint16(k.right), namespace: k.namespace, name: k.name, of: one})
	id := binary.AppendVarint(binary.AppendVarint(binary.AppendVarint([]byte("both "), int64(one)), int64(other)), int64(both))
	if !c.seen[string(id)] {
		c.seen[string(id)] = true
		c.together("", both, "", one, other)
	}
	return both
}

// createByName leads to the rights that do not count for the identity alone.
func (c *combiner) createByName() {
	for _, r := range madeByName {
		if r >= firstOwn && r != createSigningRequests {
			continue
		}
		for _, h := range c.byName(r) {
			c.combine("", c.rightVertex(r, h.namespace, h.name), "", []held{h})
			if r == createSecrets && h.name == "" { // who may apply one of any name applies it again, and reads it
				for _, ns := range c.scopes(h.namespace, "") {
					c.combine(ServiceAccountTokenSecret, c.fact(everyAccount, ns), c.guardsOf(r, ns), []held{h})
				}
			}
		}
	}
}

// dependsOnRequestName is what else decides.
const dependsOnRequestName = "whether no request has the name, and one of the name may be approved or signed"

// tokenName is the name of a secret that is a bootstrap token.
var tokenName = regexp.MustCompile(`^bootstrap-token-[a-z0-9]{6}$`)

// createsNamed gives what the right to create one object gives, in a namespace if its kind has one: the same as one for any object,
// where the name does not matter. If an object has the name, it has to be deleted first.
func (b *builder) createsNamed(v vertex, k key, r right) {
	gone, free := b.madeFree(r, k.namespace, k.name)
	switch {
	case !free:
		return
	case r == createSecrets:
		// The author patches the secret again, and reads it.
		b.together(ServiceAccountTokenSecret, b.fact(everyAccount, k.namespace), b.guardsOf(r, k.namespace), v, gone)
		if gone == none && k.namespace == metav1.NamespaceSystem && tokenName.MatchString(k.name) {
			b.createsBootstrapTokens(v, k.namespace)
		}
		return
	case r == createAccounts:
		if slices.Contains(b.missingAccounts(k.namespace), k.name) {
			b.createsAccount(v, k.namespace, k.name)
		}
		return
	case r == createConfigMaps:
		return // who may patch aws-auth need not create it
	}
	b.together("", b.rightVertex(r, k.namespace, ""), "", v, gone)
}

// deleteOf has the right to delete the objects that a right creates. Who deletes an object and creates one of its name gets what
// a change of the object would not give: the API server asks for bind and escalate when a role or a binding is created, and
// for nothing but delete before. Other kinds are missing where a right to create an object by its name contains the right to
// change it as wanted.
var deleteOf = map[right]right{
	createSecrets: deleteSecrets, createPods: deletePods, createVolumes: deleteVolumes,
	createClusterRoles: deleteClusterRoles, createRoles: deleteRoles,
	createClusterRoleBindings: deleteClusterRoleBindings, createRoleBindings: deleteRoleBindings,
}

// dependsOnUse is what else decides about the deletion of volumes.
const dependsOnUse = "whether no claim has the volume: Kubernetes keeps it until then"

// madeFree is the vertex that has to be reached so that no object has a name; none if none has it. It returns false if an object
// has the name and who creates such objects need not delete it, or cannot.
func (b *builder) madeFree(r right, namespace, name string) (gone vertex, possible bool) {
	if name == "" || b.free(r, namespace, name) {
		return none, true
	}
	if deleteOf[r] == 0 {
		return none, false
	}
	return b.deleted(deleteOf[r], namespace, name), true
}

// deleted is the vertex of an object that is deleted, by a right that some identity has.
func (b *builder) deleted(r right, namespace, name string) vertex {
	k := key{kind: isFact, variant: uint16(r), namespace: namespace + "/" + name, name: deletedObject}
	if v, known := b.index[k]; known {
		return v
	}
	v, dependsOn := b.vertex(k), b.guardsOf(r, namespace)
	if r == deleteVolumes {
		dependsOn = allOf(dependsOnUse, dependsOn)
	}
	for _, of := range [...]string{"", name} {
		b.impliesIf(b.rightVertex(r, namespace, of), v, dependsOn)
	}
	return v
}

// secretNames are the secrets of the whole cluster, and those that its pods name.
func (b *builder) secretNames() map[inventory.Name]bool {
	if b.secretsKnown == nil {
		b.secretsKnown = map[inventory.Name]bool{}
		for _, s := range b.cluster.Inventory.Secrets() {
			b.secretsKnown[s.Name] = true
		}
		for _, p := range b.cluster.Inventory.Pods() {
			for _, name := range slices.Concat(p.Secrets, p.PullSecrets) {
				b.secretsKnown[inventory.Name{Namespace: p.Namespace, Name: name}] = true
			}
		}
	}
	return b.secretsKnown
}

// free reports whether no object has a name, for what the state shows, also where the graph has a part of it. A
// workload that exists is as good: who creates one by name may change it.
func (b *builder) free(r right, namespace, name string) bool {
	switch r {
	case createSecrets:
		return !b.secretNames()[inventory.Name{Namespace: namespace, Name: name}]
	case createAccounts:
		return !slices.Contains(b.accounts[namespace], name)
	case createPods:
		return !b.cluster.Inventory.Has(Pod, namespace, name)
	case createNamespaces:
		_, found := slices.BinarySearch(b.namespaces, name)
		return !found
	case createClaims:
		return !b.cluster.Inventory.Has(claimKind, namespace, name)
	case createVolumes:
		return !b.cluster.Inventory.Has(volumeKind, "", name)
	case createMutatingWebhooks, createValidatingWebhooks:
		return !b.mayChange(requestKinds[r].resource, name)
	case createClusterRoles, createRoles:
		i, ok := b.roleIndex[roleName{namespace, name}]
		return !ok || !b.roleExists(i)
	case createClusterRoleBindings, createRoleBindings:
		kind := "ClusterRoleBinding"
		if r == createRoleBindings {
			kind = "RoleBinding"
		}
		_, exists := b.objects.bindingIndex()[verdict.Object{Kind: kind, Namespace: namespace, Name: name}]
		return !exists
	}
	return true
}
