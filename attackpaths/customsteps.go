package attackpaths

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Variants of vertices of custom techniques.
const (
	// customWith is an entry of With that is fulfilled: its custom is the place of the technique,
	// and its name the place of the entry.
	customWith uint16 = iota
	// customGives is everything that an entry of Gives stands for.
	customGives
)

// collectCustom reads the custom techniques, and finds what the cluster lacks of what they name.
func (b *builder) collectCustom() {
	b.custom = slices.Clone(b.cluster.Custom)
	for i := range b.custom {
		t := &b.custom[i]
		b.kinds = append(b.kinds, customKinds(t, int32(i))...)
		b.findGaps(t)
	}
}

func (b *builder) findGaps(t *CustomTechnique) {
	add := func(format string, args ...any) {
		if gap := (Gap{t.Code, fmt.Sprintf(format, args...)}); !slices.Contains(b.gaps, gap) {
			b.gaps = append(b.gaps, gap)
		}
	}
	for _, r := range slices.Concat(t.AllowedBy, t.With) {
		if !b.cluster.serves(r.APIGroup, r.Resource) {
			add("the API server does not serve %s", objectText(r.APIGroup, r.Resource, ""))
		}
		if r.Namespace != "" && r.Namespace != SameNamespace && !slices.Contains(b.namespaces, r.Namespace) {
			add("the state has no %s", Holding{Kind: Namespace, Name: r.Namespace})
		}
	}
	for _, h := range t.Gives {
		related := h.Namespace == SameNamespace || h.Name == SameNamespace
		if !related && h.Name != "*" && len(b.matching(h, "")) == 0 {
			add("the state has no %s", h)
		}
	}
}

// matching lists the holdings of the cluster that an entry of Gives stands for. The namespace is
// that in which the right holds.
func (b *builder) matching(h Holding, namespace string) []key {
	is := func(pattern, name string) bool {
		prefix, some := strings.CutSuffix(pattern, "*")
		return pattern == name || some && strings.HasPrefix(name, prefix) || pattern == SameNamespace && name == namespace
	}
	var all []key
	switch h.Kind {
	case ClusterAdmin:
		all = append(all, key{kind: isClusterAdmin})
	case User:
		all = append(all, key{kind: isUser, name: h.Name})
	case Group:
		all = append(all, key{kind: isGroup, name: h.Name})
	case Node:
		for _, n := range b.nodes {
			if is(h.Name, n.Name) {
				all = append(all, key{kind: isNode, name: n.Name})
			}
		}
	case Namespace:
		for _, ns := range b.namespaces {
			if is(h.Name, ns) {
				all = append(all, b.namespaceKey(ns, createPods))
			}
		}
	default:
		for _, ns := range b.namespaces {
			for _, name := range b.accounts[ns] {
				if h.Kind == ServiceAccount && is(h.Namespace, ns) && is(h.Name, name) {
					all = append(all, key{kind: isServiceAccount, namespace: ns, name: name})
				}
			}
			for _, s := range b.secrets[ns] {
				if h.Kind == Secret && is(h.Namespace, ns) && is(h.Name, s.Name.Name) {
					all = append(all, key{kind: isSecret, namespace: ns, name: s.Name.Name})
				}
			}
		}
	}
	return all
}

// expandCustom adds what an entry of a custom technique gives.
func (b *builder) expandCustom(v vertex, k key) {
	if k.variant != customGives {
		return
	}
	i, _ := strconv.Atoi(k.name)
	for _, to := range b.matching(b.custom[k.custom].Gives[i], k.namespace) {
		if to.kind == isServiceAccount {
			b.implies(v, b.startVertex(to.namespace, to.name))
		} else {
			b.implies(v, b.vertex(to))
		}
	}
}

// customSteps adds what a request in a namespace leads to.
func (b *builder) customSteps(v vertex, kind *requestKind, namespace string) {
	guards := ""
	if w := kind.write(); w.Operation != "" {
		guards = b.namedGuards(w, namespace)
	}
	t := &b.custom[kind.technique]
	with := func(i int) vertex {
		return b.customVertex(customWith, kind.technique, i, t.With[i].Namespace == SameNamespace, namespace)
	}
	if kind.with >= 0 {
		b.impliesIf(v, with(int(kind.with)), guards)
		return
	}
	from := []vertex{v}
	for i := range t.With {
		from = append(from, with(i))
	}
	dependsOn := b.condition(allOf(t.DependsOn, guards))
	for i, h := range t.Gives {
		to := b.customVertex(customGives, kind.technique, i, h.Namespace == SameNamespace || h.Name == SameNamespace, namespace)
		b.join(edge{to: to, arg: -1, dependsOn: dependsOn, row: customRow(kind.technique)}, slices.Clone(from)...)
	}
}

// customVertex is the vertex of an entry of With or Gives: one for each namespace if it depends
// on that, or else one.
func (b *builder) customVertex(variant uint16, technique int32, entry int, related bool, namespace string) vertex {
	if !related {
		namespace = ""
	}
	return b.vertex(key{kind: isCustom, variant: variant, namespace: namespace, name: strconv.Itoa(entry), custom: technique})
}

// becauseOfCustom says which requests a step of a custom technique needs.
func (s *solver) becauseOfCustom(how via) string {
	from := []vertex{how.from}
	if how.join >= 0 {
		from = s.joins[how.join].from
	}
	text, with := "", []key{}
	for _, v := range from {
		switch k := s.keys[v]; {
		case k.kind == isRight:
			text = "may " + s.kinds[k.variant].text(k.namespace)
		case k.variant == customWith:
			with = append(with, s.keys[s.via[v].from])
		}
	}
	slices.SortFunc(with, func(a, b key) int { return cmp.Compare(s.kinds[a.variant].with, s.kinds[b.variant].with) })
	for _, k := range with {
		text += " and " + s.kinds[k.variant].text(k.namespace)
	}
	return text
}
