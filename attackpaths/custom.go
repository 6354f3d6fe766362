package attackpaths

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// SameNamespace stands for the namespace in which a right of [CustomTechnique].AllowedBy holds.
const SameNamespace = "{namespace}"

// MaxCustomTechniques is how many custom techniques a cluster may have, and how many entries each
// of their lists.
const MaxCustomTechniques = 100

// CustomTechnique is a technique that the user adds, for the rights that an operator's
// controllers have and use for whoever writes their resources.
type CustomTechnique struct {
	// Technique has a code that no other technique has.
	Technique
	// AllowedBy are requests of which any is enough.
	AllowedBy []CustomRequest
	// With are requests that are needed besides, each of them. Another identity of the attacker
	// may make them.
	With []CustomRequest
	// Gives is what the attacker then owns. The namespace of a service account or secret may be
	// SameNamespace, or "*" for every namespace; the name of a namespace may be SameNamespace.
	// Names of nodes, service accounts, secrets and namespaces may end in "*", for all that
	// begin so. What the cluster does not have is not given; see Graph.Gaps.
	Gives []Holding
	// DependsOn is what else decides, which the state does not show. Without it, and without
	// admission that is asked, the steps are certain.
	DependsOn string
	// Remedy says how to take the technique away.
	Remedy string
}

// CustomRequest is a kind of request, of which any is enough.
type CustomRequest struct {
	// Verbs has at least one verb.
	Verbs                           []string
	APIGroup, Resource, Subresource string
	// ClusterScoped is true for resources without a namespace.
	ClusterScoped bool
	// Namespace is empty for any namespace. In CustomTechnique.With it may be SameNamespace.
	Namespace string
	// Name is the object's; empty for any object. A right that is limited to the name of
	// an object counts as possible then: the state does not show whether there is one.
	Name string
}

// Gap is something that a custom technique names and that the cluster does not have, so that the
// technique does not lead there.
type Gap struct {
	Technique Code
	// Lacks says in one line what the cluster does not have.
	Lacks string
}

// checkCustom checks what the graph relies on.
func checkCustom(all []CustomTechnique) error {
	if len(all) > MaxCustomTechniques {
		return fmt.Errorf("attack paths: %d custom techniques, want at most %d", len(all), MaxCustomTechniques)
	}
	codes := map[Code]bool{"": true}
	for _, t := range techniques {
		codes[t.Code] = true
	}
	for i := range all {
		t := &all[i]
		if codes[t.Code] {
			return fmt.Errorf("attack paths: custom technique %q: want a code that no other technique has", t.Code)
		}
		codes[t.Code] = true
		if err := t.check(); err != nil {
			return fmt.Errorf("attack paths: custom technique %s: %w", t.Code, err)
		}
	}
	return nil
}

func (t *CustomTechnique) check() error {
	if len(t.AllowedBy) == 0 || len(t.Gives) == 0 {
		return errors.New("want at least one request and one holding")
	}
	if max(len(t.AllowedBy), len(t.With), len(t.Gives)) > MaxCustomTechniques {
		return fmt.Errorf("a list has more than %d entries", MaxCustomTechniques)
	}
	related := slices.ContainsFunc(t.With, func(r CustomRequest) bool { return r.Namespace == SameNamespace })
	for _, h := range t.Gives {
		related = related || h.Namespace == SameNamespace || h.Name == SameNamespace
		if err := checkGiven(h); err != nil {
			return err
		}
	}
	for _, r := range slices.Concat(t.AllowedBy, t.With) {
		if len(r.Verbs) == 0 || r.Resource == "" {
			return errors.New("a request has no verb or no resource")
		}
	}
	for _, r := range t.AllowedBy {
		if r.Namespace == SameNamespace || related && r.ClusterScoped {
			return fmt.Errorf("%s is the namespace of a right that has none", SameNamespace)
		}
	}
	return nil
}

