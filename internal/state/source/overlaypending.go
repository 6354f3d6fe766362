package source

import (
	"fmt"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/rbac"
)

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
