package attackpaths

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"

	psa "k8s.io/pod-security-admission/api"

	"github.com/node-authorizer/node-authorizer/inventory"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Why nothing can be changed.
const (
	noneOfNode = "Root on a node controls what runs on it: keep the pod off the node, or take away what the pod gives."
	noneOfUse  = "A pod may use each service account and secret of its namespace: " +
		"take away the right to make pods there, or move them to another namespace."
	noneOfMasters       = "The API server gives system:masters every right: replace the credential that names the group."
	noneOfControlPlane  = "A node of the control plane has the control plane's credentials on its disk: keep other pods off it."
	noneOfStaticPod     = "The pod is static: its file is on the node, and the API server cannot change it."
	noneOfBefore        = "The step needs nothing that the steps before it do not give: take one of these away."
	noneOfClaimTemplate = "The claim is made from a template of a StatefulSet, which cannot be changed: " +
		"make the StatefulSet again with volumes that are no folder of a node."
	warningOfClaim = "Pods that mount the claim keep it until they are gone, and lose their data."
	noneOfVolume   = "A volume that is attached to the node needs the secret: move the pods that use the volume."
	noneOfEveryPod = "A node may request a token for the service account of each pod on it: take rights from the account."
)

// world is what remedies need besides the graph. It is not changed.
type world struct {
	cluster  *Cluster
	podsOn   map[string][]int32
	accounts map[string][]string
	labels   map[string]map[string]string
	nodes    []inventory.Node
	claimed  map[inventory.Name]inventory.Volume
	// websockets is true if get is enough to run commands in a pod.
	websockets bool
	// usesOf says how often each role is bound.
	usesOf map[int32]int
	// alike are the nodes that have pods of one workload and placement. They are found when a remedy
	// needs them.
	alike func() map[workloadPods][]string
}

// workloadPods are the pods of one workload that may run on the same nodes.
type workloadPods struct {
	namespace string
	workload  inventory.Workload
	placement inventory.Placement
}

func alikeOf(p *inventory.Pod) workloadPods {
	return workloadPods{p.Namespace, p.Workload, p.Placement}
}

// nodesOfWorkloads lists the nodes of each workload in order.
func nodesOfWorkloads(pods []*inventory.Pod) map[workloadPods][]string {
	nodes := map[workloadPods][]string{}
	for _, p := range pods {
		if p.Node != "" {
			nodes[alikeOf(p)] = append(nodes[alikeOf(p)], p.Node)
		}
	}
	for key, names := range nodes {
		slices.Sort(names)
		nodes[key] = slices.Compact(names)
	}
	return nodes
}

func (b *builder) world() *world {
	w := &world{
		cluster: b.cluster, podsOn: b.podsOn, accounts: b.accounts, labels: b.labels, nodes: b.nodes, claimed: b.claimed,
		websockets: b.cluster.Features.Minor() < 35, usesOf: map[int32]int{},
		alike: sync.OnceValue(func() map[workloadPods][]string { return nodesOfWorkloads(b.pods) }),
	}
	for _, bound := range b.bindings {
		if role, ok := b.roleIndex[roleName{bound.Role.Namespace, bound.Role.Name}]; ok {
			w.usesOf[role]++
		}
	}
	return w
}

func noRemedy(why string) *verdict.Remedy { return &verdict.Remedy{None: why} }

