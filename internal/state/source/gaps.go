package source

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Gap is an object that is missing from the files of a state although other objects
// refer to it, or a question is about it. An answer that depends on its absence is
// unknown.
type Gap struct {
	// Resource is the resource to add: persistentvolumes.
	Resource schema.GroupResource
	// Lacks describes what is missing: "persistent volume pv-1 of …".
	Lacks string
	// Because says what refers to it, as a clause that begins with a comma; empty for
	// the object of a question.
	Because string
	// RolesAndBindings is true if the files hold no roles and bindings.
	RolesAndBindings bool
}

func (g Gap) String() string { return g.Lacks + g.Because }

// Complete reports whether the state holds every object of each kind, except for
// kinds in [State.Missing]. This is so for a cluster and for a snapshot of one, but
// not for other files.
func (s *State) Complete() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.facts.complete
}

// Gaps lists what could relate the object to the node and is not in the files: the
// object, if it names its node itself; the pods of the node, if there are none; the
// volumes of claims that these pods use; resource claims whose names are not known.
// The list is empty for a complete state, except for pods that changes add and that no
// node has yet.
func (s *State) Gaps(node string, kind graph.Kind, namespace, name string) []Gap {
	gaps := s.pendingGaps(node, func(pending string) bool { return s.overlay.relations.HasPath(pending, kind, namespace, name) })
	return append(gaps, s.fileGaps(node, kind, namespace, name)...)
}

// fileGaps are gaps that are not because of changes.
func (s *State) fileGaps(node string, kind graph.Kind, namespace, name string) []Gap {
	if s.Complete() {
		return nil
	}
	s.readForGaps(node, kind, namespace, name)
	if k, ok := namesItsNode(kind); ok {
		if s.holds(k, namespace, name) {
			return nil
		}
		return []Gap{
			{Resource: k.describe().groupResource(), Lacks: verdict.Object{Kind: kind.String(), Namespace: namespace, Name: name}.String()},
		}
	}
	if !s.HasPods(node) {
		return []Gap{podsGap(node)}
	}
	switch kind {
	case graph.Secret:
		return s.unboundClaims(node, "")
	case graph.PersistentVolume:
		return s.unboundClaims(node, name)
	case graph.ResourceClaim:
		return s.unnamedClaims(node, namespace)
	}
	return nil
}

// NodeGaps lists everything that could relate the node to more objects and is not in
// the files. It is empty for a complete state, but for pods that changes add and that no node has yet.
func (s *State) NodeGaps(node string) []Gap {
	gaps := s.pendingGaps(node, func(string) bool { return true })
	if s.Complete() {
		return gaps
	}
	s.readForGaps(node, graph.Node, "", "")
	if !s.HasPods(node) {
		gaps = append(gaps, podsGap(node))
	}
	gaps = append(gaps, s.unboundClaims(node, "")...)
	gaps = append(gaps, s.unnamedClaims(node, "")...)
	var absent []string
	for _, k := range []kind{kindVolumeAttachment, kindResourceSlice, kindPodCertificateRequest} {
		if !s.hasAny(k) {
			absent = append(absent, k.describe().groupResource().String())
		}
	}
	if len(absent) > 0 {
		all := strings.Join(absent, ",")
		gaps = append(gaps, Gap{Resource: schema.GroupResource{Resource: all}, Lacks: "any " + strings.ReplaceAll(all, ",", ", ")})
	}
	return gaps
}

// readForGaps reads what the gaps of a node depend on, if the state is partial. ReadErr keeps the
// error.
func (s *State) readForGaps(node string, of graph.Kind, namespace, name string) {
	if s.parts == nil {
		return
	}
	if k, ok := namesItsNode(of); ok {
		s.lookUp(k, namespace, name)
		return
	}
	_ = s.Read(Part{Kinds: Pods, Node: node}, Part{Kinds: PersistentVolumes})
}

// hasAny reports whether the source of the state has objects of a kind.
func (s *State) hasAny(k kind) bool {
	if s.OfFile() {
		return s.parts.file.Count(k.String()) > 0
	}
	return s.Counts()[k.String()] > 0
}

func podsGap(node string) Gap {
	return Gap{Resource: kindPod.describe().groupResource(), Lacks: "any pod of node " + node}
}

// NamesItsNode reports whether objects of a kind name their node themselves, so that
// only the object itself relates it to a node.
func NamesItsNode(of graph.Kind) bool {
	_, names := namesItsNode(of)
	return names
}

