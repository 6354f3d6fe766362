package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

func (p *planner) identify() (Check, []Action) {
	wrong := slices.Concat(p.wrongRoles(), p.wrongKubelets(), p.wrongInLog())
	if len(wrong) > 0 {
		return Check{StatusToDo, wrong}, p.fixIdentities()
	}
	known, evidence := p.conforming()
	for _, m := range p.cluster.unread("configmaps", resourceMappings, resourceRequests, "nodes") {
		known, evidence = false, append(evidence, "not read: "+m.String())
	}
	if known {
		return Check{StatusDone, evidence}, nil
	}
	return Check{StatusUnknown, evidence}, []Action{reportOnLog()}
}

func (p *planner) wrongRoles() []string {
	var lines []string
	for i := range p.report.Roles {
		r := &p.report.Roles[i]
		switch {
		case !r.Purpose.makesNodes():
		case r.User == "":
			lines = append(lines, fmt.Sprintf(
				"%s becomes nobody, %s (%s)", r.ARN, strings.TrimPrefix(r.Registers.Why, "Unauthorized: "), r.Place,
			))
		case !r.NodeIdentity:
			lines = append(lines, fmt.Sprintf("%s becomes %q in %q, which is no node (%s)", r.ARN, r.User, r.Groups, r.Place))
		default:
			if how, ok := p.cluster.administrator(r.User, r.Groups); ok {
				lines = append(lines, fmt.Sprintf("%s becomes %s, and may do everything: %s (%s)", r.ARN, r.User, how, r.Place))
			}
		}
	}
	return lines
}

func (p *planner) wrongKubelets() []string {
	codes := []finding.Code{KubeletNotInSystemNodes, KubeletUndifferentiated, KubeletAdministrator, CSRRequesterMismatch, CSRForAnotherNode}
	var lines []string
	for _, f := range p.report.Findings {
		if slices.Contains(codes, f.Code) {
			lines = append(lines, fmt.Sprintf("%s (%s)", f.Message, f.Code))
		}
	}
	return lines
}

func (p *planner) wrongInLog() []string {
	if p.audit == nil {
		return nil
	}
	var lines []string
	for i := range p.audit.Nonconforming {
		lines = append(lines, p.audit.Nonconforming[i].String())
	}
	var never []string
	for _, n := range p.audit.Nodes.NeverConforming {
		never = append(never, n.Name)
	}
	if len(never) > 0 {
		lines = append(lines, fmt.Sprintf(
			"in the audit log %d %s never under %s own name: %s", len(never), render.Plural(len(never), "node asks", "nodes ask"),
			render.Plural(len(never), "its", "their"), some(never),
		))
	}
	return lines
}

// conforming returns evidence from the audit log and certificate requests about nodes that
// authenticate as themselves; known is true if these are all nodes of the cluster.
func (p *planner) conforming() (known bool, evidence []string) {
	own := map[string]bool{}
	for _, r := range readRequests(p.cluster).last {
		if r.conforms() {
			own[r.node()] = true
		}
	}
	all := len(p.cluster.Nodes)
	inLog := p.audit != nil && p.audit.Totals.Conforming > 0
	unseen := p.cluster.nodesWhose(func(n *Node) bool { return !own[n.Name] && !(inLog && p.audit.shows(n.Name, all)) })
	switch {
	case inLog:
		silent := selected(p.audit.Nodes.Silent, func(n string) bool { return !own[n] })
		evidence = append(evidence, fmt.Sprintf(
			"in the audit log %d %s under their own name, and nobody else acts for a node", p.audit.Nodes.Conforming,
			render.Plural(p.audit.Nodes.Conforming, "node asks", "nodes ask"),
		))
		if len(silent) > 0 {
			evidence = append(evidence, fmt.Sprintf("of %s the log has nothing: %s", render.Count(len(silent), "node"), some(silent)))
		}
		if len(unseen) > len(silent) {
			evidence = append(evidence, fmt.Sprintf("the audit report is about other nodes than the %d of this cluster", all))
		}
		return len(silent) == 0 && len(unseen) == 0 && p.audit.Nodes.NotTold == 0, evidence
	case all == 0:
		return false, []string{"no nodes were given; the audit log shows the usernames of kubelets"}
	}
	evidence = append(evidence, fmt.Sprintf(
		"certificate requests show the own name of %d of %s; the audit log shows it of all", all-len(unseen), render.Count(all, "node"),
	))
	if len(unseen) > 0 {
		evidence = append(evidence, "not seen: "+some(unseen))
	}
	return len(unseen) == 0, evidence
}

