package attackpaths

import (
	"cmp"
	"maps"
	"slices"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

// openRights are rights that are not followed, by what they are about. Sums of them stay small, however
// many roles and namespaces there are.
type openRights struct {
	entries map[rightKey]*openEntry
}

// rightKey is what the rights of an entry have in common.
type rightKey struct{ group, resource, subresource, why string }

func (k rightKey) compare(o rightKey) int {
	return cmp.Or(cmp.Compare(k.group, o.group), cmp.Compare(k.resource, o.resource),
		cmp.Compare(k.subresource, o.subresource), cmp.Compare(k.why, o.why))
}

// openEntry sums up the rights of one key.
type openEntry struct {
	verbs []string // sorted
	// names and namespaces are the first ones, sorted; those of a right for any name, or in the whole cluster, are left out.
	names, namespaces []string
	anyName, anywhere bool
	// binding is the first that grants one of the rights; -1 if none does.
	binding int32
}

func newOpenRights() *openRights { return &openRights{map[rightKey]*openEntry{}} }

// openRightsOf sums up the rights of the roles among reached vertices.
func (g *Graph) openRightsOf(reached []vertex) *openRights {
	all := newOpenRights()
	for _, v := range reached {
		switch k := &g.keys[v]; k.kind {
		case isSubject:
			for _, e := range g.out[v] {
				if to := &g.keys[e.to]; to.kind == isRole {
					all.addRole(g.openRightsOfRole(to.role), to.namespace, e.arg)
				}
			}
		case isRole:
			if k.variant != anybody && k.variant != restricted { // others come with their subject
				all.addRole(g.openRightsOfRole(k.role), k.namespace, -1)
			}
		case isPod:
			p := g.pods[v-g.firstPod]
			all.addFolders(p, p.NotFollowed(g.world.references))
		}
	}
	return all
}

// addRole adds the rights of a role that is held in a namespace, or in the whole cluster.
func (o *openRights) addRole(rights []openRight, namespace string, binding int32) {
	for i := range rights {
		r := &rights[i]
		if r.clusterScoped && namespace != "" || r.why == whyEverything && namespace == "" {
			continue // the latter is cluster-admin
		}
		e := o.entry(rightKey{r.group, r.resource, r.subresource, r.why})
		e.verbs = addSorted(e.verbs, r.verbs, 0)
		if e.anyName = e.anyName || len(r.names) == 0; !e.anyName {
			e.names = addSorted(e.names, r.names, maxNamed+1)
		}
		if e.anywhere = e.anywhere || namespace == ""; !e.anywhere {
			e.namespaces = addSorted(e.namespaces, []string{namespace}, maxNamed+1)
		}
		e.grantedBy(binding)
	}
}

// addFolders adds the folders of its node that a pod mounts and of which it is not known what they give.
func (o *openRights) addFolders(p *inventory.Pod, folders []string) {
	if len(folders) == 0 {
		return
	}
	e := o.entry(rightKey{resource: HostPath, why: whyFolder})
	e.verbs = addSorted(e.verbs, []string{"mount"}, 0)
	e.names = addSorted(e.names, folders, maxNamed+1)
	e.namespaces = addSorted(e.namespaces, []string{p.Namespace}, maxNamed+1)
}

// merge adds other rights, which may be none.
func (o *openRights) merge(others *openRights) {
	if others == nil {
		return
	}
	for k, from := range others.entries {
		e := o.entry(k)
		e.verbs = addSorted(e.verbs, from.verbs, 0)
		e.names = addSorted(e.names, from.names, maxNamed+1)
		e.namespaces = addSorted(e.namespaces, from.namespaces, maxNamed+1)
		e.anyName, e.anywhere = e.anyName || from.anyName, e.anywhere || from.anywhere
		e.grantedBy(from.binding)
	}
}

func (o *openRights) entry(k rightKey) *openEntry {
	e := o.entries[k]
	if e == nil {
		e = &openEntry{binding: -1}
		o.entries[k] = e
	}
	return e
}

func (e *openEntry) grantedBy(binding int32) {
	if binding >= 0 && (e.binding < 0 || binding < e.binding) {
		e.binding = binding
	}
}

// addSorted adds words to sorted ones, and keeps the first of them; zero keeps all.
func addSorted(all, words []string, keep int) []string {
	for _, w := range words {
		i, found := slices.BinarySearch(all, w)
		if found || keep > 0 && i == keep {
			continue
		}
		all = slices.Insert(all, i, w)
		if keep > 0 && len(all) > keep {
			all = all[:keep]
		}
	}
	return all
}

// list makes the entries of an answer.
func (o *openRights) list(g *Graph) []NotFollowed {
	var all []NotFollowed
	for _, k := range slices.SortedFunc(maps.Keys(o.entries), rightKey.compare) {
		e := o.entries[k]
		n := NotFollowed{Group: k.group, Resource: k.resource, Subresource: k.subresource, Verbs: e.verbs, Why: k.why}
		if slices.Contains(e.verbs, "*") {
			n.Verbs = []string{"*"}
		}
		if !e.anyName {
			n.More = len(e.names) > maxNamed
			n.Names = e.names[:min(maxNamed, len(e.names))]
		}
		if !e.anywhere {
			n.More = n.More || len(e.namespaces) > maxNamed
			n.Namespaces = e.namespaces[:min(maxNamed, len(e.namespaces))]
		}
		if e.binding >= 0 {
			n.GrantedBy = &g.bindings[e.binding].Binding
		}
		all = append(all, n)
	}
	return all
}
