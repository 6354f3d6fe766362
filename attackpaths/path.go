package attackpaths

import (
	"fmt"
	"slices"
	"strings"
)

// position is where a derivation stands at a vertex.
type position struct {
	// holder is the holding that acts.
	holder Holding
	// pending is the step whose target is not a holding yet; -1 if there is none.
	pending int
	// binding gave the right that the next step uses; -1 if none did.
	binding int32
	// dependsOn is what else decides about it.
	dependsOn int32
}

// path renders the derivation of a vertex as steps between holdings.
func (s *solver) path(v vertex) []Step {
	var steps []Step
	at := map[vertex]position{}
	for _, v := range s.derivation(v) {
		how := s.via[v]
		h, isHolding := s.keys[v].holding()
		if how.from == none && how.join < 0 {
			at[v] = position{holder: h, pending: -1, binding: -1}
			continue
		}
		p := s.before(how, at)
		switch {
		case how.edge.row != 0:
			steps = append(steps, s.step(how, p, v, at))
			p = position{holder: p.holder, pending: len(steps) - 1, binding: -1}
		default:
			if how.edge.arg >= 0 {
				p.binding = how.edge.arg
			}
			if how.edge.dependsOn != 0 {
				p.dependsOn = how.edge.dependsOn
			}
		}
		if isHolding && p.pending >= 0 {
			steps[p.pending].To = h
			p.holder, p.pending = h, -1
		}
		at[v] = p
	}
	return steps
}

// before is where the derivation stands before a vertex is reached. Of the parts of a join it
// is that of an identity, or else of the part that was reached last.
func (s *solver) before(how via, at map[vertex]position) position {
	if how.join < 0 {
		return at[how.from]
	}
	from := s.joins[how.join].from
	main := from[0]
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
	case isServiceAccount, isUser, isGroup, isNodeUser, isNamespace:
		return true
	}
	return false
}

// step renders one use of a technique. Its target is the one who acts until a holding follows.
func (s *solver) step(how via, p position, to vertex, at map[vertex]position) Step {
	e := how.edge
	step := Step{Technique: e.row.code(), From: p.holder, To: p.holder, Certainty: Certain}
	if k := s.keys[to]; k.kind == isFact && k.name == privilegedPods {
		step.To = Holding{Kind: Namespace, Name: k.namespace}
	}
	step.Because = s.because(how, to)
	if others := s.others(how, p, at); others != "" {
		step.Because += "; with " + others
	}
	binding := p.binding
	if !e.row.ofPod() && e.arg >= 0 {
		binding = e.arg
	}
	if binding >= 0 {
		ref := s.bindings[binding].Binding
		step.GrantedBy = &ref
	}
	var conditions []string
	for _, c := range [...]int32{p.dependsOn, e.dependsOn} {
		if c != 0 {
			conditions = append(conditions, s.conditions[c])
		}
	}
	if len(conditions) > 0 {
		step.Certainty, step.DependsOn = Possible, strings.Join(slices.Compact(conditions), "; ")
	}
	return step
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
	if e.row.ofPod() {
		return s.becauseOfPod(e, target)
	}
	if how.join < 0 {
		if from := s.keys[how.from]; from.kind == isRight {
			return "may " + from.rightText()
		}
	}
	switch e.row.code() {
	case SecretOnNode:
		return "a pod on the node or a volume attached to it refers to the secret"
	case PodCreate:
		return s.becauseOfNamespace(target)
	case VolumeControl:
		return "may create a persistent volume that is a folder of the host, a claim to it, and a pod on any node"
	case ServiceAccountTokenSecret:
		if how.join >= 0 {
			return "may create a secret of type service-account-token and read it"
		}
		return "the secret holds a token of the service account"
	case BootstrapToken:
		return "the secret is a bootstrap token"
	case BindRole:
		return "may bind " + s.roles[target.role].Role.String() + scopeText(target.namespace)
	case EscalateRole:
		return "may add any rule to a role that it holds" + scopeText(target.namespace)
	case Impersonate:
		return "may impersonate users or service accounts, and groups"
	case ApproveCertificate:
		return "may create, have approved and read a request for a client certificate"
	case SignCertificate:
		return "may create, sign and read a request for a client certificate"
	case PodUpdate:
		return "may update pods where Pod Security is turned off"
	case PodExec:
		if target.kind == isPod {
			return "may update pods/ephemeralcontainers where Pod Security is turned off"
		}
		return "may add a privileged container to a pod on the node"
	case AdmissionControl:
		return "may create a mutating admission policy and its binding"
	case Masters:
		return "may do everything"
	}
	return string(e.row.code())
}

func (s *solver) becauseOfPod(e edge, target key) string {
	if e.arg < 0 {
		return "the node has the label node-role.kubernetes.io/control-plane"
	}
	p := s.pods[e.arg]
	switch e.row.code() {
	case PodOnNode:
		return fmt.Sprintf("the pod runs on %s", p.Node)
	case PodTokenOnNode:
		return fmt.Sprintf("pod %s runs on %s and mounts a token", p.Name, p.Node)
	case TokenOfPodOnNode:
		return fmt.Sprintf("pod %s runs on %s", p.Name, p.Node)
	case PodEscape:
		return p.Escapes[0].Means
	case ControlPlaneNode:
		return fmt.Sprintf("pod %s runs %s there", p.Name, p.ControlPlane)
	case StealPods:
		return fmt.Sprintf("the scheduler may bind pods like %s to the node", p.Name)
	}
	if target.kind == isSecret {
		return "the pod's containers see the secret"
	}
	return "the pod mounts a token of the service account"
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

// rightText says what a right is: "create pods/exec in namespace shop".
func (k key) rightText() string {
	text := right(k.variant).String()
	if k.name != "" {
		text += " " + k.name
	}
	if requestKinds[k.variant].namespaced && requestKinds[k.variant].resource != "namespaces" {
		return text + scopeText(k.namespace)
	}
	if requestKinds[k.variant].resource == "namespaces" && k.name == "" {
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
