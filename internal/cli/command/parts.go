package command

import (
	"slices"

	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
)

// knownNodesFor returns the nodes of [session.knownNodes]. Of a cluster that is read in parts, it
// returns only the named node if that is known; if it is not, nodes without a Node object are left
// out, unless there is no other or the user may not list nodes. Of a snapshot, none is left out.
func (s *Session) knownNodesFor(name string) ([]string, error) {
	if !s.State.Partial() {
		return s.KnownNodes(), nil
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
	if s.State.OfFile() {
		return s.nodesOfFile(), nil
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

// nodesOfFile returns the nodes of [session.knownNodes] of a snapshot that is read in parts.
func (s *Session) nodesOfFile() []string {
	names := s.State.NodesOfFile()
	slices.Sort(names)
	return slices.Compact(names)
}

// ReadWhoCan reads of a snapshot what the answers of who-can depend on, and returns the nodes. Everything
// is read unless the question is about reading one object of a snapshot of a cluster: other answers
// depend on more objects of each node.
func (s *Session) ReadWhoCan(q Question) ([]string, error) {
	if !s.State.OfFile() {
		return s.KnownNodes(), nil
	}
	kind, related := nodeauthz.KindOf(q.Group, q.Resource)
	reads := slices.Contains([]string{"get", "list", "watch"}, q.Verb)
	if !s.State.Complete() || !reads || !related || q.Name == "" {
		if err := s.State.ReadAll(); err != nil {
			return nil, err
		}
		return s.KnownNodes(), nil
	}
	req := q.Request(Identity{})
	if err := s.ReadForAllNodes(req, kind); err != nil {
		return nil, err
	}
	return s.nodesOfFile(), nil
}

func namingNodes() source.Kinds {
	var kinds source.Kinds
	for _, kind := range []graph.Kind{graph.Pod, graph.VolumeAttachment, graph.ResourceSlice, graph.PodCertificateRequest} {
		kinds |= source.KindsAbout(kind)
	}
	return kinds
}

// ReadReach reads what the reach of a node depends on, if the cluster is read in parts: the
// objects that relate to the node, and the claims and drivers that decide about audiences. The
// kinds that the user may not list are missing, whether or not the node needs them.
func (s *Session) ReadReach(node string) error {
	if !s.State.Partial() {
		return nil
	}
	if err := s.ReadNode(node); err != nil {
		return err
	}
	parts := []source.Part{{Kinds: source.CSIDrivers}}
	for _, claim := range s.State.Graph.Objects(node, graph.PersistentVolumeClaim) {
		parts = append(parts, source.Part{Kinds: source.PersistentVolumeClaims, Namespace: claim.Namespace, Name: claim.Name})
	}
	if err := s.State.Read(parts...); err != nil {
		return err
	}
	return s.State.Probe(source.NodeKinds())
}
