package attackpaths

import (
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
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
	how := s.via[v]
	switch {
	case how.join >= 0:
		return s.joined(v)
	case how.from == none:
		return s.begin(v)
	}
	before, ok := s.trails[how.from]
	if !ok {
		before = s.trail(how.from)
		s.trails[how.from] = before
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
	for _, v := range s.derivation(v) {
		if how := s.via[v]; how.from == none && how.join < 0 {
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
	how := s.via[v]
	h, isHolding := s.keys[v].holding()
	switch {
	case how.edge.row != 0:
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
	if how.edge.row == 0 && how.edge.arg >= 0 {
		t.binding = how.edge.arg
	}
	if how.edge.row == 0 && how.edge.dependsOn != 0 {
		t.dependsOn = append(slices.Clone(t.dependsOn), how.edge.dependsOn)
	}
	if isHolding && t.pending >= 0 {
		place := *t.steps[t.pending].place
		place.to = v
		t.steps[t.pending].To, t.steps[t.pending].place = h, &place
		t.holder, t.at, t.pending = h, v, -1
	}
	return t
}

// before is where the derivation stands before a vertex is reached. Of the parts of a join it
// is that of an identity, or else of the part that was reached last.
func (s *solver) before(how via, at map[vertex]position) position {
	if how.join < 0 {
		return at[how.from]
	}
	from := s.joins[how.join].from
	main := from[0]
	for _, v := range from {
		if k := s.keys[v]; k.kind == isFact && k.name == holdsFree {
			return at[v] // the identity that a role is bound to acts
		}
	}
	for _, v := range from[1:] {
		a, b := s.keys[main].actor(), s.keys[v].actor()
		if (b && !a) || (a == b && s.cost[v] > s.cost[main]) {
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
	e := how.edge
	step := Step{Technique: s.codeOf(e.row), From: p.holder, To: p.holder, Impersonates: s.impersonated(to), Certainty: Certain}
	step.place = &stepPlace{row: e.row, start: p.start, from: p.at, to: to}
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
	if !e.row.ofPod() && e.arg >= 0 {
		binding = e.arg
	}
	if binding >= 0 {
		ref := s.bindings[binding].Binding
		step.GrantedBy = &ref
	}
	if conditions := s.conditionsOf(how, p, at); len(conditions) > 0 {
		step.Certainty, step.DependsOn = Possible, strings.Join(conditions, "; ")
	}
	return step
}

// conditionsOf lists what else decides about a step and about the rights that it needs.
func (s *solver) conditionsOf(how via, p position, at map[vertex]position) []string {
	places := slices.Clone(p.dependsOn)
	if how.join >= 0 {
		for _, v := range s.joins[how.join].from {
			places = append(places, at[v].dependsOn...)
		}
	}
	var all []string
	for _, c := range append(places, how.edge.dependsOn) {
		if text := s.conditions[c]; c != 0 && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

// others names the other holdings that a join needs.
func (s *solver) others(how via, p position, at map[vertex]position) string {
	if how.join < 0 {
		return ""
	}
	var names []string
	for _, v := range s.joins[how.join].from {
		if h := at[v].holder; h != p.holder {
			names = append(names, h.String())
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}

// ofPod reports whether the steps of a technique are because of a pod.
func (r row) ofPod() bool {
	switch r.code() {
	case PodOnNode, PodTokenOnNode, TokenOfPodOnNode, PodToken, PodSecret, PodEscape, ControlPlaneNode, StealPods:
		return true
	}
	return false
}

// because says in one line what makes a step possible.
func (s *solver) because(how via, to vertex) string {
	e, target := how.edge, s.keys[to]
	switch {
	case target.kind == isLimited:
		return s.limitedText(target)
	case e.row.isCustom():
		return s.becauseOfCustom(how)
	}
	if e.row.ofPod() {
		return s.becauseOfPod(how, target)
	}
	if how.join < 0 {
		if from := s.keys[how.from]; from.kind == isRight {
			if from.role != 0 { // of all pods on a node
				from.namespace, from.name = target.namespace, target.name
			}
			return "may " + s.rightText(how.from, from)
		}
	}
	switch e.row.code() {
	case SecretOnNode:
		return "a pod on the node or a volume attached to it refers to the secret"
	case TokenRequest:
		return "may create the service account, and a token of it"
	case PodCreate:
		if target.kind == isFact && target.name == newAccounts || how.join >= 0 && target.kind != isNode && target.kind != isFact {
			return "may create the service account, and a pod that uses it"
		}
		if s.partOf(how, createNamespaces) != none {
			return "may create a namespace, and in it a pod that is privileged and names any node"
		}
		return s.becauseOfNamespace(target)
	case VolumeControl:
		if target.kind == isFact && target.name == claimedVolume {
			return "a pod may mount the claim " + target.namespace + ", whose volume is a folder of the host"
		}
		if target.kind == isFact && target.name == freeVolume {
			return "a pod may claim the volume " + target.namespace + ", which no claim has and which is a folder of the host"
		}
		return "may create a persistent volume that is a folder of the host, and a pod on any node that claims it"
	case ServiceAccountTokenSecret:
		if how.join >= 0 || s.keys[how.from].kind == isLimited {
			return "may create a secret of type service-account-token and read it"
		}
		return "the secret holds a token of the service account"
	case BootstrapToken:
		return "the secret is a bootstrap token"
	case BindRole:
		return "may bind " + s.roles[target.role].Role.String() + scopeText(target.namespace)
	case EscalateRole:
		if int(target.role) != len(s.roles)-1 {
			return "may add the rules of " + s.roles[target.role].Role.String() + " to a role" + scopeText(target.namespace)
		}
		return s.becauseOfEscalation(how, target)
	case Impersonate:
		return "may impersonate users or service accounts, and groups"
	case ApproveCertificate:
		return "may create a request for a client certificate, and have it approved"
	case SignCertificate:
		return "may create and sign a request for a client certificate"
	case PodUpdate:
		return "may " + s.verbOfPart(how, patchPods) + " pods where Pod Security is turned off"
	case PodExec:
		if target.kind == isPod {
			return "may " + s.verbOfPart(how, addContainers) + " pods/ephemeralcontainers where Pod Security is turned off"
		}
		return "may add a privileged container to a pod on the node"
	case AdmissionControl:
		return "may create a mutating admission policy and its binding"
	case Masters:
		return "may do everything"
	}
	return string(e.row.code())
}

func (s *solver) becauseOfPod(how via, target key) string {
	e := how.edge
	if e.arg < 0 {
		return "the node has a label of the control plane"
	}
	p := s.pods[e.arg]
	switch e.row.code() {
	case PodOnNode:
		return "the pod runs on " + p.Node
	case PodTokenOnNode:
		return "pod " + p.Name.String() + " runs on " + p.Node + " and mounts a token"
	case TokenOfPodOnNode:
		text := "pod " + p.Name.String() + " runs on " + p.Node
		if how.join < 0 && s.keys[how.from].kind == isRight {
			text += "; the node may " + audienceVerb
		}
		return text
	case PodEscape:
		return s.meansOf(p, target)
	case ControlPlaneNode:
		if p.ControlPlane == "" {
			return "pod " + p.Name.String() + " mounts a folder for keys of the control plane there"
		}
		return "pod " + p.Name.String() + " runs " + p.ControlPlane + " there"
	case StealPods:
		return s.becauseOfSteal(how, p)
	}
	if target.kind == isSecret {
		return "the pod's containers see the secret"
	}
	return "the pod mounts a token of the service account"
}

// meansOf names the way out of a pod that leads to a vertex.
func (s *solver) meansOf(p *inventory.Pod, target key) string {
	ways := p.WaysOut(s.world.references)
	effect := map[string]inventory.Effect{keysOnNode: inventory.TakesControlPlane, mountedOnNode: inventory.TakesPods}[target.name]
	if target.kind == isNodeUser {
		effect = inventory.TakesCredential
	}
	for _, wanted := range [...]inventory.Effect{effect, inventory.LinksLogs} {
		if i := slices.IndexFunc(ways, func(e inventory.Escape) bool { return e.Effect == wanted }); i >= 0 {
			return ways[i].Means
		}
	}
	return ""
}

func (s *solver) becauseOfNamespace(target key) string {
	switch target.kind {
	case isServiceAccount:
		return "a pod may use any service account of its namespace"
	case isSecret:
		return "a pod may mount any secret of its namespace"
	}
	return "a pod may be privileged and name any node"
}

// rightText says what a right is that a vertex stands for: "create pods/exec in namespace shop".
func (s *solver) rightText(v vertex, k key) string {
	r, verb := s.usedRight(v)
	text := r.withVerb(verb)
	if before := s.via[v].from; before != none && s.keys[before].kind == isRight && s.keys[before].variant == k.variant {
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
