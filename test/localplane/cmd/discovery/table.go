package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const header = `# What kube-apiserver serves with all feature gates and API versions on, written by "make discovery":
# RESOURCE[.GROUP][/SUBRESOURCE] SCOPE VERBS MINORS
`

// table has the rows by resource, as in "deployments.apps/scale".
type table map[string]*row

type row struct {
	namespaced bool
	verbs      map[string]bool
	minors     map[int]bool
}

// add adds the resources that one minor serves, in any API version.
func (t table) add(minor int, lists []*metav1.APIResourceList) {
	for _, list := range lists {
		group, _, ok := strings.Cut(list.GroupVersion, "/")
		if !ok {
			group = "" // of the core group, it is the version
		}
		for _, resource := range list.APIResources {
			name, subresource, _ := strings.Cut(resource.Name, "/")
			if group != "" {
				name += "." + group
			}
			if subresource != "" {
				name += "/" + subresource
			}
			r := t[name]
			if r == nil {
				r = &row{verbs: map[string]bool{}, minors: map[int]bool{}}
				t[name] = r
			}
			r.namespaced, r.minors[minor] = resource.Namespaced, true
			for _, verb := range resource.Verbs {
				r.verbs[verb] = true
			}
		}
	}
}

func (t table) lines() []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(t)) {
		r := t[name]
		scope := "cluster"
		if r.namespaced {
			scope = "namespaced"
		}
		verbs := strings.Join(slices.Sorted(maps.Keys(r.verbs)), ",")
		lines = append(lines, strings.Join([]string{name, scope, verbs, ranges(slices.Sorted(maps.Keys(r.minors)))}, " "))
	}
	return lines
}

func (t table) text() string { return header + strings.Join(t.lines(), "\n") + "\n" }

// ranges writes sorted minors: "1.30-1.33,1.36".
func ranges(minors []int) string {
	var parts []string
	for i := 0; i < len(minors); {
		last := i
		for last+1 < len(minors) && minors[last+1] == minors[last]+1 {
			last++
		}
		part := fmt.Sprintf("1.%d", minors[i])
		if last > i {
			part += fmt.Sprintf("-1.%d", minors[last])
		}
		parts = append(parts, part)
		i = last + 1
	}
	return strings.Join(parts, ",")
}

// compare lists how the documents of a minor and its API server differ.
func compare(minor int, documents, served []*metav1.APIResourceList) []string {
	a, b := table{}, table{}
	a.add(minor, documents)
	b.add(minor, served)
	var differences []string
	for _, line := range a.lines() {
		if !slices.Contains(b.lines(), line) {
			differences = append(differences, "only in the documents: "+line)
		}
	}
	for _, line := range b.lines() {
		if !slices.Contains(a.lines(), line) {
			differences = append(differences, "only served: "+line)
		}
	}
	return differences
}
