package rbac

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/access"
)

// RuleAllows reports whether the rule covers the request, regardless of user and
// namespace.
func RuleAllows(rule *rbacv1.PolicyRule, req *access.Request) bool {
	return mismatch(rule, req) == 0
}

// Mismatch is the set of a rule's parts that keep it from covering a request.
type Mismatch uint8

// The parts of a rule. A rule for resources never covers a non-resource request, and
// vice versa; it then differs in the part that it lacks.
const (
	VerbMismatch Mismatch = 1 << iota
	APIGroupMismatch
	ResourceMismatch
	ResourceNameMismatch
	NonResourceURLMismatch
)

// mismatchParts gives each part its name and its weight in [Mismatch.nearness].
var mismatchParts = [...]struct {
	part   Mismatch
	name   string
	weight int
}{
	{VerbMismatch, "verb", 2},
	{APIGroupMismatch, "API group", 8},
	{ResourceMismatch, "resource", 4},
	{ResourceNameMismatch, "resource name", 1},
	{NonResourceURLMismatch, "non-resource URL", 4},
}

// String names the parts: "verb, resource name". It is empty for none.
func (m Mismatch) String() string {
	var names []string
	for _, p := range mismatchParts {
		if m&p.part != 0 {
			names = append(names, p.name)
		}
	}
	return strings.Join(names, ", ")
}

// nearness orders mismatches by how close the rule comes; less is closer. The
// resource weighs more than verb and name: the wrong name or verb on the right
// resource is closer than the right verb on another resource.
func (m Mismatch) nearness() int {
	n := 0
	for _, p := range mismatchParts {
		if m&p.part != 0 {
			n += p.weight
		}
	}
	return n
}

func mismatch(rule *rbacv1.PolicyRule, req *access.Request) Mismatch {
	var m Mismatch
	if !containsOrAll(rule.Verbs, req.Verb) {
		m |= VerbMismatch
	}
	if !req.ResourceRequest {
		if !coversURL(rule.NonResourceURLs, req.Path) {
			m |= NonResourceURLMismatch
		}
		return m
	}
	if !containsOrAll(rule.APIGroups, req.Group) {
		m |= APIGroupMismatch
	}
	if !coversResource(rule.Resources, req.Resource, req.Subresource) {
		m |= ResourceMismatch
	}
	if len(rule.ResourceNames) > 0 && !contains(rule.ResourceNames, req.Name) {
		m |= ResourceNameMismatch
	}
	return m
}

func contains(list []string, want string) bool {
	for _, s := range list {
		if s == want {
			return true
		}
	}
	return false
}

func containsOrAll(list []string, want string) bool {
	for _, s := range list {
		if s == "*" || s == want {
			return true
		}
	}
	return false
}

// coversResource compares with "resource/subresource" without building it: this
// runs for every rule of every binding of a user.
func coversResource(patterns []string, resource, subresource string) bool {
	for _, pattern := range patterns {
		if pattern == "*" {
			return true
		}
		if subresource == "" {
			if pattern == resource {
				return true
			}
			continue
		}
		if joins(pattern, resource, subresource) || joins(pattern, "*", subresource) {
			return true
		}
	}
	return false
}

// joins reports whether s is left + "/" + right.
func joins(s, left, right string) bool {
	return len(s) == len(left)+1+len(right) &&
		s[:len(left)] == left && s[len(left)] == '/' && s[len(left)+1:] == right
}

func coversURL(patterns []string, path string) bool {
	for _, pattern := range patterns {
		if pattern == path {
			return true
		}
		// All trailing stars are removed, so "/logs/**" is the prefix "/logs/", and
		// "*" is the empty prefix, which covers everything.
		if strings.HasSuffix(pattern, "*") && strings.HasPrefix(path, strings.TrimRight(pattern, "*")) {
			return true
		}
	}
	return false
}
