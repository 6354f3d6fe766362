package cli

import (
	"slices"

	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/internal/source"
)

// nodesNear returns the nodes of [session.knownNodes]. Of a cluster that is read in parts, it
// returns only the named node if that is known; if it is not, nodes without a Node object are left
// out, unless there is no other or the user may not list nodes.
func (s *session) nodesNear(name string) ([]string, error) {
	if !s.State.Partial() {
		return s.knownNodes(), nil
	}
	if s.State.HasNode(name) {
		return []string{name}, nil
	}
	if name != "" {
		if err := s.State.Read(source.Part{Kinds: namingNodes(), Node: name}); err != nil {
			return nil, err
		}
		if s.State.Graph.HasNode(name) {
			return []string{name}, nil
		}
	}
	names, readable, err := s.State.ListNodeNames()
	if err != nil {
		return nil, err
	}
	if !readable || len(names) == 0 {
		if err := s.State.Read(source.Part{Kinds: namingNodes()}); err != nil {
			return nil, err
		}
	}
	known := append(names, s.State.Graph.Nodes()...)
	slices.Sort(known)
	return slices.Compact(known), nil
}

// namingNodes are the kinds of objects that name a node.
func namingNodes() source.Kinds {
	var kinds source.Kinds
	for _, kind := range []graph.Kind{graph.Pod, graph.VolumeAttachment, graph.ResourceSlice, graph.PodCertificateRequest} {
		kinds |= source.KindsAbout(kind)
	}
	return kinds
}
