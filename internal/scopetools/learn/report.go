package learn

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/nodescope"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Report says what NodeScopes would have refused.
type Report struct {
	// Requests is the number of requests of accounts in the scopes that the log shows as allowed.
	Requests int `json:"requests"`
	// Passed, WouldBeRefused and Undecided are how many of them pass all scopes, do not pass one,
	// and cannot be decided.
	Passed         int `json:"passed"`
	WouldBeRefused int `json:"wouldBeRefused"`
	Undecided      int `json:"undecided"`
	// AlreadyRefused is the number of requests that were refused at the time. They are not decided.
	AlreadyRefused int `json:"alreadyRefused"`
	// First and Last are the times of the first and last request; absent without requests.
	First *time.Time `json:"first,omitempty"`
	Last  *time.Time `json:"last,omitempty"`
	// Accounts are the accounts of which something would be refused or is undecided, the most
	// frequent first.
	Accounts []Account `json:"accounts"`
	// Warnings are rules of the scopes that let pass a right with which their accounts leave their node. They do
	// not depend on the log.
	Warnings []Warning `json:"warnings"`
	// Silent are subjects of scopes of which the log has no request.
	Silent []string `json:"silent"`
	// MoreRefusals is the number of requests that are counted above and not among the accounts,
	// because there are too many kinds.
	MoreRefusals int `json:"moreRefusals,omitempty"`
}

// Account has the decisions of the scopes about the requests of one account.
type Account struct {
	// Account is the service account, as NAMESPACE/NAME.
	Account string `json:"account"`
	// Findings are the kinds of requests, the most frequent first.
	Findings []Finding `json:"findings"`
}

// Finding is one kind of requests that would be refused or that is undecided.
type Finding struct {
	// Outcome says which.
	Outcome Outcome `json:"outcome"`
	// Code is the code of the refusal, and Scope the NodeScope.
	Code  verdict.Code `json:"code"`
	Scope string       `json:"scope"`
	// Rule is the first rule that names the requests: "namedAsNode[0]"; empty if none does.
	Rule string `json:"rule,omitempty"`
	// Request is the verb and the resource.
	Request string `json:"request"`
	// Why says what is not known; empty for a refusal.
	Why string `json:"why,omitempty"`
	// Count is the number of requests, and Nodes the number of nodes of their tokens.
	Count int `json:"count"`
	Nodes int `json:"nodes"`
	// Example is one of the requests.
	Example string `json:"example"`
}

// Outcome is the outcome of a request that does not pass.
type Outcome string

// The outcomes.
const (
	Refused   Outcome = "Refused"
	Undecided Outcome = "Undecided"
)

// DocumentKind is the kind of the report as a document.
func (*Report) DocumentKind() string { return "ScopeReport" }

var findingColumns = []string{"CODE", "SCOPE AND RULE", "REQUEST", "COUNT", "NODES", "EXAMPLE"}

func (f *Finding) row(number func(int) string) []string {
	outcome := render.Bad.In("refused")
	if f.Outcome == Undecided {
		outcome = render.Unsure.In("undecided")
	}
	return []string{outcome, string(f.Code), f.where(), f.Request, number(f.Count), number(f.Nodes), f.Example}
}

// Listing has a row for each finding, for each account without requests, and for findings that are counted only. The first
// row of an account has its name.
func (r *Report) Listing() render.Rows {
	all := render.Rows{Field: "accounts", Columns: append([]string{"ACCOUNT", "ANSWER"}, findingColumns...)}
	for _, a := range r.Accounts {
		name := "serviceaccount/" + a.Account
		for _, f := range a.Findings {
			row := render.Row{Cells: append([]string{a.Account}, f.row(strconv.Itoa)...)}
			if f.Outcome == Refused {
				row.Name, name = name, ""
			}
			all.Rows = append(all.Rows, row)
		}
	}
	for _, s := range r.Silent {
		all.Rows = append(all.Rows, render.Row{Cells: []string{s, "no requests", "", "", "", "0", "", ""}})
	}
	if n := r.MoreRefusals; n > 0 {
		all.Rows = append(all.Rows, render.Row{Cells: []string{"", "not listed", "", "", "", strconv.Itoa(n), "", ""}})
	}
	return all
}

