package attackpaths

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
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
		b.requests = append(b.requests, splitRequests(t, int32(i))...)
		b.findGaps(t)
	}
	for i := range b.requests {
		b.kinds = append(b.kinds, b.requests[i].asKind())
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
			add("the API server does not serve %s", (&CustomRequest{APIGroup: r.APIGroup, Resource: r.Resource}).object())
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
			if matches(h.Name, n.Name) {
				all = append(all, key{kind: isNode, name: n.Name})
			}
		}
	case Namespace:
		for _, ns := range b.namespaces {
			if matches(h.Name, ns) || h.Name == SameNamespace && ns == namespace {
				all = append(all, b.namespaceKey(ns, createPods))
			}
		}
	default:
		for _, ns := range b.namespaces {
			if h.Namespace == "*" || h.Namespace == ns || h.Namespace == SameNamespace && ns == namespace {
				all = append(all, b.matchingIn(ns, h)...)
			}
		}
	}
	return all
}

// matchingIn lists service accounts or secrets of a namespace.
func (b *builder) matchingIn(namespace string, h Holding) []key {
	var all []key
	if h.Kind == ServiceAccount {
		for _, name := range b.accounts[namespace] {
			if matches(h.Name, name) {
				all = append(all, key{kind: isServiceAccount, namespace: namespace, name: name})
			}
		}
		return all
	}
	for _, s := range b.secrets[namespace] {
		if matches(h.Name, s.Name.Name) {
			all = append(all, key{kind: isSecret, namespace: namespace, name: s.Name.Name})
		}
	}
	return all
}

// matches reports whether a name is the one, or begins as one that ends in "*".
func matches(pattern, name string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, prefix)
	}
	return pattern == name
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

// customOf is the request of a custom technique that a right is for; nil if it is one of the table.
func (g *Graph) customOf(r right) *customRequest {
	if !r.isCustom() {
		return nil
	}
	return &g.requests[int(r)-len(table)]
}

// expandCustomRight leads to what the right to make a request of a custom technique gives. Its name is the only
// object that the right is about, if there is one.
func (b *builder) expandCustomRight(v vertex, k key, r *customRequest) {
	switch {
	case k.name != "":
		whether := "whether there is " + r.object() + " " + k.name
		k.name = ""
		b.impliesIf(v, b.vertex(k), whether)
	case !r.ClusterScoped && k.namespace == "":
		for _, ns := range b.namespaces {
			if b.kinds[k.variant].holdsIn(ns) {
				k.namespace = ns
				b.implies(v, b.vertex(k))
			}
		}
	case b.cluster.serves(r.APIGroup, r.Resource):
		b.customSteps(v, r, k.namespace)
	}
}

// customSteps adds what a request in a namespace leads to.
func (b *builder) customSteps(v vertex, r *customRequest, namespace string) {
	guards := ""
	if r.operation != "" {
		guards = b.namedGuards(inventory.Write{
			Operation: r.operation, Group: r.APIGroup, Resource: r.Resource, Subresource: r.Subresource, Namespaced: !r.ClusterScoped,
		}, namespace)
	}
	if r.with >= 0 {
		to := b.customVertex(customWith, r.technique, r.with, r.Namespace == SameNamespace, namespace)
		b.impliesIf(v, to, guards)
		return
	}
	t := &b.custom[r.technique]
	from := []vertex{v}
	for i, with := range t.With {
		from = append(from, b.customVertex(customWith, r.technique, int32(i), with.Namespace == SameNamespace, namespace))
	}
	dependsOn := b.condition(allOf(t.DependsOn, guards))
	for i, h := range t.Gives {
		to := b.customVertex(customGives, r.technique, int32(i), h.Namespace == SameNamespace || h.Name == SameNamespace, namespace)
		b.join(edge{to: to, arg: -1, dependsOn: dependsOn, row: customRow(r.technique)}, slices.Clone(from)...)
	}
}

// customVertex is the vertex of an entry of With or Gives: one for each namespace if it depends
// on that, or else one.
func (b *builder) customVertex(variant uint16, technique, entry int32, related bool, namespace string) vertex {
	if !related {
		namespace = ""
	}
	return b.vertex(key{kind: isCustom, variant: variant, namespace: namespace, name: strconv.Itoa(int(entry)), custom: technique})
}

// becauseOfCustom says which requests a step of a custom technique needs.
func (s *solver) becauseOfCustom(how via) string {
	from := []vertex{how.from}
	if how.join >= 0 {
		from = s.joins[how.join].from
	}
	var first string
	var with []key
	for _, v := range from {
		switch k := s.keys[v]; {
		case k.kind == isRight:
			first = s.customOf(right(k.variant)).text(k.namespace)
		case k.variant == customWith:
			with = append(with, s.keys[s.via[v].from])
		}
	}
	slices.SortFunc(with, func(a, b key) int {
		return int(s.customOf(right(a.variant)).with - s.customOf(right(b.variant)).with)
	})
	text := "may " + first
	for _, k := range with {
		text += " and " + s.customOf(right(k.variant)).text(k.namespace)
	}
	return text
}
