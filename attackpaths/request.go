package attackpaths

import (
	"cmp"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// table are all kinds of requests, and never changes: the rights of requestKinds, and with each mode of constrained
// impersonation a kind for every request, and one for each verb with which rights can be used then. Those without a mode
// are the requests of the identity that is impersonated.
var table = listKinds()

// requestsInMode is how many kinds of the table each mode has.
var requestsInMode = (len(table) - int(rightCount)) / int(modeCount)

func listKinds() []requestKind {
	all := slices.Clone(requestKinds[:])
	for m := range modeCount {
		all = append(all, requestKind{verbs: standardVerbs, on: m, single: true, whole: true})
		for r := range rightCount {
			k := requestKinds[r]
			if k.beside || k.impersonates() {
				continue
			}
			k.on, k.single, k.of, k.refused = m, true, r, k.refused && m == 0
			for i := range k.verbs {
				k.verbs = requestKinds[r].verbs[i : i+1]
				all = append(all, k)
			}
		}
	}
	return all
}

// request is the request without a mode of which a right `impersonate-on:MODE:VERB` is one.
func (r right) request() right { return rightCount + (r-rightCount)%right(requestsInMode) }

// limit is the part of a kind of request that a rule covers: a namespace, or all if it is empty, and a name.
type limit struct{ namespace, name string }

func (l limit) compare(o limit) int {
	return cmp.Or(cmp.Compare(l.namespace, o.namespace), cmp.Compare(l.name, o.name))
}

// unnamed is the name of requests that have none, where a rule covers only these. No object has
// this name.
const unnamed = "/"

// verbOn is the verb that is allowed on the target of a request while a mode is used.
func (m mode) verbOn(verb string) string {
	if m == 0 {
		return verb
	}
	return "impersonate-on:" + m.String() + ":" + verb
}

// coversWhole reports whether a rule is for every request on objects while a mode is used.
func coversWhole(rule *rbacv1.PolicyRule, m mode) bool {
	if grantsEverything(rule) {
		return true
	}
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
