package attackpaths

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// request is a kind of request to the API server: a verb of a right. It is a place in requests.
type request uint8

// whole is every request.
const whole request = 0

// requestRow is a row of the table of requests.
type requestRow struct {
	right right
	verb  string
}

// requests is a table and never changes.
var requests = listRequests()

func listRequests() []requestRow {
	rows := []requestRow{whole: {}}
	for r := range rightCount {
		if r.checkedBeside() || r.isPart() || requestKinds[r].verbs[0] == "impersonate" || r.mode() != 0 {
			continue
		}
		for _, verb := range requestKinds[r].verbs {
			rows = append(rows, requestRow{r, verb})
		}
	}
	return rows
}

// checkedBeside reports whether the API server or a controller checks a right of the one who makes
// another request, so that no request has its verb.
func (r right) checkedBeside() bool {
	switch r {
	case bindClusterRoles, bindRoles, escalateClusterRoles, escalateRoles, approveSigners, signSigners, autoApprove,
		requestAudience, requestOtherAudience:
		return true
	}
	return false
}

// mode is the mode of constrained impersonation in which a right lets an identity be impersonated.
func (r right) mode() mode {
	switch r {
	case impersonateAssociatedNode:
		return associatedNode
	case impersonateArbitraryNodes:
		return arbitraryNode
	case impersonateAccountsOnly:
		return serviceAccountMode
	case impersonateUserInfo, impersonateGroupInfo:
		return userInfoMode
	}
	return 0
}

// limit is the part of a kind of request that a rule covers: a namespace, or all if it is empty, and
// a name.
type limit struct {
	request         request
	namespace, name string
}

// unnamed is the name of requests that have none, where a rule covers only these. No object has
// this name.
const unnamed = "/"

// limitsOf lists what rules cover of each kind of request, with a mode for the verbs that are
// allowed while it is used.
func limitsOf(rules []rbacv1.PolicyRule, namespaced bool, m mode) []limit {
	var all []limit
	for i := range rules {
		rule := &rules[i]
		if m != 0 && !namespaced && coversEveryRequest(rule, m) {
			all = append(all, limit{request: whole})
		}
		for q := whole + 1; int(q) < len(requests); q++ {
			kind := &requestKinds[requests[q].right]
			if namespaced && !kind.namespaced {
				continue
			}
			for _, name := range coveredNames(rule, kind, requests[q].verb, m) {
				all = append(all, limit{request: q, name: name})
			}
		}
	}
	return all
}

// coveredNames lists the names for which a rule covers a request; the empty name is all.
func coveredNames(rule *rbacv1.PolicyRule, kind *requestKind, verb string, m mode) []string {
	req := access.Request{
		ResourceRequest: true, Verb: m.verbOn(verb), Group: kind.group, Resource: kind.resource, Subresource: kind.subresource,
	}
	if len(rule.ResourceNames) == 0 {
		if rbac.RuleAllows(rule, &req) {
			return []string{""}
		}
		return nil
	}
	var names []string
	without, with := kind.byName([]string{verb})
	if len(without) > 0 && rbac.RuleAllows(rule, &req) {
		names = append(names, unnamed)
	}
	for _, name := range rule.ResourceNames {
		req.Name = name
		if len(with) > 0 && name != "" && name != unnamed && rbac.RuleAllows(rule, &req) {
			names = append(names, name)
		}
	}
	return names
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
	for _, verb := range [...]string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"} {
		if !slices.Contains(rule.Verbs, m.verbOn(verb)) {
			return false
		}
	}
	return len(rule.ResourceNames) == 0 && slices.Contains(rule.APIGroups, "*") && slices.Contains(rule.Resources, "*")
}

// and is what two limits of the same kind of request have in common.
func (l limit) and(o limit) (both limit, ok bool) {
	both = l
	if l.namespace == "" {
		both.namespace = o.namespace
	}
	if l.name == "" {
		both.name = o.name
	}
	ok = l.request == o.request && (l.namespace == "" || o.namespace == "" || l.namespace == o.namespace) &&
		(l.name == "" || o.name == "" || l.name == o.name)
	return both, ok
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
