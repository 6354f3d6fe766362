package command

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/node-authorizer/node-authorizer/verdict"
)

// plainNames are the types whose objects have names of DNS, as the API server requires.
var plainNames = map[string]func(string) []string{
	"pods": validation.IsDNS1123Subdomain, "secrets": validation.IsDNS1123Subdomain, "configmaps": validation.IsDNS1123Subdomain,
	"serviceaccounts": validation.IsDNS1123Subdomain, "persistentvolumeclaims": validation.IsDNS1123Subdomain,
	"persistentvolumes": validation.IsDNS1123Subdomain, "nodes": validation.IsDNS1123Subdomain, "namespaces": validation.IsDNS1123Label,
}

// setName sets the name of a question, and its namespace where the name is NAMESPACE/NAME. Given is the namespace
// of -n; empty if there is none.
func (q *Question) setName(name, given string, all bool) error {
	if inner, rest, ok := strings.Cut(name, "/"); ok && q.Namespaced {
		problems := validation.IsDNS1123Label(inner)
		switch {
		case len(problems) > 0:
			return Usagef("%q: no namespace can be named %q: %s; want TYPE/NAME or TYPE/NAMESPACE/NAME", name, inner, problems[0])
		case all:
			return Usagef("%q names a namespace: leave out -A", name)
		case given != "" && given != inner:
			return Usagef("%q names another namespace than -n %s: leave out one of them", name, given)
		}
		q.Namespace, name = inner, rest
	}
	q.Name = name
	if valid := plainNames[q.Resource]; q.Group == "" && valid != nil && name != "" && name != "*" {
		if problems := valid(name); len(problems) > 0 {
			return Usagef("no object of %s can be named %q: %s", q.Resource, name, problems[0])
		}
	}
	return nil
}

// warnAbsent warns about a namespace or object of a question that a snapshot shows not to exist.
func (s *Session) warnAbsent(a *App, q Question) {
	if !s.ofFiles || !s.State.Complete() {
		return
	}
	unread := map[string]bool{}
	for _, m := range s.State.Missing() {
		unread[m.Resource.String()] = true
	}
	if q.Namespace != "" && len(unread) == 0 {
		if _, found := s.State.ServiceAccount(q.Namespace, "default"); !found {
			var known []string
			for _, account := range s.State.ServiceAccountNames() {
				known = append(known, account.Namespace)
			}
			slices.Sort(known)
			a.Warn("there is no namespace %s in %s: each namespace has a service account default, and this has none%s",
				q.Namespace, s.State.Origin, DidYouMean(q.Namespace, slices.Compact(known)))
			return
		}
	}
	exists := map[string]func() bool{
		"pods":            func() bool { _, found := s.State.Pod(q.Namespace, q.Name); return found },
		"serviceaccounts": func() bool { _, found := s.State.ServiceAccount(q.Namespace, q.Name); return found },
		"persistentvolumeclaims": func() bool {
			_, found := s.State.PersistentVolumeClaim(q.Namespace, q.Name)
			return found
		},
		"persistentvolumes": func() bool { _, found := s.State.PersistentVolume(q.Name); return found },
		"nodes":             func() bool { return s.State.HasNode(q.Name) },
	}[q.Resource]
	made := q.Verb == "create" && q.Subresource == ""
	if exists == nil || q.Group != "" || q.Name == "" || q.Name == "*" || made || unread[q.Resource] || exists() {
		return
	}
	object, near := verdict.Object{Kind: q.kind, Namespace: q.Namespace, Name: q.Name}, ""
	if q.Resource == "nodes" {
		near = DidYouMean(q.Name, s.State.NodeNames())
	}
	a.Warn("%s is not in %s: the answer is about an object of this name%s", object, s.State.Origin, near)
}