// Text writes the report for people.
func (r *Report) Text(p *render.Page) {
	if r.Requests == 0 {
		p.Section("Unknown: the logs have no request of these accounts")
	} else {
		p.Section("%s of %s would be refused, %s undecided", render.Thousands(r.WouldBeRefused),
			render.Count(r.Requests, "request"), render.Thousands(r.Undecided))
	}
	for _, a := range r.Accounts {
		p.Section("%s", a.Account)
		var rows [][]string
		for _, f := range a.Findings {
			rows = append(rows, f.row(render.Thousands))
		}
		p.Table(2, append([]string{""}, findingColumns...), rows)
		for _, why := range a.reasons() {
			p.Line("  undecided: %s", why)
		}
	}
	if len(r.Warnings) > 0 {
		p.Section("Warnings")
		for i := range r.Warnings {
			p.Line("  %s", render.Unsure.In(r.Warnings[i].text()))
		}
	}
	if len(r.Silent) > 0 {
		if r.Requests > 0 {
			p.Section("No requests in the logs")
		}
		for _, s := range r.Silent {
			p.Line("  %s", s)
		}
	}
	if r.MoreRefusals > 0 {
		p.Line("counted only: %s of further kinds", render.Count(r.MoreRefusals, "request"))
	}
}

// where names the scope and the part of it that does not let the request pass.
func (f *Finding) where() string {
	rule := cmp.Or(f.Rule, "no rule")
	if f.Code == nodescope.ScopeTokenWithoutNode {
		rule = "tokensWithoutNode"
	}
	return cmp.Or(f.Scope, "-") + " " + rule
}

func (a *Account) reasons() []string {
	var all []string
	for _, f := range a.Findings {
		if f.Why != "" && !slices.Contains(all, f.Why) {
			all = append(all, f.Why)
		}
	}
	slices.Sort(all)
	return all
}

func compareFindings(a, b Finding) int {
	return cmp.Or(strings.Compare(string(a.Outcome), string(b.Outcome)), cmp.Compare(b.Count, a.Count),
		strings.Compare(a.Request, b.Request), strings.Compare(string(a.Code), string(b.Code)), strings.Compare(a.Scope, b.Scope),
		strings.Compare(a.Rule, b.Rule), strings.Compare(a.Why, b.Why))
}

// Report returns the report about all decisions. Its subjects are the subjects of the scopes.
func (c *Checker) Report() *Report {
	r := &Report{
		Requests: c.requests.Requests(), Passed: c.passed.Requests(), AlreadyRefused: c.already.Requests(), MoreRefusals: c.more.Requests(),
		Accounts: []Account{}, Silent: []string{},
	}
	r.First, r.Last = c.utc()
	r.Passed += c.settle()
	accounts := map[string][]Finding{}
	for key, n := range c.findings {
		f := key.Finding
		f.Count, f.Nodes, f.Example = n.Requests(), len(n.nodes), n.example
		if f.Outcome == Refused {
			r.WouldBeRefused += f.Count
		} else {
			r.Undecided += f.Count
		}
		accounts[key.account] = append(accounts[key.account], f)
	}
	r.Undecided += r.MoreRefusals
	for account, findings := range accounts {
		slices.SortFunc(findings, compareFindings)
		r.Accounts = append(r.Accounts, Account{account, findings})
	}
	slices.SortFunc(r.Accounts, func(a, b Account) int { return strings.Compare(a.Account, b.Account) })
	r.Silent, r.Warnings = c.silent(), c.warnings()
	return r
}

// settle decides what waits for the whole log, and returns how many requests pass.
func (c *Checker) settle() (passed int) {
	keys := make([]waiting, 0, len(c.waiting))
	for key := range c.waiting {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b waiting) int {
		return cmp.Or(strings.Compare(a.pod.Namespace, b.pod.Namespace), strings.Compare(a.pod.Name, b.pod.Name),
			strings.Compare(a.pod.Node, b.pod.Node), compareFindings(a.Finding, b.Finding))
	})
	for _, key := range keys {
		n := c.waiting[key]
		if c.pods[key.pod] {
			passed += n.Requests()
			continue
		}
		key.Outcome = key.otherwise
		found := c.findings[key.findingKey]
		if found == nil {
			c.findings[key.findingKey] = n
			continue
		}
		found.Begun, found.Ended = found.Begun+n.Begun, found.Ended+n.Ended
		for node := range n.nodes {
			found.nodes[node] = true
		}
	}
	c.waiting = map[waiting]*counts{}
	return passed
}

