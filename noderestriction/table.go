package noderestriction

import (
	"strings"

	"github.com/node-authorizer/node-authorizer/kubeversion"
)

// operations is a set of operations.
type operations uint8

const (
	onCreate operations = 1 << iota
	onUpdate
	onDelete

	onAny = onCreate | onUpdate | onDelete
)

// operationOf returns the set of one operation, empty for unknown ones.
func operationOf(o Operation) operations {
	switch o {
	case Create:
		return onCreate
	case Update:
		return onUpdate
	case Delete:
		return onDelete
	}
	return 0
}

// String names the operations of the set: "create, update"; "write" for all.
func (o operations) String() string {
	if o == onAny {
		return "write"
	}
	var names []string
	for _, known := range []Operation{Create, Update, Delete} {
		if o&operationOf(known) != 0 {
			names = append(names, strings.ToLower(string(known)))
		}
	}
	return strings.Join(names, ", ")
}

// inputs is a set of inputs of a check: parts of the request, some of which may be
// open, and results of earlier checks of the rule.
type inputs uint8

const (
	theObject inputs = 1 << iota
	theOldObject
	theName
	theNamespace
	thePod
	theCertificate
)

// requirement is what a rule or a check requires of the cluster; nil requires
// nothing.
type requirement func(kubeversion.Features) bool

func (r requirement) holds(f kubeversion.Features) bool { return r == nil || r(f) }

// check is one requirement of a rule.
type check struct {
	// says is what must hold, for people.
	says string
	// reads are the inputs of the check.
	reads inputs
	// holds returns nil if the check passes. Checks may rely on earlier checks of
	// their rule.
	holds func(*question) *refusal
	// instead decides the check if an object that it reads is open; nil if only the
	// object can decide it.
	instead *alternative
	// ownName is true for a check that only passes for the node's own name.
	ownName bool
	when    requirement
}

// alternative decides a check without the objects that it reads.
type alternative struct {
	reads inputs
	// holds is as in check. known is false if the state does not decide it.
	holds func(*question) (r *refusal, known bool)
}

// byRequest returns an alternative that needs only the inputs that it reads.
func byRequest(reads inputs, holds func(*question) *refusal) *alternative {
	return &alternative{reads, func(q *question) (*refusal, bool) { return holds(q), true }}
}

// rule has the requirements of some operations on a resource or a subresource.
type rule struct {
	subresource string // or anySubresource
	operations  operations
	checks      []check
	when        requirement
}

const anySubresource = "*"

// resource is one resource with the rules for it. For a request, the first rule
// with its subresource and operation counts.
type resource struct {
	group string
	name  string
	rules []rule
}

// activeRule is a rule with the checks that apply to one cluster.
type activeRule struct {
	subresource string
	operations  operations
	title       string // "update nodes"
	reads       inputs
	checks      []activeCheck
}

type activeCheck struct {
	title string // "update nodes: taints do not change"
	*check
}

type activeResource struct {
	group, name string
	rules       []activeRule
}

// ruleTable has the rules that apply to one cluster.
type ruleTable []activeResource

func newRuleTable(f kubeversion.Features) ruleTable {
	var t ruleTable
	for _, r := range resources {
		active := activeResource{group: r.group, name: r.name}
		for _, rule := range r.rules {
			if rule.when.holds(f) {
				active.rules = append(active.rules, activate(&r, rule, f))
			}
		}
		if len(active.rules) > 0 {
			t = append(t, active)
		}
	}
	return t
}

func activate(r *resource, rule rule, f kubeversion.Features) activeRule {
	a := activeRule{subresource: rule.subresource, operations: rule.operations, title: titleOf(r, rule)}
	for i := range rule.checks {
		if c := &rule.checks[i]; c.when.holds(f) {
			a.reads |= c.reads
			a.checks = append(a.checks, activeCheck{title: a.title + ": " + c.says, check: c})
		}
	}
	return a
}

// titleOf returns the title of a rule: "create csinodes.storage.k8s.io".
func titleOf(r *resource, rule rule) string {
	title := rule.operations.String() + " " + r.name
	if r.group != "" {
		title += "." + r.group
	}
	if rule.subresource != "" && rule.subresource != anySubresource {
		title += "/" + rule.subresource
	}
	return title
}

// find returns the rule for an operation, nil if there is none.
func (t ruleTable) find(group, resource, subresource string, o operations) *activeRule {
	for i := range t {
		if t[i].name != resource || t[i].group != group {
			continue
		}
		for j := range t[i].rules {
			r := &t[i].rules[j]
			if r.operations&o != 0 && (r.subresource == subresource || r.subresource == anySubresource) {
				return r
			}
		}
	}
	return nil
}
