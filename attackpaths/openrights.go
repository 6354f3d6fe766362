package attackpaths

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// openRights are rights that are not followed, by what they are about. Sums of them stay small, however
// many roles and namespaces there are.
type openRights struct {
	entries map[rightKey]openEntry
}

func newOpenRights() *openRights { return &openRights{map[rightKey]openEntry{}} }

// rightKey is what the rights of an entry have in common.
type rightKey struct{ group, resource, subresource, why string }

func (k rightKey) compare(o rightKey) int {
	return cmp.Or(cmp.Compare(k.group, o.group), cmp.Compare(k.resource, o.resource),
		cmp.Compare(k.subresource, o.subresource), cmp.Compare(k.why, o.why))
}

// openEntry sums up the rights of one key.
type openEntry struct {
	// names and namespaces are the first ones. The empty namespace is the whole cluster; names do not matter if anyName is set.
	verbs, names, namespaces []string
	anyName                  bool
	// binding is the first that grants one of the rights; -1 if none does.
	binding int32
}

// openRight is a right of a role that is not followed. The role's binding, and where it is held, are not known yet.
type openRight struct {
	rightKey
	openEntry
	clusterScoped bool
}

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
			if folders := p.NotFollowed(g.world.references); len(folders) > 0 {
				all.add(rightKey{resource: HostPath, why: whyFolder}, openEntry{
					verbs: []string{"mount"}, names: folders, namespaces: []string{p.Namespace}, binding: -1,
				})
			}
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
		o.add(r.rightKey, openEntry{r.verbs, r.names, []string{namespace}, len(r.names) == 0, binding})
	}
}

// merge adds other rights, which may be none.
func (o *openRights) merge(others *openRights) {
	if others == nil {
		return
	}
	for k, e := range others.entries {
		o.add(k, e)
	}
}

func (o *openRights) add(k rightKey, more openEntry) {
	e, known := o.entries[k]
	if !known {
		e.binding = -1
	}
	e.verbs = addSorted(e.verbs, more.verbs, math.MaxInt)
	e.names = addSorted(e.names, more.names, maxNamed+1)
	e.namespaces = addSorted(e.namespaces, more.namespaces, maxNamed+1)
	e.anyName = e.anyName || more.anyName
	if more.binding >= 0 && (e.binding < 0 || more.binding < e.binding) {
		e.binding = more.binding
	}
	o.entries[k] = e
}

// addSorted adds words to sorted ones, and keeps the first of them.
func addSorted(all, words []string, keep int) []string {
	for _, w := range words {
		if i, found := slices.BinarySearch(all, w); !found {
			all = slices.Insert(all, i, w)
			all = all[:min(keep, len(all))]
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
		if e.namespaces[0] != "" {
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
