// Package resources resolves resource names from the command line to API resources, as
// kubectl does: plural and singular names, short names, and a group suffix ("po", "pod",
// "deploy.apps", "leases.coordination.k8s.io", "pods.v1."). Case does not matter.
//
// Offline it uses a table of Kubernetes' built-in resources. For a cluster it uses what the
// cluster's discovery returns.
package resources

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Any is the resource name that stands for every resource in RBAC rules.
const Any = "*"

// Resource is one kind of object that an API server serves under a group.
type Resource struct {
	// Group is the API group; empty for the core group.
	Group string
	// Versions are the versions in which it is served, the preferred one first.
	Versions []string
	// Name is the plural, lower-case name used in requests: "pods".
	Name string
	// Singular is the lower-case singular name: "pod".
	Singular string
	// Kind is the object's kind: "Pod".
	Kind string
	// ShortNames are the short names that kubectl accepts: "po".
	ShortNames []string
	// Namespaced is true for resources whose objects live in a namespace.
	Namespaced bool
}

// String returns the name with its group: "pods", "leases.coordination.k8s.io".
func (r Resource) String() string {
	return schema.GroupResource{Group: r.Group, Resource: r.Name}.String()
}

// groupResource identifies the resource in any version.
func (r Resource) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Name}
}

// Mapper resolves names among a fixed list of resources. It is safe for
// concurrent use.
type Mapper struct {
	resources []Resource
	builtIn   map[schema.GroupResource]bool
	// complete is true if the list has every resource of the cluster.
	complete bool
}

// Offline returns a mapper over the built-in resources. The cluster may serve others: a
// fully qualified name in an unknown group resolves to itself.
func Offline() *Mapper {
	return newMapper(BuiltIn(), false)
}

// Discovered returns a mapper over everything that one cluster serves. Built-in
// resources come first, in their own order, then the others in the order given.
func Discovered(all []Resource) *Mapper {
	rank := map[schema.GroupResource]int{}
	builtIn := BuiltIn()
	for i, r := range builtIn {
		rank[r.groupResource()] = i - len(builtIn)
	}
	ordered := slices.Clone(all)
	slices.SortStableFunc(ordered, func(a, b Resource) int {
		return rank[a.groupResource()] - rank[b.groupResource()]
	})
	return newMapper(ordered, true)
}

func newMapper(all []Resource, complete bool) *Mapper {
	m := &Mapper{resources: all, complete: complete, builtIn: map[schema.GroupResource]bool{}}
	for _, r := range BuiltIn() {
		m.builtIn[r.groupResource()] = true
	}
	return m
}

// Resolution is the result of resolving a name.
type Resolution struct {
	Resource
	// Known is false for a name that resolves to itself: the wildcard, users and groups
	// (which exist only in RBAC rules), and names in a group that an offline mapper does
	// not know.
	Known bool
	// Others are further resources with that name. kubectl ignores them too.
	Others []Resource
}

// Resolve resolves a name. Its errors are *AmbiguousError and *UnknownError.
//
// If several groups serve a plural or singular name, the first group takes precedence, as in
// kubectl. The same holds for a short name of a built-in resource. A short name that only
// custom resources share is ambiguous.
func (m *Mapper) Resolve(arg string) (Resolution, error) {
	lower := strings.ToLower(arg)
	versioned, plain := schema.ParseResourceArg(lower)
	if taken, ok := asTyped(plain); ok {
		return Resolution{Resource: taken}, nil
	}
	for _, match := range []func(Resource, string) bool{hasName, hasShortName} {
		found := m.matching(match, versioned, plain)
		if len(found) == 0 {
			continue
		}
		if len(found) > 1 && !m.firstIsBuiltIn(found) && hasShortName(found[0], shortOf(versioned, plain)) {
			return Resolution{}, &AmbiguousError{Name: arg, Candidates: found}
		}
		return Resolution{Resource: found[0], Known: true, Others: m.foreign(found[1:])}, nil
	}
	if plain.Group != "" && !m.complete && strings.Contains(plain.Group, ".") && !m.servesGroup(plain.Group) {
		return Resolution{Resource: Resource{
			Group: plain.Group, Name: plain.Resource, Singular: plain.Resource, Kind: plain.Resource, Namespaced: true,
		}}, nil
	}
	return Resolution{}, &UnknownError{Name: arg, Near: m.near(plain), Complete: m.complete}
}

// asTyped returns the resources that RBAC rules name and that no API server serves.
func asTyped(gr schema.GroupResource) (Resource, bool) {
	if gr.Group != "" {
		return Resource{}, false
	}
	switch gr.Resource {
	case Any, "users", "groups":
		return Resource{Name: gr.Resource, Singular: gr.Resource, Kind: gr.Resource, Namespaced: gr.Resource == Any}, true
	}
	return Resource{}, false
}

// matching returns the resources that match a name. If no group equals the suffix, groups
// that begin with it match ("deploy.app" finds apps, as in kubectl).
func (m *Mapper) matching(
	match func(Resource, string) bool, versioned *schema.GroupVersionResource, plain schema.GroupResource,
) []Resource {
	if versioned != nil {
		found := m.where(func(r Resource) bool {
			return match(r, versioned.Resource) && r.Group == versioned.Group && slices.Contains(r.Versions, versioned.Version)
		})
		if len(found) > 0 {
			return found
		}
	}
	found := m.where(func(r Resource) bool {
		return match(r, plain.Resource) && (plain.Group == "" || r.Group == plain.Group)
	})
	if len(found) > 0 || plain.Group == "" {
		return found
	}
	return m.where(func(r Resource) bool {
		return match(r, plain.Resource) && strings.HasPrefix(r.Group, plain.Group)
	})
}

func (m *Mapper) where(keep func(Resource) bool) []Resource {
	var found []Resource
	for _, r := range m.resources {
		if keep(r) {
			found = append(found, r)
		}
	}
	return found
}

func hasName(r Resource, name string) bool {
	return r.Name == name || r.Singular == name || strings.EqualFold(r.Kind, name)
}

func hasShortName(r Resource, name string) bool {
	return slices.Contains(r.ShortNames, name)
}

func shortOf(versioned *schema.GroupVersionResource, plain schema.GroupResource) string {
	if versioned != nil {
		return versioned.Resource
	}
	return plain.Resource
}

func (m *Mapper) firstIsBuiltIn(found []Resource) bool {
	return m.builtIn[found[0].groupResource()]
}

// foreign drops built-in resources: events exist in two groups, but both serve the same
// objects.
func (m *Mapper) foreign(rest []Resource) []Resource {
	return slices.DeleteFunc(slices.Clone(rest), func(r Resource) bool { return m.builtIn[r.groupResource()] })
}

func (m *Mapper) servesGroup(group string) bool {
	return slices.ContainsFunc(m.resources, func(r Resource) bool { return r.Group == group })
}

// Names returns the names of all resources, sorted: plural names, with the group if the
// plain name resolves to another resource.
func (m *Mapper) Names() []string {
	seen := map[string]bool{}
	var names []string
	for _, r := range m.resources {
		name := r.Name
		if seen[name] {
			name = r.String()
		}
		seen[name] = true
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
