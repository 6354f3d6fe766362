package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/internal/resources"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// configuration reads the file of --authorization-config. It returns nil without the flag.
func (f *StateFlags) configuration() (*chain.Configuration, error) {
	if f.Authorization == "" {
		return nil, nil
	}
	c, err := chain.Load(f.Authorization)
	var problems chain.Problems
	if errors.As(err, &problems) && len(problems) > 1 {
		for _, p := range problems {
			f.App.Failure("%s: %v", f.Authorization, p)
		}
		return nil, fmt.Errorf("%s cannot be used: %d problems", f.Authorization, len(problems))
	}
	return c, err
}

// NeedsRBAC reports whether RBAC is asked, but the state has no roles and bindings.
func (s *Session) NeedsRBAC(result chain.Result) bool {
	return !s.State.RBACLoaded() && result.Decision != verdict.Allow && s.AsksRBAC(result)
}

// AsksRBAC reports whether RBAC is asked, or would be if there were roles and
// bindings.
func (s *Session) AsksRBAC(result chain.Result) bool {
	isRBAC := func(o chain.Opinion) bool { return o.Authorizer == chain.NameRBAC }
	return s.Configured == "" || slices.ContainsFunc(result.Opinions, isRBAC)
}

// Assumption returns what an answer of an authorizer assumes of kube-apiserver; empty for all authorizers but
// NodeScopes and Quarantines.
func Assumption(authorizer string) string {
	switch authorizer {
	case chain.NameNodeScope:
		return "assumes that kube-apiserver asks node-authorizer about NodeScopes"
	case chain.NameQuarantine:
		return "assumes that kube-apiserver asks node-authorizer about Quarantines"
	}
	return ""
}

// RequireRBAC returns an error for a state without roles and bindings if RBAC is asked: every
// request without an opinion of the Node authorizer would be undecided.
func (s *Session) RequireRBAC() error {
	if s.State.RBACLoaded() || s.Configured != "" && !slices.Contains(s.Chain.Names(), chain.NameRBAC) {
		return nil
	}
	return fmt.Errorf("no roles and bindings in %s, and RBAC decides what the Node authorizer does not: "+
		"add them with --from, take a snapshot, or ask the cluster", s.State.Origin)
}

// Filter restricts a result to some resources and one namespace.
type Filter struct {
	Resources []resources.Resource
	Namespace string
}

// NewFilter resolves kinds as people write them. It returns an error for unknown ones.
func (s *Session) NewFilter(kinds []string, namespace string) (Filter, error) {
	f := Filter{Namespace: namespace}
	for _, kind := range kinds {
		found, err := s.Names.Resolve(kind)
		if err != nil {
			return f, err
		}
		f.Resources = append(f.Resources, found.Resource)
	}
	return f, nil
}

// Narrows reports whether the filter leaves anything out.
func (f Filter) Narrows() bool { return len(f.Resources) > 0 || f.Namespace != "" }

func (f Filter) resource(group, name string) bool {
	return len(f.Resources) == 0 || slices.ContainsFunc(f.Resources, func(r resources.Resource) bool {
		return r.Group == group && r.Name == name
	})
}

// Object reports whether the filter keeps an object.
func (f Filter) Object(g nodeauthz.Grant) bool {
	return f.resource(g.Group, g.Resource) && (f.Namespace == "" || g.Namespace == f.Namespace)
}

// KeepsStanding reports whether a standing grant passes the filter. A grant for all namespaces
// passes the filter for one.
func (s *Session) KeepsStanding(f Filter, g nodeauthz.Grant) bool {
	switch {
	case !f.resource(g.Group, g.Resource):
		return false
	case f.Namespace == "":
		return true
	case g.Namespace != "":
		return g.Namespace == f.Namespace
	}
	found, err := s.Names.Resolve(resources.Resource{Group: g.Group, Name: g.Resource}.String())
	return err == nil && found.Namespaced
}

// Rule reports whether an RBAC rule passes the filter. A rule for all namespaces passes the
// filter for one. A rule for URLs has no resource and no namespace.
func (f Filter) Rule(g rbac.Grant) bool {
	if !f.Narrows() {
		return true
	}
	if len(g.Rule.Resources) == 0 {
		return false
	}
	if f.Namespace != "" && g.Binding.Namespace != "" && g.Binding.Namespace != f.Namespace {
		return false
	}
	return len(f.Resources) == 0 || slices.ContainsFunc(f.Resources, func(r resources.Resource) bool {
		return covers(g.Rule, r)
	})
}

func covers(rule *rbacv1.PolicyRule, r resources.Resource) bool {
	inGroup := slices.ContainsFunc(rule.APIGroups, func(group string) bool {
		return group == r.Group || group == rbacv1.APIGroupAll
	})
	return inGroup && slices.ContainsFunc(rule.Resources, func(name string) bool {
		base, _, _ := strings.Cut(name, "/")
		return base == r.Name || base == rbacv1.ResourceAll
	})
}

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