func (p *planner) fixIdentities() []Action {
	var do []Action
	if p.cluster.AWSAuth != nil || len(p.cluster.IdentityMappings) > 0 {
		do = append(do, Action{
			Text: "map each role of nodes to username system:node:{{EC2PrivateDNSName}} and groups system:bootstrappers, " +
				"system:nodes, and no other; keep the old text",
			Commands: []string{
				"kubectl -n kube-system get configmap aws-auth -o yaml > aws-auth.yaml",
				"kubectl -n kube-system edit configmap aws-auth",
				"node-authorizer doctor --fail-on error",
			},
		})
	}
	return append(
		do,
		Action{
			Text: "kubelets with a client certificate: rotateCertificates: true in their configuration, " +
				"and a bootstrap kubeconfig, by which they ask for user system:node:NAME in group system:nodes",
		},
		Action{Text: "one node after another: restart its kubelet, wait until it is Ready, try logs and exec on it", Commands: []string{
			"kubectl get node NAME", "kubectl get certificatesigningrequests --sort-by=.metadata.creationTimestamp",
		}},
	)
}

func reportOnLog() Action {
	return Action{
		Text: "make a report of the audit log of all API servers, and plan with it",
		Commands: []string{
			"node-authorizer audit /var/log/kubernetes/audit/*.log* -o json > audit.json",
			"node-authorizer doctor --plan --audit-report audit.json",
		},
	}
}

// watchFor is the minimum duration of a log, so that it includes daily jobs.
const watchFor = 24 * time.Hour

func (p *planner) watch() (Check, []Action) {
	do := []Action{reportOnLog()}
	if p.audit == nil && p.inForce() {
		return Check{
			StatusDone,
			[]string{
				"every kubelet has its node's name, and no binding gives all nodes what the Node authorizer refuses: " +
					"its refusals are in effect already",
			},
		}, nil
	}
	if p.audit == nil {
		return Check{StatusUnknown, []string{"no audit report was given"}}, do
	}
	would, passing := p.refusals()
	if len(would) > 0 {
		fix := Action{
			Text: "find the cause of each, and fix it: a pod that is not on the node, a program that uses the kubelet's credential, " +
				"a kubelet without its identity",
			Commands: []string{"node-authorizer explain VERB RESOURCE/NAME -n NAMESPACE --node NODE"},
		}
		return Check{StatusToDo, firstOf(would, shownRefusals)}, append([]Action{fix}, do...)
	}
	var open []string
	t := p.audit.Totals
	evidence := []string{
		fmt.Sprintf("of %s of kubelets in %s none would be refused for good", render.Count(t.Requests, "request"),
			p.audit.span().Round(time.Minute)),
	}
	if passing > 0 {
		evidence = append(evidence, fmt.Sprintf(
			"%d %s about what the state does not have any more, or passed by", passing,
			render.Plural(passing, "refusal is", "refusals are"),
		))
	}
	if t.Requests == 0 {
		open = append(open, "the log has no request of a kubelet: does its policy record them?")
	}
	if span := p.audit.span(); span < watchFor {
		open = append(open, fmt.Sprintf("the log is %s long: a day shows what runs once a day", span.Round(time.Minute)))
	}
	if t.Undecided > 0 || t.BrokenLines > 0 {
		open = append(open, fmt.Sprintf("%s could not be decided, and %s not be read",
			render.Count(t.Undecided, "request"), render.Count(t.BrokenLines, "line")))
	}
	for _, x := range p.shared() {
		if object := x.binding.object(); !slices.Contains(p.audit.LeftOut, object) {
			open = append(open, fmt.Sprintf(
				"the report counts what %s allows: make it with a state that does not have it (--from)", object,
			))
		}
	}
	if len(open) > 0 {
		return Check{StatusUnknown, append(evidence, open...)}, do
	}
	return Check{StatusDone, evidence}, nil
}

// inForce reports whether the cluster shows without a log that the Node authorizer is asked, that
// every kubelet authenticates as its node, and that no binding to all nodes allows more.
func (p *planner) inForce() bool {
	for _, judge := range []func() (Check, []Action){p.authorize, p.identify, p.withdraw} {
		if check, _ := judge(); check.Status != StatusDone {
			return false
		}
	}
	return true
}

// refusals returns the persistent refusals by authorizers, and the number of transient ones.
func (p *planner) refusals() (persist []string, passing int) {
	for _, r := range p.audit.WouldBeRefused {
		switch {
		case r.ofAdmission():
		case r.Caveat != "":
			passing++
		default:
			persist = append(persist, "would be refused: "+r.String())
		}
	}
	if p.audit.More != nil && len(p.audit.More.WouldBeRefused) > 0 {
		persist = append(persist, "more would be refused than the report has room for")
	}
	for _, r := range p.audit.Refused {
		switch {
		case r.ofAdmission():
		case r.persists() && r.Caveat == "":
			persist = append(persist, "is refused: "+r.String())
		default:
			passing++
		}
	}
	return persist, passing
}
