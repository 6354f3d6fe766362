package source

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodescope"
	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// State is the part of a cluster's state that node authorization needs. A State that
// comes from [Watch] changes with the cluster; its methods, graph and policy may be
// used concurrently at any time.
type State struct {
	// Graph relates nodes to objects.
	Graph *graph.Graph
	// RBAC is the cluster's roles and bindings; it is never nil.
	// [State.RBACLoaded] says whether any could be read.
	RBAC *rbac.Policy
	// Version is the server's minor version. It is 0 when it is unknown, as for plain
	// manifests, or not supported.
	Version kubeversion.Minor
	// ServerVersion is the version that the server or snapshot states, "v1.36.3";
	// empty when unknown.
	ServerVersion string
	// Resources are the resources that the cluster serves, sorted by group and name;
	// nil when unknown, as for plain manifests.
	Resources []APIResource
	// Inventory is the further state that attack paths need; nil unless it was asked for.
	Inventory *inventory.Inventory
	// Origin says where the state is from, for people: "cluster
	// https://10.0.0.1:6443", "file cluster.yaml and 2 more".
	Origin string

	// aggregation is nil if it has to be made from the objects again.
	aggregation atomic.Pointer[nodescope.Aggregation]

	mu      sync.RWMutex
	objects objects
	facts   facts
	// fromCluster is true when nothing is from manifests.
	fromCluster bool
	// retained objects make a snapshot; nil unless they were asked for.
	retained  *retained
	listeners listeners
	// parts reads parts of a cluster on demand; nil for a State that is read as a whole.
	parts *parts
	// overlay is set when changes were applied.
	overlay *overlay
	// places are the places of objects in manifests, if they were asked for.
	places map[verdict.Object]place
	// templates are objects of files that pods are made from.
	templates []addition
}

// APIResource is a resource that a cluster serves.
type APIResource struct {
	// Group is the API group; empty for the core group.
	Group string `json:"group,omitempty"`
	// Versions serve the resource, the preferred one first.
	Versions []string `json:"versions"`
	// Name is the plural name used in requests: "pods".
	Name       string   `json:"name"`
	Singular   string   `json:"singular,omitempty"`
	Kind       string   `json:"kind"`
	ShortNames []string `json:"shortNames,omitempty"`
	Namespaced bool     `json:"namespaced,omitempty"`
}

// Missing is a resource that could not be read, so that answers may be
// incomplete.
type Missing struct {
	// Resource that could not be read: resourceslices.resource.k8s.io.
	Resource schema.GroupResource
	// Reason is one line for people, with what to do about it.
	Reason string
	// Kind is the kind of the resource's objects, a set of one.
	Kind Kinds
}

// ForInventory reports whether only attack paths need what could not be read.
func (m Missing) ForInventory() bool {
	return m.Kind&kindsWhere(func(i *kindInfo) bool { return i.inventory }) != 0
}

// facts describe how the state was read.
type facts struct {
	missing  map[kind]Missing
	skipped  map[string]int
	warnings warnings
	// complete is true when the state holds all objects of its source.
	complete bool
	// rbacRead has a bit for each kind of RBAC objects that could be read.
	rbacRead uint32
}

func newState() *State {
	return &State{
		Graph:   graph.New(),
		RBAC:    rbac.NewPolicy(),
		objects: newObjects(),
		facts:   facts{missing: map[kind]Missing{}, skipped: map[string]int{}},
	}
}

// RBACLoaded reports whether roles and bindings were read: the state has some, or all
// four kinds were readable and the cluster has none.
func (s *State) RBACLoaded() bool {
	if s.parts != nil && !s.OfFile() && s.parts.hasRBAC() {
		return true
	}
	if s.overlay != nil && s.overlay.withoutRBAC {
		return false // but for those that were added
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := true
	for k := range kindCount {
		if k.describe().rbac {
			if s.objects.count(k) > 0 {
				return true
			}
			all = all && s.facts.rbacRead&(1<<k) != 0
		}
	}
	return all
}

// Missing lists what could not be read, sorted by resource.
func (s *State) Missing() []Missing {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(s.facts.missing) == 0 {
		return nil // the usual case; the server calls this for every refusal
	}
	return slices.SortedFunc(maps.Values(s.facts.missing), func(a, b Missing) int {
		return strings.Compare(a.Resource.String(), b.Resource.String())
	})
}

// Counts returns how many objects of each kind the state holds. Kinds without
// objects are left out.
func (s *State) Counts() map[string]int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	counts := map[string]int{}
	for k := range kindCount {
		if n := s.objects.count(k); n > 0 {
			counts[k.String()] = n
		}
	}
	return counts
}

// Skipped returns how many objects of each other kind the files held, by kind
// and group: "Secret", "Deployment.apps".
func (s *State) Skipped() map[string]int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return maps.Clone(s.facts.skipped)
}

// Warnings lists warnings about the input, one line each, in the order of the input.
func (s *State) Warnings() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.facts.warnings.lines()
}

func (s *State) warn(class, line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.facts.warnings.add(class, line)
}

// markMissing records that a kind could not be read. It reports whether that is new.
func (s *State) markMissing(k kind, reason string) (Missing, bool) {
	info := k.describe()
	m := Missing{Resource: info.groupResource(), Reason: reason, Kind: 1 << k}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.facts.missing[k]
	s.facts.missing[k] = m
	s.aggregation.Store(nil)
	return m, !known
}

// clearMissing records that a kind can be read. It reports whether that is new.
func (s *State) clearMissing(k kind) (Missing, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, known := s.facts.missing[k]
	delete(s.facts.missing, k)
	s.aggregation.Store(nil)
	return m, known
}

// place is where an object is in a file.
type place struct {
	file string
	line int
}

func (s *State) notePlace(o verdict.Object, file string, line int) {
	if s.places == nil {
		s.places = map[verdict.Object]place{}
	}
	s.places[o] = place{file, line}
}

// Place returns where an object is in the manifests that the state was read from; empty if it is in none,
// or if places were not asked for.
func (s *State) Place(o verdict.Object) (file string, line int) {
	p := s.places[o]
	return p.file, p.line
}

// warningLimit is how many warnings of one class are kept; further ones are counted.
const warningLimit = 10

// warnings collects warnings. Input can repeat the same problem a million times, so
// each class of warnings is limited to warningLimit lines.
type warnings struct {
	classes []*warningClass
}

type warningClass struct {
	name  string // what the class counts: "objects given twice"
	lines []string
	total int
}

func (w *warnings) add(class, line string) {
	var c *warningClass
	for _, known := range w.classes {
		if known.name == class {
			c = known
		}
	}
	if c == nil {
		c = &warningClass{name: class}
		w.classes = append(w.classes, c)
	}
	c.total++
	if len(c.lines) < warningLimit {
		c.lines = append(c.lines, line)
	}
}

func (w *warnings) lines() []string {
	var lines []string
	for _, c := range w.classes {
		lines = append(lines, c.lines...)
		if more := c.total - len(c.lines); more > 0 {
			lines = append(lines, fmt.Sprintf("and %d more %s", more, c.name))
		}
	}
	return lines
}
