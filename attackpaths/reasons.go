package attackpaths

import (
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

// reason says in one line what makes a step possible that leads to a vertex.
type reason func(s *solver, how via, target key) string

// always is a reason that is the same for all steps.
func always(text string) reason {
	return func(*solver, via, key) string { return text }
}

// ofPod is a reason that is a pod. The step's edge has its place.
func ofPod(text func(p *inventory.Pod) string) reason {
	return func(s *solver, how via, _ key) string { return text(s.pods[how.Edge.Arg]) }
}

// because says in one line what makes a step possible.
func (s *solver) because(how via, to vertex) string {
	text := s.reasonOf(how, to)
	if k := s.deletedBefore(how); k.kind == isFact && !strings.HasPrefix(text, "may delete ") {
		text += "; may delete " + requestKinds[k.variant].resource + "/" + strings.TrimPrefix(k.namespace, "/") + " first"
	}
	return text
}

// deletedBefore is the object that is deleted before a step; zero for none.
func (s *solver) deletedBefore(how via) key {
	for _, v := range s.edges.Parts(how) {
		k := s.keys[v]
		if k.kind == isFact && k.name == deletedObject {
			return k
		}
		before := s.Via(v)
		if k.kind == isRight && before.Edge.Row == 0 && (before.Join >= 0 || before.From != none) {
			if found := s.deletedBefore(before); found.kind == isFact {
				return found
			}
		}
	}
	return key{}
}

// reasonOf is because without what is deleted before.
func (s *solver) reasonOf(how via, to vertex) string {
	row, target := how.Edge.Row, s.keys[to]
	switch {
	case target.kind == isLimited:
		return s.limitedText(target)
	case isCustomRow(row):
		return s.becauseOfCustom(how)
	case !isOfPod(row) && how.Join < 0 && s.keys[how.From].kind == isRight:
		from := s.keys[how.From]
		if from.of != 0 { // of all pods on a node
			from.namespace, from.name = target.namespace, target.name
		}
		return "may " + s.rightText(how.From, from)
	}
	if t := &techniques[row-1]; t.because != nil {
		return t.because(s, how, target)
	}
	return techniques[row-1].Summary
}

// isOfPod reports whether the edges of a technique have the place of a pod.
func isOfPod(r row) bool { return !isCustomRow(r) && techniques[r-1].ofPod }

func becauseOfTokenOfPod(s *solver, how via, _ key) string {
	p := s.pods[how.Edge.Arg]
	text := "pod " + p.Name.String() + " runs on " + p.Node
	if how.Join < 0 && s.keys[how.From].kind == isRight {
		text += "; the node may " + audienceVerb
	}
	return text
}

func becauseOfControlPlane(s *solver, how via, _ key) string {
	if how.Edge.Arg < 0 {
		return "the node has a label of the control plane"
	}
	p := s.pods[how.Edge.Arg]
	if p.ControlPlane == "" {
		return "pod " + p.Name.String() + " mounts a folder for keys of the control plane there"
	}
	return "pod " + p.Name.String() + " runs " + p.ControlPlane + " there"
}

// becauseOfEscape names the way out of a pod that leads to a vertex.
func becauseOfEscape(s *solver, how via, target key) string {
	ways := s.pods[how.Edge.Arg].WaysOut(s.world.references)
	effect := inventory.TakesNode
	switch {
	case target.kind == isNodeUser:
		effect = inventory.TakesCredential
	case target.name == keysOnNode:
		effect = inventory.TakesControlPlane
	case target.name == heldOnNode:
		effect = inventory.TakesPods
	case target.name == mountedOnNode:
		effect = inventory.TakesMounted
	}
	for _, wanted := range [...]inventory.Effect{effect, inventory.LinksLogs} {
		if i := slices.IndexFunc(ways, func(e inventory.Escape) bool { return e.Effect == wanted }); i >= 0 {
			return ways[i].Means
		}
	}
	return ""
}

func becauseOfNamespace(s *solver, how via, target key) string {
	switch {
	case how.Join >= 0 && target.kind != isNode && target.kind != isFact:
		return "may create the service account, and a pod that uses it"
	case s.partOf(how, createNamespaces) != none:
		return "may create a namespace, and in it a pod that is privileged and names any node"
	case target.kind == isServiceAccount:
		return "a pod may use any service account of its namespace"
	case target.kind == isSecret:
		return "a pod may mount any secret of its namespace"
	}
	return "a pod may be privileged and name any node"
}

func becauseOfVolume(_ *solver, _ via, target key) string {
	switch {
	case target.kind == isFact && target.name == claimedVolume:
		return "a pod may mount the claim " + target.namespace + ", whose volume is a folder of the host"
	case target.kind == isFact && target.name == freeVolume:
		return "a pod may claim the volume " + target.namespace + ", which no claim has and which is a folder of the host"
	}
	return "may create a persistent volume that is a folder of the host, and a pod on any node that claims it"
}

func becauseOfTokenSecret(s *solver, how via, _ key) string {
	if how.Join >= 0 || s.keys[how.From].kind == isLimited {
		return "may create a secret of type service-account-token and read it"
	}
	return "the secret holds a token of the service account"
}

func becauseOfBinding(s *solver, _ via, target key) string {
	return "may bind " + s.roles[target.role].Role.String() + scopeText(target.namespace)
}

// becauseOfEscalation says which role gets which rules.
func becauseOfEscalation(s *solver, how via, target key) string {
	everything := len(s.roles) - 1
	if int(target.role) != everything {
		return "may add the rules of " + s.roles[target.role].Role.String() + " to a role" + scopeText(target.namespace)
	}
	text, gone := "may add any rule to a role that it holds", s.deletedBefore(how)
	if gone.kind == isFact {
		text = `may delete ClusterRole "` + discovery + `", which all users hold by default, and create it again with any rule`
	}
	for _, v := range s.edges.Parts(how) {
		k := s.keys[v]
		if k.kind != isRole || int(k.role) >= everything {
			continue
		}
		switch role := &s.roles[k.role]; {
		case gone.kind == isFact:
			text = "may delete " + role.Role.String() + ", which it holds, and create it again with any rule"
		case int(k.role) >= s.existing:
			text = "may create " + role.Role.String() + ", which a binding names, with any rule"
		case role.Aggregates:
			text = "may add any rule to " + role.Role.String() + " or to a role that it selects"
		}
	}
	return text + scopeText(target.namespace)
}

func becauseOfPodUpdate(s *solver, how via, _ key) string {
	return "may " + s.verbOfPart(how, patchPods) + " pods where Pod Security is turned off"
}

func becauseOfExec(s *solver, how via, target key) string {
	if target.kind == isPod {
		return "may " + s.verbOfPart(how, addContainers) + " pods/ephemeralcontainers where Pod Security is turned off"
	}
	return "may add a privileged container to a pod on the node"
}

func becauseOfPolicy(s *solver, how via, _ key) string {
	policy, binding := s.verbOfPart(how, createMutatingPolicies), s.verbOfPart(how, createMutatingPolicyBindings)
	return "may " + policy + " a mutating admission policy, and " + binding + " its binding"
}

// becauseOfSteal says how a node gets pods.
func becauseOfSteal(s *solver, how via, _ key) string {
	pods := "the scheduler may bind pods like " + s.pods[how.Edge.Arg].Name.String()
	if from := s.keys[how.From].name; from != labelledNode && from != untaintedNode && !strings.HasSuffix(from, byAccounts) {
		return pods + " to the node"
	}
	for how.Join < 0 {
		how = s.Via(how.From)
	}
	for _, v := range s.edges.Joins[how.Join].From {
		if k := s.keys[v]; k.kind == isRight {
			return "may " + s.rightText(v, k) + ", so that " + pods + " to a node that is held"
		}
	}
	return pods + " to the node"
}
