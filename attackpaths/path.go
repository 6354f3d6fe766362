package attackpaths

import (
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// position is where a derivation stands at a vertex.
type position struct {
	// holder is the holding that acts, at its vertex, and start the vertex where the path begins.
	holder    Holding
	at, start vertex
	// pending is the step whose target is not a holding yet; -1 if there is none.
	pending int
	// binding gave the right that the next step uses; -1 if none did.
	binding int32
	// dependsOn is what else decides about it.
	dependsOn []int32
}

// trail is the derivation of a vertex as steps between holdings, and where it stands at the
// vertex.
type trail struct {
	position
	steps []Step
}

// path renders the derivation of a vertex as steps between holdings.
func (s *solver) path(v vertex) []Step { return s.trail(v).steps }

// trail renders the derivation of a vertex. What many vertices are reached through is rendered
// once.
func (s *solver) trail(v vertex) trail {
	how := s.Via(v)
	switch {
	case how.Join >= 0:
		return s.joined(v)
	case how.From == none:
		return s.begin(v)
	}
	before, ok := s.trails[how.From]
	if !ok {
		before = s.trail(how.From)
		s.trails[how.From] = before
	}
	return s.extend(before, v, nil)
}

// begin is the trail of the start.
func (s *solver) begin(v vertex) trail {
	h, _ := s.keys[v].holding()
	return trail{position: position{holder: h, at: v, start: v, pending: -1, binding: -1}}
}

// joined renders a derivation that ends with a join.
func (s *solver) joined(v vertex) trail {
	var t trail
	at := map[vertex]position{}
	for _, v := range s.Derivation(v) {
		if how := s.Via(v); how.From == none && how.Join < 0 {
			t.position = s.begin(v).position
		} else {
			t.position = s.before(how, at)
			t = s.extend(t, v, at)
		}
		at[v] = t.position
	}
	return t
}

// extend adds a vertex to the trail of what it is reached from. At has the positions of the
// parts of a join. The steps before it are not changed, and a holding has steps of its own.
func (s *solver) extend(t trail, v vertex, at map[vertex]position) trail {
	how := s.Via(v)
	h, isHolding := s.keys[v].holding()
	switch {
	case how.Edge.Row != 0:
		steps := make([]Step, len(t.steps), len(t.steps)+1)
		copy(steps, t.steps)
		t.steps = append(steps, s.step(how, t.position, v, at))
		t.position = position{holder: t.holder, at: t.at, start: t.start, pending: len(t.steps) - 1, binding: -1}
	case isHolding:
		t.steps = slices.Clone(t.steps)
	case t.pending >= 0 && t.steps[t.pending].Impersonates == nil:
		if of := s.impersonated(v); of != nil {
			t.steps = slices.Clone(t.steps)
			t.steps[t.pending].Impersonates = of
		}
	}
	if how.Edge.Row == 0 && how.Edge.Arg >= 0 {
		t.binding = how.Edge.Arg
	}
	if how.Edge.Row == 0 && how.Edge.DependsOn != 0 {
		t.dependsOn = append(slices.Clone(t.dependsOn), how.Edge.DependsOn)
	}
	if isHolding && t.pending >= 0 {
		place := *t.steps[t.pending].place
		place.to = v
		step := &t.steps[t.pending]
		step.To, step.place = h, &place
		if after := s.conditionTexts(t.dependsOn); len(after) > 0 {
			step.Certainty, step.DependsOn = Possible, allOf(step.DependsOn, allOf(after...))
		}
		t.holder, t.at, t.pending, t.dependsOn = h, v, -1, nil
	}
	return t
}

// before is where the derivation stands before a vertex is reached. Of the parts of a join, an
// identity counts, or else the part that was reached last.
func (s *solver) before(how via, at map[vertex]position) position {
	if how.Join < 0 {
		return at[how.From]
	}
	from := s.edges.Joins[how.Join].From
	main := from[0]
	for _, v := range from {
		if k := s.keys[v]; k.kind == isFact && k.name == holdsFree {
			return at[v] // the identity that a role is bound to acts
		}
	}
	for _, v := range from[1:] {
		a, b := s.keys[main].actor(), s.keys[v].actor()
		if (b && !a) || (a == b && s.Cost(v) > s.Cost(main)) {
			main = v
		}
	}
	return at[main]
}

// actor reports whether a vertex is something that makes requests.
func (k key) actor() bool {
	switch k.kind {
	case isServiceAccount, isAssociated, isScoped, isUser, isGroup, isNodeUser, isNamespace:
		return true
	}
	return false
}

// step renders one use of a technique. Its target is the one who acts until a holding follows.
func (s *solver) step(how via, p position, to vertex, at map[vertex]position) Step {
	e := how.Edge
	step := Step{Technique: s.codeOf(e.Row), From: p.holder, To: p.holder, Impersonates: s.impersonated(to), Certainty: Certain}
	step.place = &stepPlace{row: e.Row, start: p.start, from: p.at, to: to}
	if k := s.keys[to]; k.kind == isFact && k.name == privilegedPods {
		step.To = Holding{Kind: Namespace, Name: k.namespace}
	}
	step.Because = s.because(how, to)
	if others := s.others(how, p, at); others != "" {
		step.Because += "; with " + others
	}
	if text := s.scopeText(how, to); text != "" {
		step.Because += "; " + text
	}
	binding := p.binding
	if !isOfPod(e.Row) && e.Arg >= 0 {
		binding = e.Arg
	}
	if binding >= 0 {
		ref := s.bindings[binding].Binding
		step.GrantedBy = &ref
	}
	places := slices.Clone(p.dependsOn) // and about the rights that the step needs
	for _, v := range s.edges.Parts(how) {
		places = append(places, at[v].dependsOn...)
	}
	if conditions := s.conditionTexts(append(places, e.DependsOn)); len(conditions) > 0 {
		step.Certainty, step.DependsOn = Possible, strings.Join(conditions, "; ")
	}
	return step
}

// conditionTexts are the texts of conditions, each once.
func (s *solver) conditionTexts(places []int32) []string {
	var all []string
	for _, c := range places {
		if text := s.conditions[c]; c != 0 && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

// others names the other holdings that a join needs.
func (s *solver) others(how via, p position, at map[vertex]position) string {
	if how.Join < 0 {
		return ""
	}
	var names []string
	for _, v := range s.edges.Joins[how.Join].From {
		if h := at[v].holder; h != p.holder {
			names = append(names, h.String())
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}

// rightText says what a right is that a vertex stands for: "create pods/exec in namespace shop".
func (s *solver) rightText(v vertex, k key) string {
	r, verb := s.usedRight(v)
	text := r.withVerb(verb)
	if before := s.Via(v).From; before != none && s.keys[before].kind == isRight && s.keys[before].variant == k.variant {
		k.name = s.keys[before].name // of the only object that may be created
	}
	if k.name != "" {
		text += " " + k.name
	}
	kind := &requestKinds[r]
	if kind.namespaced && kind.resource != "namespaces" {
		return text + scopeText(k.namespace)
	}
	if kind.resource == "namespaces" && k.name == "" {
		return text + " " + k.namespace
	}
	return text
}

func scopeText(namespace string) string {
	if namespace == "" {
		return " in the whole cluster"
	}
	return " in namespace " + namespace
}

// Holding is something that an attacker can own. Its kind is one of the constants below.
type Holding = verdict.Object

// The kinds of holdings.
const (
	// ClusterAdmin is every right on every object.
	ClusterAdmin = "ClusterAdmin"
	// Node is root on a machine.
	Node = "Node"
	// Pod is control of the processes in a pod's containers.
	Pod = "Pod"
	// ServiceAccount, User and Group are identities with which requests can be made.
	ServiceAccount = "ServiceAccount"
	User           = "User"
	Group          = "Group"
	// Secret is the content of a secret.
	Secret = "Secret"
	// Namespace is the right to have pods created in a namespace.
	Namespace = "Namespace"
)

// Certainty says whether something is reached.
type Certainty uint8

// No is not reached, Possible depends on what the state does not show, Certain is reached.
const (
	No Certainty = iota
	Possible
	Certain
)

// String returns "No", "Possible" or "Certain".
func (c Certainty) String() string { return [...]string{"No", "Possible", "Certain"}[c] }

// MarshalText implements encoding.TextMarshaler.
func (c Certainty) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Step is one use of a technique.
type Step struct {
	// Technique is the code of the technique, as in docs/reference/techniques.
	Technique Code `json:"technique"`
	// From is held before the step, and To after it.
	From Holding `json:"from"`
	To   Holding `json:"to"`
	// Impersonates is the identity that From acts as in the step that follows. It is set if From
	// may do so for some requests only; To is From then.
	Impersonates *Holding `json:"impersonates,omitempty"`
	// Because says in one line what makes the step possible.
	Because string `json:"because"`
	// GrantedBy is the binding that gives the right which the step needs; nil if the step
	// needs none.
	GrantedBy *rbac.Ref `json:"grantedBy,omitempty"`
	// Certainty is Possible if something decides that the state does not show.
	Certainty Certainty `json:"certainty"`
	// DependsOn is what else decides; empty for a step that is certain.
	DependsOn string `json:"dependsOn,omitempty"`
	// Remedy is what to change so that the step is no longer there, whichever right gives it; other steps may
	// lead to the same. [Graph.AddRemedies] sets it. Steps share remedies: they must not be changed.
	Remedy *verdict.Remedy `json:"remedy,omitempty"`

	// place is where the graph has the step.
	place *stepPlace
}

// Reached is a holding with the shortest path to it.
type Reached struct {
	Holding
	// Certainty is Possible if something decides that the state does not show.
	Certainty Certainty `json:"certainty"`
	// Path leads from the start to the holding. A step that needs several holdings comes
	// after the steps to each of them.
	Path []Step `json:"path"`
}

// Result is what is reached from one start.
type Result struct {
	// Start is where the paths begin.
	Start Holding `json:"start"`
	// ClusterAdmin says whether the whole cluster is reached.
	ClusterAdmin Certainty `json:"clusterAdmin"`
	// Target is the holding to which a path was asked for; omitted if none was. Reached has at most one path then.
	Target *Target `json:"target,omitempty"`
	// Reached is everything that is reached without cluster-admin, and cluster-admin:
	// by kind, in the order of the constants from ClusterAdmin to Namespace, namespace and name.
	Reached []Reached `json:"reached"`
	// NotFollowed are the rights of identities that are reached which may give more than paths follow, sorted by
	// group and resource. Cluster-admin has none; where it is only possible, they are those that are certain.
	NotFollowed []NotFollowed `json:"notFollowed,omitempty"`
}