func checkGiven(h Holding) error {
	switch h.Kind {
	case ClusterAdmin:
	case Node, Group, Namespace, ServiceAccount, Secret, User:
		if h.Name == "" {
			return fmt.Errorf("a holding of kind %s has no name", h.Kind)
		}
		_, _, isAccount := accountOfUser(h.Name)
		if h.Kind == User && (isAccount || strings.HasPrefix(h.Name, nodeidentity.UserPrefix)) {
			return fmt.Errorf("user %s: want a holding of kind Node or ServiceAccount", h.Name)
		}
	default:
		return fmt.Errorf("holdings of kind %q cannot be given", h.Kind)
	}
	return nil
}

// isCustomRow reports whether a row is a custom technique.
func isCustomRow(r row) bool { return int(r) > len(techniques) }

// customRow is the row of the custom technique at a place.
func customRow(place int32) row { return row(len(techniques) + 1 + int(place)) }

// codeOf is the code of a row.
func (g *Graph) codeOf(r row) Code {
	if isCustomRow(r) {
		return g.custom[int(r)-len(techniques)-1].Code
	}
	return codeOf(r)
}

// Gaps lists what custom techniques name and the cluster does not have, in the order of the
// techniques.
func (g *Graph) Gaps() []Gap { return slices.Clone(g.gaps) }

// customKinds are the requests of a technique as rows of the table of rights: one row for each operation, because a webhook for
// updates does not hinder who may create.
func customKinds(t *CustomTechnique, technique int32) []requestKind {
	var all []requestKind
	for i, r := range slices.Concat(t.AllowedBy, t.With) {
		first := len(all)
		for _, verb := range r.Verbs {
			k := requestKind{
				verbs: []string{verb}, group: r.APIGroup, resource: r.Resource, subresource: r.Subresource, name: r.Name,
				namespaced: !r.ClusterScoped, custom: true, technique: technique, with: int32(max(i-len(t.AllowedBy), -1)),
			}
			if r.Namespace != SameNamespace {
				k.namespace = r.Namespace
			}
			k.refused = k.refusedToNodes()
			same := slices.IndexFunc(all[first:], func(o requestKind) bool {
				return o.operation() == k.operation() && o.impersonates() == k.impersonates()
			})
			if same < 0 {
				all = append(all, k)
			} else {
				all[first+same].verbs = append(all[first+same].verbs, verb)
			}
		}
	}
	return all
}

// String says in one line what may be done: "create or update applications.argoproj.io in
// namespace argocd".
func (r CustomRequest) String() string {
	text := strings.Join(r.Verbs, " or ") + " " + objectText(r.APIGroup, r.Resource, r.Subresource)
	if r.Name != "" {
		text += " " + r.Name
	}
	switch {
	case r.ClusterScoped:
		return text
	case r.Namespace == "":
		return text + " in any namespace"
	case r.Namespace == SameNamespace:
		return text + " in the same namespace"
	}
	return text + scopeText(r.Namespace)
}

// text says what may be done in a scope: "create applications.argoproj.io in namespace argocd".
func (k *requestKind) text(namespace string) string {
	return CustomRequest{k.verbs, k.group, k.resource, k.subresource, !k.namespaced, namespace, k.name}.String()
}

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
		b.join(edge{To: to, Arg: -1, DependsOn: dependsOn, Row: customRow(kind.technique)}, slices.Clone(from)...)
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
	text, with := "", []key{}
	for _, v := range s.edges.Parts(how) {
		switch k := s.keys[v]; {
		case k.kind == isRight:
			text = "may " + s.kinds[k.variant].text(k.namespace)
		case k.variant == customWith:
			with = append(with, s.keys[s.Via(v).From])
		}
	}
	slices.SortFunc(with, func(a, b key) int { return cmp.Compare(s.kinds[a.variant].with, s.kinds[b.variant].with) })
	for _, k := range with {
		text += " and " + s.kinds[k.variant].text(k.namespace)
	}
	return text
}