// namesItsNode returns the kept kind of objects that name their node themselves.
func namesItsNode(of graph.Kind) (kind, bool) {
	switch of {
	case graph.Pod:
		return kindPod, true
	case graph.VolumeAttachment:
		return kindVolumeAttachment, true
	case graph.ResourceSlice:
		return kindResourceSlice, true
	case graph.PodCertificateRequest:
		return kindPodCertificateRequest, true
	}
	return 0, false
}

// holds reports whether the state has an object of that name.
func (s *State) holds(k kind, namespace, name string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.objects.table(k).has(keyOf(namespace, name))
}

// unboundClaims lists the missing volumes of claims of the node's pods. If volume is
// not empty, it lists only gaps that this volume could fill.
func (s *State) unboundClaims(node, volume string) []Gap {
	var gaps []Gap
	for _, ref := range s.Graph.UnboundClaims(node) {
		claim := ref.From
		s.lookUp(kindPersistentVolumeClaim, claim.Namespace, claim.Name)
		s.mu.RLock()
		bound, _ := s.objects.others[kindPersistentVolumeClaim][keyOf(claim.Namespace, claim.Name)].record.(string)
		_, known := s.objects.volumes[keyOf("", bound)]
		s.mu.RUnlock()
		if volume != "" && bound != "" && bound != volume {
			continue
		}
		gap := Gap{
			Resource: kindPersistentVolume.describe().groupResource(),
			Because:  fmt.Sprintf(", which %s uses (%s)", ref.To, ref.Field),
		}
		switch {
		case bound == "":
			gap.Lacks = fmt.Sprintf("the persistent volume bound to %s", claim)
		case known:
			gap.Lacks = fmt.Sprintf("spec.claimRef in persistent volume %s for %s", bound, claim)
		default:
			gap.Lacks = fmt.Sprintf("persistent volume %s of %s", bound, claim)
		}
		gaps = append(gaps, gap)
	}
	return gaps
}

// unnamedClaims lists the pods on the node with resource claims from a template whose
// names are not in the pods' status. An empty namespace means all namespaces.
func (s *State) unnamedClaims(node, namespace string) []Gap {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var gaps []Gap
	for key, on := range s.objects.unnamedClaims {
		in := key.namespace.Value()
		if on.Value() != node || namespace != "" && in != namespace {
			continue
		}
		pod := verdict.Object{Kind: "Pod", Namespace: in, Name: key.name}
		gaps = append(gaps, Gap{
			Resource: kindPod.describe().groupResource(),
			Lacks:    fmt.Sprintf("status.resourceClaimStatuses of %s, which names the resource claims that are made for it", pod),
		})
	}
	slices.SortFunc(gaps, func(a, b Gap) int { return strings.Compare(a.Lacks, b.Lacks) })
	return gaps
}

// pendingGaps lists pods without a node that may come to the node and would relate it to the object.
func (s *State) pendingGaps(node string, relates func(pseudo string) bool) []Gap {
	if s.overlay == nil {
		return nil
	}
	var gaps []Gap
	for i, p := range s.overlay.pending {
		if !s.mayRun(p.pod, node) || !relates(fmt.Sprint(i)) {
			continue
		}
		gaps = append(gaps, Gap{
			Resource: kindPod.describe().groupResource(),
			Lacks:    fmt.Sprintf("the node of the pods of %s", p.of),
			Because:  ", which the scheduler may bind to " + node,
		})
	}
	slices.SortFunc(gaps, func(a, b Gap) int { return strings.Compare(a.Lacks, b.Lacks) })
	return slices.Compact(gaps)
}

// mayRun reports whether the scheduler may bind a pod to a node. It may to a node of which there is no
// object.
func (s *State) mayRun(p *inventory.Pod, node string) bool {
	n, ok := s.Inventory.Node(node)
	return !ok || p.Placement.Allows(&n, nil)
}

// Changed reports whether changes were applied to the state.
func (s *State) Changed() bool { return s.overlay != nil }

// WasAdded reports whether a change added a binding.
func (s *State) WasAdded(binding rbac.Ref) bool {
	return s.overlay != nil && s.overlay.bindings[binding]
}

// HasPods reports whether the state had a pod of a node before changes were applied.
func (s *State) HasPods(node string) bool {
	if s.overlay != nil {
		if had, noted := s.overlay.hadPods[node]; noted {
			return had
		}
	}
	return s.Graph.HasPods(node)
}

// noteNode notes whether a node has pods before some are added or removed.
func (c *changer) noteNode(node string) {
	if _, noted := c.overlay.hadPods[node]; !noted {
		c.overlay.hadPods[node] = c.Graph.HasPods(node)
	}
}
