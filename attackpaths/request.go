package attackpaths

import (
	"cmp"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// request is a kind of request to the API server: a verb of a right. It is a place in requests.
type request uint16

// whole is every request.
const whole request = 0

// requestRow is a row of the table of requests.
type requestRow struct {
	right right
	verb  string
}

// requests is a table and never changes: the requests that identities which are impersonated may make.
var requests = listRequests()

func listRequests() []requestRow {
	rows := []requestRow{whole: {}}
	for r := range rightCount {
		if k := &requestKinds[r]; !k.beside && !r.isPart() && !k.impersonates() {
			for _, verb := range k.verbs {
				rows = append(rows, requestRow{r, verb})
			}
		}
	}
	return rows
}

// modeRight is a request that a rule allows, or a right `impersonate-on:MODE:VERB` if it has a mode.
type modeRight struct {
	mode    mode
	request request
	limit
}

func (o modeRight) compare(p modeRight) int {
	return cmp.Or(cmp.Compare(o.mode, p.mode), cmp.Compare(o.request, p.request), o.limit.compare(p.limit))
}

// and is what two rights to make the same request have in common.
func (o modeRight) and(p modeRight) (limit, bool) {
	l, ok := o.limit.and(p.limit)
	return l, ok && o.request == p.request
}

// limit is the part of a kind of request that a rule covers: a namespace, or all if it is empty, and a name.
type limit struct{ namespace, name string }

func (l limit) compare(o limit) int {
	return cmp.Or(cmp.Compare(l.namespace, o.namespace), cmp.Compare(l.name, o.name))
}

// unnamed is the name of requests that have none, where a rule covers only these. No object has
// this name.
const unnamed = "/"

// requestsIn lists what rules cover of each kind of request, with a mode for the verbs that are
// allowed while it is used.
func requestsIn(rules []rbacv1.PolicyRule, namespaced bool, m mode) []modeRight {
	var all []modeRight
	for i := range rules {
		rule := &rules[i]
		if m != 0 && !namespaced && coversEveryRequest(rule, m) {
			all = append(all, modeRight{mode: m})
		}
		for q := whole + 1; int(q) < len(requests); q++ {
			kind := &requestKinds[requests[q].right]
			if namespaced && !kind.namespaced {
				continue
			}
			for _, name := range kind.namesIn(rule, requests[q].verb, m) {
				all = append(all, modeRight{m, q, limit{name: name}})
			}
		}
	}
	return all
}

// verbOn is the verb that is allowed on the target of a request while a mode is used.
func (m mode) verbOn(verb string) string {
	if m == 0 {
		return verb
	}
	return "impersonate-on:" + m.String() + ":" + verb
}

// coversEveryRequest reports whether a rule covers each request on objects while a mode is used.
func coversEveryRequest(rule *rbacv1.PolicyRule, m mode) bool {
	for _, verb := range standardVerbs {
		if !slices.Contains(rule.Verbs, m.verbOn(verb)) {
			return false
		}
	}
	return len(rule.ResourceNames) == 0 && slices.Contains(rule.APIGroups, "*") && slices.Contains(rule.Resources, "*")
}

// and is what two limits have in common.
func (l limit) and(o limit) (both limit, ok bool) {
	both = l
	if l.namespace == "" {
		both.namespace = o.namespace
	}
	if l.name == "" {
		both.name = o.name
	}
	return both, l.covers(both.namespace, both.name) && o.covers(both.namespace, both.name)
}

// covers reports whether a limit contains the request for an object.
func (l limit) covers(namespace, name string) bool {
	return (l.namespace == "" || l.namespace == namespace) && (l.name == "" || l.name == name)
}

// rightName is the name that a right has whose requests a limit allows.
func (l limit) rightName() string {
	if l.name == unnamed {
		return ""
	}
	return l.name
}