func (c *Checker) silent() []string {
	all := []string{}
	for _, s := range c.policy.Load().Scopes() {
		for _, subject := range s.Subjects() {
			name := subject.Namespace + "/" + cmp.Or(subject.Name, "*")
			seen := c.seen[name]
			for account := range c.seen {
				seen = seen || subject.Name == "" && strings.HasPrefix(account, subject.Namespace+"/")
			}
			if !seen {
				all = append(all, name)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Complete reports whether every request was decided.
func (r *Report) Complete() bool { return r.Undecided == 0 && r.Requests > 0 }

// Warning is about a rule of a NodeScope that lets pass a right with which its accounts leave their node, or less than it says.
type Warning struct {
	// Scope is the NodeScope.
	Scope string `json:"scope"`
	attackpaths.ScopeWarning
	// Accounts are the accounts to which roles grant such a right, as NAMESPACE/NAME, and Granted is what they grant;
	// absent if the state has no roles, and if the scope is about all accounts of a namespace.
	Accounts []string `json:"accounts,omitempty"`
	Granted  []string `json:"granted,omitempty"`
}

func (w *Warning) text() string {
	text := "NodeScope " + w.Scope + ": " + w.Message
	switch {
	case len(w.Accounts) > 0:
		return text + "; by its roles, " + strings.Join(w.Accounts, ", ") + " may " + strings.Join(w.Granted, ", ")
	case !w.AboutRights():
		return text
	}
	return text + "; whether roles let the account do that is not known"
}

// warnings returns the warnings about the scopes. Those are left out that are about rights which roles grant to no account.
func (c *Checker) warnings() []Warning {
	warnings := []Warning{}
	for _, s := range c.objects {
		all := attackpaths.ScopeWarnings(&s.Spec, c.evaluator.State.Aggregation())
		if len(all) == 0 {
			continue
		}
		roles, known := c.rolesOf(s)
		for i := range all {
			w := Warning{Scope: s.Name, ScopeWarning: all[i]}
			for _, r := range roles {
				if granted := all[i].Granted(r.rules); len(granted) > 0 {
					w.Accounts, w.Granted = append(w.Accounts, r.account), append(w.Granted, granted...)
				}
			}
			slices.Sort(w.Granted)
			w.Granted = slices.Compact(w.Granted)
			if known && len(w.Accounts) == 0 && w.AboutRights() {
				continue
			}
			warnings = append(warnings, w)
		}
	}
	return warnings
}

// accountRoles has the rights that roles grant to an account.
type accountRoles struct {
	account string
	rules   []*rbacv1.PolicyRule
}

// rolesOf returns what roles grant to the accounts of a scope, sorted; false if this is not known of all.
func (c *Checker) rolesOf(s *v1alpha1.NodeScope) (all []accountRoles, known bool) {
	if !c.evaluator.State.RBACLoaded() {
		return nil, false
	}
	known = true
	for _, subject := range s.Spec.Subjects {
		if subject.Name == "" {
			known = false
			continue
		}
		user := nodeidentity.ServiceAccountUser(subject.Namespace, subject.Name)
		grants, unresolved := c.evaluator.State.RBAC.Grants(user, []string{
			"system:serviceaccounts", "system:serviceaccounts:" + subject.Namespace, "system:authenticated",
		})
		roles := accountRoles{account: subject.Namespace + "/" + subject.Name}
		for _, g := range grants {
			roles.rules = append(roles.rules, g.Rule)
		}
		all = append(all, roles)
		known = known && unresolved == nil
	}
	slices.SortFunc(all, func(a, b accountRoles) int { return strings.Compare(a.account, b.account) })
	return slices.CompactFunc(all, func(a, b accountRoles) bool { return a.account == b.account }), known
}
