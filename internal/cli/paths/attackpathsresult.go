package paths

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/internal/admissionpolicy"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// AttackPathsResult has the paths from one start.
type AttackPathsResult struct {
	attackpaths.Result
	// Missing is the state that could not be read, or that files lack: more may be reached.
	Missing []command.Missing `json:"missing,omitempty"`
	// State is the cluster state that was searched.
	State command.StateInfo `json:"state"`
	// LeftOut is how many holdings are possible, and left out because only what is certain was asked for.
	LeftOut int `json:"leftOut,omitempty"`

	maxPaths int
	// nodes is how many nodes a class has of which this is one.
	nodes int
	// custom are the techniques that the user adds.
	custom      []attackpaths.CustomTechnique
	certainOnly bool
	strict      bool
}

// AttackPathsResults are the results of several starts.
type AttackPathsResults struct {
	// Results are in the order of the starts.
	Results []AttackPathsResult `json:"results"`
	// State is the cluster state that was searched.
	State command.StateInfo `json:"state"`

	custom      []attackpaths.CustomTechnique
	certainOnly bool
}

// AttackPathsClasses are the nodes grouped by the objects that they reach.
type AttackPathsClasses struct {
	// Classes are nodes that reach the same; each node is in one.
	Classes []attackpaths.Class `json:"classes"`
	// Nodes is how many nodes there are, without the target.
	Nodes int `json:"nodes"`
	// Target is what --to names: the paths of the classes lead to it, or to cluster-admin, which owns it.
	Target *attackpaths.Holding `json:"target,omitempty"`
	// LeftOut is how many nodes possibly reach the target, which is left out because only what is certain
	// was asked for.
	LeftOut int `json:"leftOut,omitempty"`
	// Missing is the state that could not be read, or that files lack: more may be reached.
	Missing []command.Missing `json:"missing,omitempty"`
	// WhatToChange is set if it was asked for.
	WhatToChange *attackpaths.Advice `json:"whatToChange,omitempty"`
	// State is the cluster state that was searched.
	State command.StateInfo `json:"state"`

	custom      []attackpaths.CustomTechnique
	certainOnly bool
	// certainCells is true if the overview leaves out what is only possible.
	certainCells bool
	// overview counts the objects that the classes reach in each namespace; only a page shows it.
	overview *attackpaths.Overview
}

// maxOverview is for how many nodes times service accounts and secrets an overview lists what is only
// possible: often every node may get every pod.
const maxOverview = 50_000_000

func (r *AttackPathsResult) status() int {
	switch {
	case r.certainty() != attackpaths.No:
		return command.StatusDenied
	case len(r.Missing) > 0, r.strict && len(r.NotFollowed) > 0:
		return command.StatusUndecided
	}
	return command.StatusAllowed
}

func (AttackPathsResult) DocumentKind() string { return "AttackPaths" }

func (AttackPathsResults) DocumentKind() string { return "AttackPathsList" }

func (AttackPathsClasses) DocumentKind() string { return "AttackPathsOfNodes" }

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

func AttackGraph(s *command.Session, f *AttackPathsFlags) (*attackpaths.Graph, error) {
	return attackpaths.New(attackCluster(s, f))
}

// attackCluster is the state as attack paths need it.
func attackCluster(s *command.Session, f *AttackPathsFlags) *attackpaths.Cluster {
	c := &attackpaths.Cluster{
		Inventory: s.State.Inventory, Relations: s.State.Graph, RBAC: s.State.RBAC, Features: s.Features,
		Audiences: func(namespace, name string) ([]string, bool) { return audiencesOfPod(s, namespace, name) },
		EKS:       inventory.EKSVersion(s.State.ServerVersion) || s.State.Inventory.EKS(), Serves: serves(s),
		Custom: f.custom, Policies: admissionpolicy.New(),
	}
	if s.Scopes != nil {
		c.NodeScopes = s.Scopes.Policy()
	}
	for _, start := range f.starts {
		if start.Kind == attackpaths.User {
			c.Users = append(c.Users, attackpaths.Identity{Name: start.Name, Groups: f.groups})
		}
	}
	return c
}

// audiencesOfPod lists the audiences that a pod's volumes of CSI drivers need. The inventory has
// the audiences of its projected volumes.
func audiencesOfPod(s *command.Session, namespace, name string) ([]string, bool) {
	pod, ok := s.State.Pod(namespace, name)
	if !ok {
		return nil, true
	}
	pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Projected != nil })
	return s.Restriction.Audiences(pod)
}

func serves(s *command.Session) func(group, resource string) bool {
	if s.State.Resources == nil {
		return nil
	}
	served := map[[2]string]bool{}
	for _, r := range s.State.Resources {
		served[[2]string{r.Group, r.Name}] = true
	}
	return func(group, resource string) bool { return served[[2]string{group, resource}] }
}