// remedy finds what to change so that a step is no longer there. Binding is the one that gives the
// step its right, -1 if none does.
func (s *solver) remedy(how via, to vertex, binding int32) *verdict.Remedy {
	e := how.edge
	if e.row.isCustom() {
		return s.rightRemedy(how, to, binding)
	}
	from := s.keys[s.parts(how)[0]]
	switch code := e.row.code(); {
	case code == SecretOnNode:
		return s.secretOnNodeRemedy(how.from, s.keys[to])
	case code == StealPods && s.keys[how.from].isLabelled():
		return s.labelRemedy(how, to)
	case e.row.ofPod():
		return s.podRemedy(code, e.arg, s.keys[to])
	case from.kind == isSecret && how.join < 0:
		return &verdict.Remedy{Changes: []verdict.Change{deletion("v1", from.asObject())}}
	case code == VolumeControl && s.keys[to].name == claimedVolume:
		namespace, name, _ := strings.Cut(s.keys[to].namespace, "/")
		claim := verdict.Object{Kind: "PersistentVolumeClaim", Namespace: namespace, Name: name}
		return &verdict.Remedy{Changes: []verdict.Change{deletion("v1", claim)}, Warning: warningOfClaim}
	case code == PodCreate && from.kind == isNamespace && how.join < 0:
		if s.keys[to].kind == isFact {
			return s.podSecurityRemedy(from.name)
		}
		return noRemedy(noneOfUse)
	}
	return s.rightRemedy(how, to, binding)
}

// asObject names a holding.
func (k key) asObject() verdict.Object {
	h, _ := k.holding()
	return h
}

// deletion deletes an object.
func deletion(apiVersion string, object verdict.Object) verdict.Change {
	return verdict.Change{Of: verdict.OfObject, Op: verdict.Remove, APIVersion: apiVersion, Object: object}
}

// editor makes changes of one object.
type editor struct {
	apiVersion string
	object     verdict.Object
	changes    []verdict.Change
}

func (e *editor) do(op verdict.Op, path string, value any) {
	c := verdict.Change{Of: verdict.OfObject, Op: op, APIVersion: e.apiVersion, Object: e.object, Path: path}
	if op != verdict.Remove {
		c.Value = encoded(value)
	}
	e.changes = append(e.changes, c)
}

func encoded(value any) json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil {
		panic("a value of a remedy does not encode: " + err.Error())
	}
	return text
}

// escaped is a key of an object in a JSON pointer (RFC 6901).
func escaped(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

// podSecurityRemedy makes a namespace refuse pods with rights over their host.
func (s *solver) podSecurityRemedy(namespace string) *verdict.Remedy {
	e := editor{apiVersion: "v1", object: verdict.Object{Kind: Namespace, Name: namespace}}
	e.do(verdict.Add, "/metadata/labels/"+escaped(psa.EnforceLevelLabel), psa.LevelBaseline)
	return &verdict.Remedy{Changes: e.changes}
}

// rightRemedy takes away a right that a step needs.
func (s *solver) rightRemedy(how via, to vertex, binding int32) *verdict.Remedy {
	target := s.keys[to].name
	if binding >= 0 {
		if g, ok := s.grantBy(how, binding); ok {
			return s.grantRemedy(g, target)
		}
		return s.grantRemedy(grant{binding: binding, role: none, right: none}, target)
	}
	parts := slices.Clone(s.parts(how))
	slices.SortStableFunc(parts, func(a, b vertex) int { return s.harm(a) - s.harm(b) })
	for _, v := range parts {
		if g, ok := s.grantOf(v); ok {
			if g.before != none {
				return s.remedyOf(g.before)
			}
			return s.grantRemedy(g, target)
		}
	}
	if how.edge.row == rowOf(Masters) {
		return noRemedy(noneOfMasters)
	}
	return noRemedy(noneOfBefore)
}

// harm orders what a step needs by how much harm it does to take it away: few need to create
// volumes, and a step that is taken away has no other harm than its own.
func (s *solver) harm(v vertex) int {
	k := s.keys[v]
	switch {
	case k.kind == isRight && right(k.variant) == createVolumes:
		return 0
	case k.kind == isFact:
		return 1
	}
	return 2
}

// remedyOf is the remedy of the step that leads to a vertex.
func (s *solver) remedyOf(v vertex) *verdict.Remedy {
	how := s.via[v]
	binding := int32(-1)
	if !how.edge.row.ofPod() && how.edge.arg >= 0 {
		binding = how.edge.arg
	}
	return s.remedy(how, v, binding)
}
