package graph

import "slices"

// set makes refs what the holder with this key names. The first reference is
// the one that the holder's own nodes come from: its node, or for a volume its
// claim. The caller holds g.mu.
//
// The order of the steps is what readers without a lock rely on: what the new
// references relate is related before the old ones are taken away, so that a
// relation that both have never blinks.
func (g *Graph) set(kind Kind, namespace, name string, refs references) {
	g.scratch = refs
	holder := g.vertices.find(kind, namespace, name)
	if holder == nil {
		if len(refs) == 0 {
			return
		}
		holder = g.newVertex(kind, namespace, name)
	} else if g.unchanged(holder, refs) {
		return
	}

	before, old := holder.one.Load(), holder.links
	now := g.resolve(refs)
	g.relate(holder, now)
	g.unrelate(holder, before, old)
	g.relink(holder, now)
	for _, l := range old {
		g.dropUnnamed(l.other)
		g.entries.release(l.place.entry())
	}
	if len(now) == 0 {
		g.drop(holder)
	}
	clear(refs)
}

// unchanged reports whether the holder's links are just refs.
func (g *Graph) unchanged(holder *vertex, refs references) bool {
	if len(holder.links) != len(refs) {
		return false
	}
	for i := range refs {
		r, l := &refs[i], &holder.links[i]
		t := l.other
		if l.place.field() != r.field || t.kind != r.kind || t.name != r.name || t.namespace.name != r.namespace ||
			g.entries.names[l.place.entry()].name != r.entry {
			return false
		}
	}
	return true
}

// resolve makes links of references; their far ends are not linked back yet.
func (g *Graph) resolve(refs references) []link {
	if len(refs) == 0 {
		return nil
	}
	links := make([]link, len(refs))
	for i := range refs {
		r := &refs[i]
		target := g.vertices.find(r.kind, r.namespace, r.name)
		if target == nil {
			target = g.newVertex(r.kind, r.namespace, r.name)
		}
		entry := g.entries.number(r.entry)
		g.entries.retain(entry)
		links[i] = link{other: target, place: place(r.field)<<entryBits | place(entry)}
	}
	return links
}

// relate lets the holder's new targets be reached, then the holder itself.
func (g *Graph) relate(holder *vertex, links []link) {
	if len(links) == 0 {
		holder.one.Store(nil)
		return
	}
	first := links[0].other
	for _, l := range links[1:] {
		if holder.kind == PersistentVolume {
			first.eachNode(func(node *vertex) { l.other.gain(node) })
		} else {
			gain(l.other, first)
		}
	}
	holder.one.Store(first)
}

// unrelate takes back what relate gave for the holder's old links, when first
// was its node or claim.
func (g *Graph) unrelate(holder, first *vertex, links []link) {
	if len(links) == 0 {
		return
	}
	for _, l := range links[1:] {
		if holder.kind == PersistentVolume {
			first.eachNode(func(node *vertex) { l.other.lose(node) })
		} else {
			lose(l.other, first)
		}
	}
}

// gain counts one more link between the node and what a pod names. A claim
// that a node reaches anew takes the secrets of its volumes along.
func gain(target, node *vertex) {
	if target.gain(node) && target.kind == PersistentVolumeClaim {
		eachVolumeSecret(target, func(secret *vertex) { secret.gain(node) })
	}
}

// lose is the inverse of gain.
func lose(target, node *vertex) {
	if target.lose(node) && target.kind == PersistentVolumeClaim {
		eachVolumeSecret(target, func(secret *vertex) { secret.lose(node) })
	}
}

// eachVolumeSecret visits the secrets of all volumes bound to the claim, once
// for each link to them.
func eachVolumeSecret(claim *vertex, visit func(secret *vertex)) {
	for _, back := range claim.links {
		if volume := back.other; volume.kind == PersistentVolume {
			for _, l := range volume.links[1:] {
				visit(l.other)
			}
		}
	}
}

// relink replaces the holder's links, and their counterparts at the far ends.
func (g *Graph) relink(holder *vertex, links []link) {
	for i := range holder.links {
		// Read anew each time: removing one may move another of the same holder.
		unlinkBack(holder.links[i].other, holder.links[i].at)
	}
	g.links += len(links) - len(holder.links)
	holder.links = links
	for i := range links {
		target := links[i].other
		links[i].at = uint32(len(target.links))
		target.links = append(target.links, link{other: holder, at: uint32(i), place: links[i].place})
	}
}

// unlinkBack removes the target's link at a position: its last link takes the
// place, and the holder at the far end of that one is told.
func unlinkBack(target *vertex, at uint32) {
	last := len(target.links) - 1
	if int(at) != last {
		moved := target.links[last]
		target.links[at] = moved
		moved.other.links[moved.at].at = at
	}
	target.links[last] = link{}
	target.links = target.links[:last]
	if cap(target.links) > 64 && 4*last < cap(target.links) {
		target.links = slices.Clone(target.links)
	}
}

func (g *Graph) newVertex(kind Kind, namespaceName, name string) *vertex {
	ns := g.namespaces[namespaceName]
	if ns == nil {
		ns = &namespace{name: namespaceName}
		g.namespaces[namespaceName] = ns
	}
	ns.refs++
	v := &vertex{kind: kind, namespace: ns, name: name, hash: g.vertices.hash(kind, namespaceName, name)}
	g.vertices.insert(v)
	g.kinds[kind]++
	return v
}

// dropUnnamed drops a target that nothing names any more.
func (g *Graph) dropUnnamed(v *vertex) {
	if len(v.links) == 0 && !v.dropped() {
		g.drop(v)
	}
}

func (g *Graph) drop(v *vertex) {
	g.vertices.remove(v)
	g.kinds[v.kind]--
	if v.namespace.refs--; v.namespace.refs == 0 {
		delete(g.namespaces, v.namespace.name)
	}
	v.links, v.count = nil, droppedCount
}
