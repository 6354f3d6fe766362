package graph

import "slices"

// set replaces the references of the holder with this key by refs. The first
// reference determines the nodes of the holder: its node, or for a volume its claim.
// The caller holds g.mu.
//
// Readers without a lock rely on the order of the steps: new relations are added
// before old ones are removed, so that a relation that exists before and after never
// disappears in between.
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

	g.firsts.clear()
	old, now := holder.links, g.resolve(refs)
	g.noteExtended(refs)
	relate(holder, now)
	unrelate(holder, old)
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

// unchanged reports whether the holder's links equal refs.
func (g *Graph) unchanged(holder *vertex, refs references) bool {
	if len(holder.links) != len(refs) {
		return false
	}
	for i := range refs {
		r, l := &refs[i], &holder.links[i]
		t := l.other
		if l.place.field() != r.field || t.kind() != r.kind || t.name != r.name || t.namespace.name != r.namespace ||
			g.entries.names[l.place.entry()].name != r.entry {
			return false
		}
	}
	return true
}

// resolve returns the links of references; their targets are not linked back yet.
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

// relate adds the nodes of the holder to its new targets, then to the holder itself.
func relate(holder *vertex, links []link) {
	if len(links) == 0 {
		holder.members.Store(nil)
		return
	}
	first := links[0].other
	for _, l := range links[1:] {
		if holder.kind() == PersistentVolume {
			first.eachNode(func(node *vertex) { l.other.gain(node) })
		} else {
			gain(l.other, first)
		}
	}
	holder.members.Store(first.members.Load())
}

// unrelate reverts relate for the holder's old links.
func unrelate(holder *vertex, links []link) {
	if len(links) == 0 {
		return
	}
	first := links[0].other
	for _, l := range links[1:] {
		if holder.kind() == PersistentVolume {
			first.eachNode(func(node *vertex) { l.other.lose(node) })
		} else {
			lose(l.other, first)
		}
	}
}

// gain counts one more link between the node and an object that a pod names. If the
// node newly reaches a claim, it also reaches the secrets of its volumes.
func gain(target, node *vertex) {
	if target.gain(node) && target.kind() == PersistentVolumeClaim {
		eachVolumeSecret(target, func(secret *vertex) { secret.gain(node) })
	}
}

// lose is the inverse of gain.
func lose(target, node *vertex) {
	if target.lose(node) && target.kind() == PersistentVolumeClaim {
		eachVolumeSecret(target, func(secret *vertex) { secret.lose(node) })
	}
}

// eachVolumeSecret visits the secrets of all volumes bound to the claim, once
// for each link to them.
func eachVolumeSecret(claim *vertex, visit func(secret *vertex)) {
	eachVolume(claim, func(volume *vertex) {
		for _, l := range volume.links[1:] {
			visit(l.other)
		}
	})
}

// eachVolume visits the volumes bound to a claim. Their links are the first of the
// claim's links, so that the cost does not depend on the pods that use it.
func eachVolume(claim *vertex, visit func(volume *vertex)) {
	for _, back := range claim.links {
		if back.place.field() != fieldClaimRef {
			return
		}
		visit(back.other)
	}
}

func volumeCount(claim *vertex) int {
	n := 0
	eachVolume(claim, func(*vertex) { n++ })
	return n
}

// relink replaces the holder's links, and the links back at their targets.
func (g *Graph) relink(holder *vertex, links []link) {
	for i := range holder.links {
		// Read each time, because removing one may move another of the same holder.
		unlinkBack(holder.links[i].other, int(holder.links[i].at))
	}
	g.links += len(links) - len(holder.links)
	holder.links = links
	for i := range links {
		linkBack(links[i].other, link{other: holder, at: uint32(i), place: links[i].place})
	}
}

// linkBack adds a target's link back to its holder.
func linkBack(target *vertex, back link) {
	target.links = append(target.links, link{})
	last := len(target.links) - 1
	if back.place.field() == fieldClaimRef {
		first := volumeCount(target)
		putBack(target, last, target.links[first])
		last = first
	}
	putBack(target, last, back)
}

// unlinkBack removes the target's link at a position and moves the last one there. If
// the removed link was a volume's link, the last volume's link moves there, and the last
// link of all moves to the position of the last volume's link.
func unlinkBack(target *vertex, at int) {
	if target.links[at].place.field() == fieldClaimRef {
		lastVolume := volumeCount(target) - 1
		putBack(target, at, target.links[lastVolume])
		at = lastVolume
	}
	last := len(target.links) - 1
	if at != last {
		putBack(target, at, target.links[last])
	}
	target.links[last] = link{}
	target.links = target.links[:last]
	if cap(target.links) > 64 && 4*last < cap(target.links) {
		target.links = slices.Clone(target.links)
	}
}

// putBack puts a link of the target at a position and updates the position in the
// holder's link.
func putBack(target *vertex, at int, back link) {
	target.links[at] = back
	if back.other != nil {
		back.other.links[back.at].at = uint32(at)
	}
}

func (g *Graph) newVertex(kind Kind, namespaceName, name string) *vertex {
	ns := g.namespaces[namespaceName]
	if ns == nil {
		ns = &namespace{name: namespaceName}
		g.namespaces[namespaceName] = ns
	}
	ns.refs++
	v := &vertex{id: g.vertices.id(kind, namespaceName, name), namespace: ns, name: name}
	if kind == Node {
		v.members.Store(&memberSet{sole: v, live: 1})
		g.addNode(v)
	}
	g.vertices.insert(v)
	g.kinds[kind]++
	return v
}

// dropUnnamed drops a target without links.
func (g *Graph) dropUnnamed(v *vertex) {
	if len(v.links) == 0 && !v.dropped() {
		g.drop(v)
	}
}

func (g *Graph) drop(v *vertex) {
	g.vertices.remove(v)
	if v.kind() == Node {
		g.removeNode(v)
	}
	g.kinds[v.kind()]--
	if v.namespace.refs--; v.namespace.refs == 0 {
		delete(g.namespaces, v.namespace.name)
	}
	v.links, v.count = nil, droppedCount
}
