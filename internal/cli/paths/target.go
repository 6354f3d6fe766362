package paths

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// clusterAdmin is the name of the target that needs no kind.
const clusterAdmin = "cluster-admin"

func (f *AttackPathsFlags) parseTarget() error {
	if f.to == "" {
		return nil
	}
	target := attackpaths.Holding{Kind: attackpaths.ClusterAdmin}
	if f.to != clusterAdmin {
		var err error
		if target, err = command.ParseHolding(f.to, f.state.DefaultNamespace()); err != nil {
			return fmt.Errorf("--to: %w", err)
		}
	}
	if slices.Contains(f.starts, target) {
		return command.Usagef("%s is START and the target of --to: name another target", holdingText(target))
	}
	f.target = &target
	return nil
}

// requireStart returns an error for a start that does not exist. Users need no object, except for users of service accounts and
// nodes where the state is complete.
func requireStart(s *command.Session, g *attackpaths.Graph, start attackpaths.Holding) error {
	object, of := start, source.Kinds(0)
	if start.Kind == attackpaths.User {
		namespace, account, isAccount := nodeidentity.ServiceAccount(start.Name)
		node, isNode := strings.CutPrefix(start.Name, nodeidentity.UserPrefix)
		switch {
		case isAccount:
			object = attackpaths.Holding{Kind: attackpaths.ServiceAccount, Namespace: namespace, Name: account}
			of = source.ServiceAccounts
		case isNode:
			object, of = attackpaths.Holding{Kind: attackpaths.Node, Name: node}, source.Nodes
		}
	}
	if object == start {
		return requireHolding(s, g, start)
	}
	if !s.State.Complete() || slices.ContainsFunc(s.State.Missing(), func(m source.Missing) bool { return m.Kind == of }) {
		return nil
	}
	if err := requireHolding(s, g, object); err != nil {
		return fmt.Errorf("%s: %w", start, err)
	}
	return nil
}

// requireHolding returns an error for a holding that does not exist, with what is near.
func requireHolding(s *command.Session, g *attackpaths.Graph, of attackpaths.Holding) error {
	known := g.Holdings(of.Kind)
	if slices.Contains(known, of) {
		return nil
	}
	nor, near := "", nearHoldings(of, known)
	if namespaces := namespacesOf(s, g); of.Namespace != "" && !slices.Contains(namespaces, of.Namespace) {
		nor = ", nor is namespace " + of.Namespace
		near = cmp.Or(near, command.DidYouMean(of.Namespace, namespaces))
	}
	return fmt.Errorf("%s is not in %s%s%s", of, s.State.Origin, nor, near)
}

// namespacesOf returns the namespaces of the state, and of the objects in it.
func namespacesOf(s *command.Session, g *attackpaths.Graph) []string {
	names := map[string]bool{}
	for _, kind := range [...]string{attackpaths.ServiceAccount, attackpaths.Secret, attackpaths.Pod} {
		for _, h := range g.Holdings(kind) {
			names[h.Namespace] = true
		}
	}
	for _, n := range s.State.Inventory.Namespaces() {
		names[n.Name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// nearHoldings is the end of an error about a holding that does not exist: the same name in other
// namespaces, or else similar names, those in its namespace first.
func nearHoldings(of attackpaths.Holding, known []attackpaths.Holding) string {
	var same, here, all []string
	for _, h := range known {
		text := render.ObjectName(h)
		if h.Name == of.Name {
			same = append(same, text)
		}
		if h.Namespace == of.Namespace {
			here = append(here, h.Name)
		}
		all = append(all, text)
	}
	if len(same) > 0 {
		return fmt.Sprintf("; did you mean %s?", render.Join(same[:min(3, len(same))], "or"))
	}
	if near := command.DidYouMean(of.Name, here); near != "" {
		return near
	}
	return command.DidYouMean(render.ObjectName(of), all)
}

// classes are the nodes grouped by the objects that they reach, or by whether they reach the target.
func (f *AttackPathsFlags) classes(s *command.Session, g *attackpaths.Graph) ([]attackpaths.Class, error) {
	var classes []attackpaths.Class
	if f.target == nil || f.target.Kind == attackpaths.ClusterAdmin {
		classes = g.AllNodes()
	} else {
		var err error
		if classes, err = g.AllNodesTo(*f.target); err != nil {
			return nil, err
		}
	}
	if len(classes) == 0 {
		return nil, fmt.Errorf("no nodes to start from in %s: add Node objects, or pods with spec.nodeName, with --from", s.State.Origin)
	}
	return classes, nil
}

// accountStarts are all service accounts but the target.
func accountStarts(s *command.Session, target *attackpaths.Holding) ([]attackpaths.Holding, error) {
	var starts []attackpaths.Holding
	for _, name := range s.State.Inventory.ServiceAccounts() {
		start := attackpaths.Holding{Kind: attackpaths.ServiceAccount, Namespace: name.Namespace, Name: name.Name}
		if target == nil || start != *target {
			starts = append(starts, start)
		}
	}
	if len(starts) == 0 {
		return nil, errors.New("no service accounts to start from in " + s.State.Origin +
			": add ServiceAccount objects, or pods, with --from")
	}
	return starts, nil
}

// certainty says whether the target is reached, which is cluster-admin if none is named.
func (r *AttackPathsResult) certainty() attackpaths.Certainty {
	if r.Target != nil {
		return r.Target.Certainty
	}
	return r.ClusterAdmin
}

// targetText names what the paths lead to.
func targetText(target *attackpaths.Holding) string {
	if target == nil {
		return clusterAdmin
	}
	return holdingText(*target)
}

func (r *AttackPathsResult) targetText() string {
	if r.Target == nil {
		return clusterAdmin
	}
	return holdingText(r.Target.Holding)
}

// dropPossible leaves only what is certain, and counts the rest.
func (r *AttackPathsResult) dropPossible() {
	all := len(r.Reached)
	r.Reached = slices.DeleteFunc(r.Reached, func(x attackpaths.Reached) bool { return x.Certainty != attackpaths.Certain })
	r.LeftOut = all - len(r.Reached)
	if r.ClusterAdmin == attackpaths.Possible {
		r.ClusterAdmin = attackpaths.No
	}
	if r.Target != nil && r.Target.Certainty == attackpaths.Possible {
		r.Target.Certainty = attackpaths.No
	}
}

func classCertainty(c attackpaths.Class) attackpaths.Certainty {
	if c.Target != nil {
		return *c.Target
	}
	return c.ClusterAdmin
}

// dropPossible leaves only what is certain of whether a class reaches the target.
func dropPossible(c *attackpaths.Class) {
	if classCertainty(*c) == attackpaths.Possible {
		c.Path = nil
	}
	for _, of := range []*attackpaths.Certainty{&c.ClusterAdmin, c.Target} {
		if of != nil && *of == attackpaths.Possible {
			*of = attackpaths.No
		}
	}
}
