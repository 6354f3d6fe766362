package resources

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// AmbiguousError means that several resources have a short name, and that none of them
// takes precedence.
type AmbiguousError struct {
	Name       string
	Candidates []Resource
}

func (e *AmbiguousError) Error() string {
	names := make([]string, len(e.Candidates))
	for i, r := range e.Candidates {
		names[i] = r.String()
	}
	slices.Sort(names)
	return fmt.Sprintf("resource name %q is ambiguous: it stands for %s; write one of them in full", e.Name, strings.Join(names, " and "))
}

// UnknownError means that no resource has the name.
type UnknownError struct {
	Name string
	// Near are resources with a similar name, the most similar first.
	Near []string
	// Complete is true if the list was discovered from the cluster.
	Complete bool
}

func (e *UnknownError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "unknown resource type %q", e.Name)
	switch {
	case len(e.Near) > 0:
		fmt.Fprintf(&b, "; did you mean %s?", strings.Join(e.Near, " or "))
	case e.Complete:
		b.WriteString("; kubectl api-resources lists what the cluster serves")
	default:
		b.WriteString("; write a custom resource with its group, for example widgets.example.com")
	}
	return b.String()
}

// near returns up to three resources whose plural, singular or short name is similar to the
// given name.
func (m *Mapper) near(gr schema.GroupResource) []string {
	var plural []string
	names := map[string]string{}
	for _, r := range m.resources {
		full := r.Name
		if gr.Group != "" {
			full = r.String()
		}
		for _, name := range append([]string{r.Name, r.Singular}, r.ShortNames...) {
			if _, taken := names[name]; !taken {
				names[name] = full
				plural = append(plural, name)
			}
		}
	}
	var near []string
	for _, name := range Near(gr.Resource, plural, 3) {
		if full := names[name]; !slices.Contains(near, full) {
			near = append(near, full)
		}
	}
	return near
}

// Near returns up to limit candidates that are similar to name, the most similar first. A
// candidate is similar if its edit distance is at most a quarter of the name's length, or if
// name is a prefix of it, whatever the case of letters.
func Near(name string, candidates []string, limit int) []string {
	type scored struct {
		text     string
		distance int
	}
	name = strings.ToLower(name)
	most := max(1, len(name)/4)
	var found []scored
	for _, c := range candidates {
		lower := strings.ToLower(c)
		d := editDistance(name, lower)
		if len(name) >= 3 && strings.HasPrefix(lower, name) {
			d = min(d, most)
		}
		if d <= most && c != "" {
			found = append(found, scored{c, d})
		}
	}
	slices.SortStableFunc(found, func(a, b scored) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), strings.Compare(a.text, b.text))
	})
	var near []string
	for _, s := range found[:min(limit, len(found))] {
		if s.distance == found[0].distance {
			near = append(near, s.text)
		}
	}
	return near
}

// editDistance returns the number of insertions, deletions, substitutions and swaps of
// adjacent characters that turn a into b.
func editDistance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
