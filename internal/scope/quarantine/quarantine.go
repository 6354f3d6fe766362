package quarantine

import (
	"cmp"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Set is a set of Quarantines, by node and by credential. It does not change. A nil Set is empty.
type Set struct {
	byNode, byCredential map[string][]*entry
}

// entry is one Quarantine.
type entry struct {
	object *v1alpha1.Quarantine
	// until is when it ends; zero for never.
	until time.Time
	rules []rule
}

type rule struct {
	names      rbacv1.PolicyRule
	namespaces []string
	// accounts are the accounts that the rule is for; none means the node's own credential.
	accounts []v1alpha1.Subject
}

// Limit limits how many nodes are quarantined at the same time.
type Limit struct {
	// Nodes is how many nodes may be quarantined.
	Nodes int
	// Kept is how many may stay quarantined, if the servers have accepted their Quarantines. Less than Nodes means
	// Nodes. A greater number keeps Quarantines in force although the cluster has lost nodes.
	Kept int
}

// NewSet returns the set of some Quarantines that are valid. Which of them are in force depends only on the
// objects, the limit and the time, so that servers that know the same objects agree: first those that the servers
// have accepted, by the condition Accepted in their status, up to limit.Kept nodes; then the others, up to
// limit.Nodes. In both, the oldest come first; of two created at the same time, the one whose name comes first.
// The rest is returned as excess. Expired ones at the given time are left out, and count for nothing. The objects
// must not be changed afterwards.
//
// Conditions that say the result do not change it.
func NewSet(objects []*v1alpha1.Quarantine, limit Limit, now time.Time) (s *Set, excess []*v1alpha1.Quarantine) {
	s = &Set{byNode: map[string][]*entry{}, byCredential: map[string][]*entry{}}
	objects = slices.DeleteFunc(slices.Clone(objects), func(q *v1alpha1.Quarantine) bool {
		end := q.Spec.ExpirationTime
		return end != nil && !now.Before(end.Time)
	})
	slices.SortFunc(objects, older)
	nodes := limit.choose(objects)
	for _, object := range objects {
		switch node, credential := object.Spec.Node, object.Spec.Credential; {
		case node == "":
			s.byCredential[credential] = append(s.byCredential[credential], newEntry(object))
		case nodes[node]:
			s.byNode[node] = append(s.byNode[node], newEntry(object))
		default:
			excess = append(excess, object)
		}
	}
	return s, excess
}

// choose returns the nodes that are quarantined, of objects by age that have not expired.
func (l Limit) choose(objects []*v1alpha1.Quarantine) map[string]bool {
	nodes := map[string]bool{}
	for _, pass := range []struct {
		accepted bool
		room     int
	}{{true, max(l.Nodes, l.Kept)}, {false, l.Nodes}} {
		for _, object := range objects {
			if node := object.Spec.Node; node != "" && object.Accepted() == pass.accepted && len(nodes) < pass.room {
				nodes[node] = true
			}
		}
	}
	return nodes
}

func older(a, b *v1alpha1.Quarantine) int {
	return cmp.Or(
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name),
		strings.Compare(string(a.UID), string(b.UID)),
	)
}

func newEntry(object *v1alpha1.Quarantine) *entry {
	e := &entry{object: object}
	if object.Spec.ExpirationTime != nil {
		e.until = object.Spec.ExpirationTime.Time
	}
	for _, r := range object.Spec.Allow {
		e.rules = append(e.rules, rule{
			names: rbacv1.PolicyRule{
				APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames, Verbs: r.Verbs,
				NonResourceURLs: r.NonResourceURLs,
			},
			namespaces: r.Namespaces, accounts: r.ServiceAccounts,
		})
	}
	return e
}

func (e *entry) ended(now time.Time) bool { return !e.until.IsZero() && !now.Before(e.until) }

// Len returns the number of quarantined nodes and of quarantined credentials, including those whose
// Quarantines have expired since.
func (s *Set) Len() (nodes, credentials int) {
	if s == nil {
		return 0, 0
	}
	return len(s.byNode), len(s.byCredential)
}

// Empty reports whether the set has no Quarantine, so that it refuses nothing.
func (s *Set) Empty() bool { return s == nil || len(s.byNode)+len(s.byCredential) == 0 }

// Node returns the oldest Quarantine of a node that holds at a time.
func (s *Set) Node(name string, now time.Time) (*v1alpha1.Quarantine, bool) {
	if s == nil {
		return nil, false
	}
	return first(s.byNode[name], now)
}

// Credential returns the oldest Quarantine of a credential that holds at a time.
func (s *Set) Credential(id string, now time.Time) (*v1alpha1.Quarantine, bool) {
	if s == nil {
		return nil, false
	}
	return first(s.byCredential[id], now)
}

func first(entries []*entry, now time.Time) (*v1alpha1.Quarantine, bool) {
	for _, e := range entries {
		if !e.ended(now) {
			return e.object, true
		}
	}
	return nil, false
}

// Answer is the result of Decide.
type Answer struct {
	// Decision is Deny, or NoOpinion.
	Decision verdict.Decision `json:"decision"`
	Code     verdict.Code     `json:"code"`
	// Node is the node of the user or of its token; empty if there is none.
	Node string `json:"node,omitempty"`
	// Quarantine is the name of the Quarantine that refuses, or whose rule let the request pass.
	Quarantine string `json:"quarantine,omitempty"`
}

// Decide decides one request at a time.
func (s *Set) Decide(req *access.Request, now time.Time) Answer {
	if s.Empty() {
		return Answer{Decision: verdict.NoOpinion, Code: NotQuarantined}
	}
	answer := Answer{Decision: verdict.NoOpinion, Code: NotQuarantined}
	for _, id := range req.Extra[nodeidentity.ExtraCredential] {
		answer.add(s.byCredential[id], CredentialQuarantined, req, now)
	}
	if node, isNode := strings.CutPrefix(req.User, nodeidentity.UserPrefix); isNode { // in any groups
		answer.Node = node
		answer.add(s.byNode[answer.Node], NodeQuarantined, req, now)
	}
	// All values count: a user that names a quarantined node is refused.
	for _, node := range req.Extra[nodeidentity.ExtraNode] {
		answer.Node = node
		answer.add(s.byNode[node], NodeQuarantined, req, now)
	}
	return answer
}

// add lets the Quarantines decide. A request must pass all of them.
func (a *Answer) add(entries []*entry, code verdict.Code, req *access.Request, now time.Time) {
	for _, e := range entries {
		switch {
		case e.ended(now), a.Decision == verdict.Deny:
		case e.allows(req):
			a.Code, a.Quarantine = QuarantinePassed, e.object.Name
		default:
			a.Decision, a.Code, a.Quarantine = verdict.Deny, code, e.object.Name
		}
	}
}

func (e *entry) allows(req *access.Request) bool {
	for i := range e.rules {
		if e.rules[i].covers(req) {
			return true
		}
	}
	return false
}

func (r *rule) covers(req *access.Request) bool {
	if len(r.namespaces) > 0 && !slices.Contains(r.namespaces, req.Namespace) {
		return false
	}
	return r.isFor(req) && rbac.RuleAllows(&r.names, req)
}

// isFor reports whether the rule is for the user of a request.
func (r *rule) isFor(req *access.Request) bool {
	namespace, name, isAccount := nodeidentity.ServiceAccount(req.User)
	if len(r.accounts) == 0 {
		return !isAccount
	}
	return isAccount && slices.ContainsFunc(r.accounts, func(a v1alpha1.Subject) bool {
		return a.Namespace == namespace && (a.Name == "" || a.Name == name)
	})
}
