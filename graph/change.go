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

	g.firsts.forget()
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

// unchanged reports whether the holder's links are just refs.
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

// unrelate takes back what relate gave for the holder's old links.
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

// gain counts one more link between the node and what a pod names. A claim
// that a node reaches anew takes the secrets of its volumes along.
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

// eachVolume visits the volumes bound to a claim. Their links come first among
// the claim's, so that the pods that use it cost nothing here.
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

// relink replaces the holder's links, and their counterparts at the far ends.
func (g *Graph) relink(holder *vertex, links []link) {
	for i := range holder.links {
		// Read anew each time: removing one may move another of the same holder.
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

// unlinkBack removes the target's link at a position. The last one takes its
// place; if it belonged to a volume, the last volume's does, and the last of all
// the place of that.
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

// putBack puts a link of the target at a position and tells the holder at its
// far end.
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
	}
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
	g.kinds[v.kind()]--
	if v.namespace.refs--; v.namespace.refs == 0 {
		delete(g.namespaces, v.namespace.name)
	}
	v.links, v.count = nil, droppedCount
}
