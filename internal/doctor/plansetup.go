package doctor

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/doctor/probe"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

// serversUnseen is the evidence of a step about API servers if none is known.
const serversUnseen = "no kube-apiserver was found: give its manifest with --from; where a provider runs it, " +
	"its documentation says how it is set up"

// each combines the evidence of all API servers: todo if one is not done, unknown if the status of
// one is unknown.
func (p *planner) each(judge func(*setup) (Status, string)) Check {
	check := Check{Status: StatusDone}
	for i := range p.setups {
		status, evidence := judge(&p.setups[i])
		check.Evidence = append(check.Evidence, evidence)
		if status == StatusToDo || status == StatusUnknown && check.Status == StatusDone {
			check.Status = status
		}
	}
	return check
}

func (s *setup) manifest() string {
	file := s.place.File
	if s.server != nil {
		file = s.server.Place.File
	}
	if file == "" {
		file = "its manifest, usually /etc/kubernetes/manifests/kube-apiserver.yaml"
	}
	return fmt.Sprintf("%s, in %s", s.name, file)
}

func (p *planner) record() (Check, []Action) {
	if p.audit != nil && p.audit.Totals.Requests > 0 {
		return Check{StatusDone, []string{"the audit report has " + render.Count(p.audit.Totals.Requests, "request") + " of kubelets"}}, nil
	}
	if p.inForce() {
		return Check{StatusDone, []string{"nothing that a log would show is left to be taken away"}}, nil
	}
	if !slices.ContainsFunc(p.setups, func(s setup) bool { return s.server != nil }) {
		return Check{StatusUnknown, []string{"no flags of a kube-apiserver were found, and no audit report was given"}}, []Action{{
			Text: "switch on the audit log; where a provider runs the control plane, by its means, and bring it into files, " +
				"one event a line",
		}}
	}
	return p.each(func(s *setup) (Status, string) {
		switch {
		case s.server == nil:
			return StatusUnknown, s.name + ": its flags are not known"
		case s.server.Unseen != "":
			return StatusUnknown, s.server.Unseen
		case s.server.Flags.last("audit-policy-file") != "" &&
			(s.server.Flags.last("audit-log-path") != "" || s.server.Flags.last("audit-webhook-config-file") != ""):
			return StatusDone, fmt.Sprintf("%s records by %s", s.name, s.server.Flags.last("audit-policy-file"))
		}
		return StatusToDo, s.name + " records nothing: it has no audit policy, or nowhere to write to"
	}), recordNodes()
}

func (p *planner) authorize() (Check, []Action) {
	if len(p.setups) == 0 {
		if asked, ok := p.asked(probe.NodeIdentity); ok {
			return asked, []Action{{Text: "have kube-apiserver ask the Node authorizer before RBAC: --authorization-mode=Node,RBAC"}}
		}
		if evidence, acts := p.allowedAsNode(); acts {
			return Check{StatusDone, []string{evidence}}, nil
		}
		return Check{StatusUnknown, []string{serversUnseen}}, []Action{
			{
				Text: "make sure that kube-apiserver has --authorization-mode=Node,RBAC, " +
					"or an AuthorizationConfiguration with Node before RBAC",
			},
			{
				Text: "where no binding gives nodes any right, this shows it: " +
					"the answer is yes if the Node authorizer is asked, for the name of any node",
				Commands: []string{
					"kubectl auth can-i update nodes/NAME --subresource=status --as=system:node:NAME --as-group=system:nodes",
				},
			},
		}
	}
	var do []Action
	check := p.each(func(s *setup) (Status, string) {
		status, evidence := s.authorizes()
		if status != StatusDone {
			do = append(do, Action{Text: s.manifest() + ": " + s.change()})
		}
		return status, evidence
	})
	do = append(do, Action{
		Text:     "one API server after another; go on when it is ready again",
		Commands: []string{"kubectl get --raw='/readyz?verbose'"},
	})
	if slices.ContainsFunc(p.setups, func(s setup) bool { return s.asks(modeAlwaysAllow) }) {
		do = append(do, Action{
			Text: "where everything was allowed so far, roles and bindings are missing: " +
				"AlwaysAllow stays, last, until all who use the cluster have theirs",
		})
	}
	return check, do
}

