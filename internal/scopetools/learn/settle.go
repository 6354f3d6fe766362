package learn

import (
	"cmp"
	"slices"
	"strings"
)

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