// allowedAsNode finds a node that does something that no binding allows. This shows that the Node
// authorizer, or one like it, allows it, even if no API server is known.
func (p *planner) allowedAsNode() (evidence string, acts bool) {
	if !p.cluster.RBACKnown {
		return "", false
	}
	ready := map[string]bool{}
	for _, n := range p.cluster.Nodes {
		ready[n.Name] = n.Ready == corev1.ConditionTrue
	}
	for _, r := range readRequests(p.cluster).last {
		node := r.identity().Name
		if !r.conforms() || !ready[node] || slices.Contains(r.Groups, groupMasters) {
			continue
		}
		status := access.Request{
			User: r.Requester, Groups: r.Groups, Verb: "patch", ResourceRequest: true, Resource: "nodes", Subresource: "status", Name: node,
		}
		if d := p.cluster.RBAC.Evaluate(&status); !d.Allowed && len(d.Unresolved) == 0 {
			return fmt.Sprintf(
				"%s is Ready under its own name, and no binding lets it update its status: the Node authorizer does, or one like it", node,
			), true
		}
	}
	return "", false
}

func (s *setup) authorizes() (Status, string) {
	node, rbac, ends := s.positions()
	asks := fmt.Sprintf("%s asks %s", s.name, strings.Join(s.authorizers, ", "))
	switch {
	case s.authorizers == nil:
		return StatusUnknown, s.unknown
	case node >= 0 && (rbac > node || rbac >= 0 && s.distribution() == OpenShift) && (ends < 0 || ends > rbac):
		return StatusDone, asks
	case node < 0 && rbac >= 0 && s.asks(modeWebhook):
		if s.asksUs() {
			return StatusDone, asks + "; the webhook is node-authorizer's, which does what the Node authorizer does"
		}
		return StatusUnknown, asks + "; if the webhook is node-authorizer's, it does what the Node authorizer does"
	}
	return StatusToDo, asks
}

func (s *setup) change() string {
	order := s.withNode()
	if s.asks(modeAlwaysAllow) {
		order = append(order, modeAlwaysAllow)
	}
	if s.byConfig {
		return "in its AuthorizationConfiguration list the authorizers in the order " + strings.Join(order, ", ") +
			"; the entry of the Node authorizer is {type: Node, name: node}"
	}
	return s.server.set(flagMode, order)
}

func (p *planner) restrict() (Check, []Action) {
	const otherwise = "where that is not possible, node-authorizer's admission webhook applies the same rules (docs/guides/install.md)"
	if len(p.setups) == 0 {
		check, ok := p.asked(probe.WriteOtherNode, probe.WriteLabel)
		if !ok {
			check = Check{StatusUnknown, []string{serversUnseen}}
		}
		return check, []Action{{Text: "make sure that kube-apiserver has --enable-admission-plugins=NodeRestriction; " + otherwise}}
	}
	var do []Action
	if p.audit != nil {
		var writes []string // that NodeRestriction would refuse
		for _, r := range p.audit.WouldBeRefused {
			if r.ofAdmission() && r.Caveat == "" {
				writes = append(writes, r.String())
			}
		}
		if len(writes) > 0 {
			do = append(do, Action{Text: "first give who makes these writes an identity of its own, or have them done otherwise: " +
				strings.Join(firstOf(writes, shownRefusals), "; ")})
		}
	}
	check := p.each(func(s *setup) (Status, string) {
		switch {
		case s.server == nil:
			return StatusUnknown, s.name + ": the flags of its API server are not known"
		case s.server.Unseen != "":
			return StatusUnknown, s.server.Unseen
		case s.server.nodeRestriction():
			return StatusDone, s.name + " has NodeRestriction on"
		case len(p.cluster.Restrictions) > 0:
			return StatusDone, fmt.Sprintf("%s leaves it to the webhook %s of %s", s.name, restrictionWebhook, p.cluster.Restrictions[0])
		case len(p.cluster.unread(resourceWebhooks)) > 0:
			return StatusUnknown, s.name + " does not have NodeRestriction on, and whether a webhook restricts nodes could not be read"
		}
		do = append(do, Action{Text: s.manifest() + ": " + s.server.restrictNodes()})
		return StatusToDo, s.name + " does not have NodeRestriction on"
	})
	return check, append(do, Action{Text: "one API server after another; " + otherwise})
}

// shownRefusals is the maximum number of requests that a step names.
const shownRefusals = 5

func firstOf(lines []string, n int) []string {
	if len(lines) <= n {
		return lines
	}
	return append(slices.Clone(lines[:n]), fmt.Sprintf("and %d more", len(lines)-n))
}

// asked returns the status of a step from probes, if all of them tell: done if they hold, todo if one does not.
func (p *planner) asked(ids ...probe.ID) (Check, bool) {
	check, results := Check{Status: StatusDone}, probe.Results{Probes: p.report.Probes}
	for _, id := range ids {
		i := results.Get(id)
		if i == nil || i.Outcome == probe.Undetermined {
			return Check{}, false
		}
		if i.Outcome == probe.DoesNotHold {
			check.Status = StatusToDo
		}
		check.Evidence = append(check.Evidence, fmt.Sprintf("probe %s: %s", id, i.Why))
	}
	return check, true
}
