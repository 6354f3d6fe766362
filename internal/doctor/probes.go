package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/doctor/probe"
	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/output/sarif"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// Codes of findings that only probes make.
const (
	NodesReadNodesAndPods   finding.Code = "NodesReadNodesAndPods"
	NodesRequestAnyAudience finding.Code = "NodesRequestAnyAudience"
	AnonymousAccess         finding.Code = "AnonymousAccess"
)

// probed is a row of the table of probes: the check that they are for, and the finding if the protection that they
// ask about does not hold, without message and place. Probes of the same finding are reported as one.
type probed struct {
	// check is empty for a further finding of the same probes.
	check   CheckID
	ids     []probe.ID
	finding finding.Finding
	// found reports whether there is a finding by the first probe that does not hold; nil means always. Otherwise
	// another probe or check reports the cause.
	found func(*examination, *probe.Probe) bool
}

func probeTable() []probed {
	byNothing := func(_ *examination, p *probe.Probe) bool { return p.Cause == "" }
	byNode := func(e *examination, p *probe.Probe) bool { return p.Cause == "" && e.restricts() }
	by := func(cause probe.Cause) func(*examination, *probe.Probe) bool {
		return func(_ *examination, p *probe.Probe) bool { return p.Cause == cause }
	}
	reads := []probe.ID{probe.OtherNode, probe.AllPods}
	return []probed{
		{check: CheckAuthorization, ids: []probe.ID{probe.MadeUpNodes}, found: func(*examination, *probe.Probe) bool { return false }},
		{CheckAuthorization, []probe.ID{probe.Everyone}, finding.Finding{
			Code: AlwaysAllow, Severity: finding.Error, Consequence: everyoneAdministrator,
			Remedy: "ask the Node authorizer and RBAC, --authorization-mode=Node,RBAC, unless it is a binding that gives everyone all " +
				"rights: then remove that",
		}, func(e *examination, _ *probe.Probe) bool {
			return !e.bound([]string{groupAuthenticated}, "delete probes.node-authorizer.invalid")
		}},
		{CheckAuthorization, []probe.ID{probe.NodeIdentity}, finding.Finding{
			Code: NodeAuthorizationOff, Severity: finding.Error, Consequence: nodesHaveAll,
			Remedy: "have kube-apiserver ask the Node authorizer: --authorization-mode=Node,RBAC (node-authorizer doctor --plan)",
		}, byNothing},
		{CheckAuthorization, []probe.ID{probe.Secret, probe.Secrets}, finding.Finding{
			Code: NodesReadSecrets, Severity: finding.Error,
			Consequence: "every node reads secrets of pods that do not run on it, and can act as whom they belong to",
			Remedy:      "remove the nodes from the binding, or restrict the authorizer that allows it (node-authorizer doctor --plan)",
		}, func(e *examination, p *probe.Probe) bool {
			return p.Cause != probe.ByEveryone && !e.bound([]string{nodeidentity.Group, groupAuthenticated}, "get,list secrets")
		}},
		{CheckAuthorization, []probe.ID{probe.Approval}, finding.Finding{
			Code: NodesGrantCertificates, Severity: finding.Error,
			Consequence: "they can become any node, and serve as one",
			Remedy:      "remove them from the binding, and bind the role to the approver",
		}, func(e *examination, p *probe.Probe) bool {
			groups := []string{nodeidentity.Group, groupBootstrappers, groupAuthenticated}
			return p.Cause != probe.ByEveryone && !e.bound(groups, "approve signers.certificates.k8s.io")
		}},
		{CheckAdmission, reads, isolation("AuthorizeNodeWithSelectors"), byNothing},
		{"", reads, finding.Finding{
			Code: NodesReadNodesAndPods, Severity: finding.Warning,
			Consequence: "a node that is taken over learns what runs on all nodes",
			Remedy:      "remove the nodes from the binding: the Node authorizer allows a kubelet its own Node and pods",
		}, by(probe.ByGroup)},
		{CheckAdmission, writeProbes(), finding.Finding{
			Code: NodeRestrictionOff, Severity: finding.Error, Consequence: nodesWriteAll,
			Remedy: "--enable-admission-plugins=NodeRestriction; where that is not possible, node-authorizer's admission webhook applies " +
				"the same rules (docs/guides/install.md)",
		}, nil},
		{CheckAdmission, []probe.ID{probe.Certificate}, isolation("AllowInsecureKubeletCertificateSigningRequests"), byNode},
		{CheckAdmission, []probe.ID{probe.Audience}, isolation("ServiceAccountNodeAudienceRestriction"), byNode},
		{"", []probe.ID{probe.Audience}, finding.Finding{
			Code: NodesRequestAnyAudience, Severity: finding.Warning,
			Consequence: "a node that is taken over acts towards any service as the service accounts of its pods",
			Remedy:      "name the audiences and service accounts in the role, or let pods name their audiences in volumes",
		}, func(e *examination, p *probe.Probe) bool {
			return p.Cause == probe.ByAudience && len(e.failed(probe.Everyone)) == 0
		}},
		{
			CheckAdmission,
			[]probe.ID{probe.Anonymous},
			anonymousAccess(finding.Error, "whoever reaches the API server may do it"),
			func(_ *examination, p *probe.Probe) bool { return p.Cause != probe.ByDiscovery },
		},
		{
			"",
			[]probe.ID{probe.Anonymous},
			anonymousAccess(finding.Warning, "whoever reaches the API server learns which APIs are installed"),
			by(probe.ByDiscovery),
		},
	}
}

func anonymousAccess(severity finding.Severity, consequence string) finding.Finding {
	return finding.Finding{
		Code: AnonymousAccess, Severity: severity, Consequence: consequence,
		Remedy: "remove system:unauthenticated and system:anonymous from the bindings; if nothing needs anonymous requests, " +
			"switch them off: --anonymous-auth=false",
	}
}

func writeProbes() []probe.ID {
	return []probe.ID{probe.WriteOtherNode, probe.WriteLabel, probe.WritePod}
}

// restricts reports whether no probe shows that NodeRestriction is off, which has the consequences of
// its gates too.
func (e *examination) restricts() bool { return len(e.failed(writeProbes()...)) == 0 }

func isolation(name string) finding.Finding {
	gates := isolationGates()
	gate := gates[slices.IndexFunc(gates, func(g isolationGate) bool { return g.name == name })]
	return finding.Finding{
		Code: NodeIsolationGate, Severity: finding.Warning, Consequence: gate.consequence,
		Remedy: fmt.Sprintf("leave the feature gate %s at its default, and NodeRestriction on", name),
	}
}

// probed adds what the probes found. What flags show already is not reported twice.
func (e *examination) probed() {
	if e.options.Probes == nil {
		return
	}
	e.report.Probes = e.options.Probes.Probes
	for _, row := range probeTable() {
		failed, f := e.failed(row.ids...), row.finding
		if len(failed) == 0 || row.found != nil && !row.found(e, failed[0]) || e.reported(&f) {
			continue
		}
		var why, ids []string
		for _, p := range failed {
			why, ids = append(why, p.Why), append(ids, string(p.ID))
		}
		f.Place = finding.Place{Object: "kube-apiserver " + e.options.Probes.Host, Key: "probe " + strings.Join(ids, ", ")}
		f.Message = strings.Join(why, "; ")
		e.found(f)
	}
}

func (e *examination) reported(f *finding.Finding) bool {
	return slices.ContainsFunc(e.report.Findings, func(other finding.Finding) bool {
		return e.report.checkOf[f.Code] != CheckBindings && other.Code == f.Code &&
			(f.Code != NodeIsolationGate || other.Consequence == f.Consequence)
	})
}

// bound reports whether bindings give a user in groups one of some rights, and the check of bindings reports that.
func (e *examination) bound(groups []string, rights string) bool {
	return e.cluster.RBACKnown && e.options.wanted(CheckBindings) && slices.ContainsFunc(requests(rights), func(asked access.Request) bool {
		asked.User, asked.Groups, asked.Name = "user", groups, "any"
		return e.cluster.RBAC.Evaluate(&asked).Allowed
	})
}

func (e *examination) failed(ids ...probe.ID) []*probe.Probe {
	var list []*probe.Probe
	for _, id := range ids {
		if p := e.options.Probes.Get(id); p != nil && p.Outcome == probe.DoesNotHold {
			list = append(list, p)
		}
	}
	return list
}

// otherRemedy is for probes that lack no right.
const otherRemedy = "try again; else give the manifest of kube-apiserver with --add, without --probe, or leave the check out (--checks)"

// probesLack returns what the probes of a check lack. Probes that lack the same are named together.
func (e *examination) probesLack(check CheckID) []Missing {
	type reason struct{ lacks, why, remedy string }
	var order []reason
	ids := map[reason][]string{}
	for _, row := range probeTable() {
		if row.check != check {
			continue
		}
		for _, id := range row.ids {
			p := e.options.Probes.Get(id)
			if p == nil || p.Outcome != probe.Undetermined {
				continue
			}
			r := reason{p.Lacks, p.Why, p.Remedy}
			if r.lacks != "" && r.remedy != "" {
				r.why = "" // the right counts, and the messages differ in what it is for
			}
			if ids[r] == nil {
				order = append(order, r)
			}
			ids[r] = append(ids[r], string(id))
		}
	}
	var list []Missing
	for _, r := range order {
		list = append(list, Missing{
			Resource: cmp.Or(r.lacks, "probe"), Remedy: cmp.Or(r.remedy, otherRemedy),
			Reason: fmt.Sprintf("undetermined %s %s: %s", render.Plural(len(ids[r]), "is probe", "are probes"), strings.Join(ids[r], ", "),
				cmp.Or(r.why, "a right is missing")),
		})
	}
	return list
}

// sarifProbes adds a notification for each probe.
func (r *Report) sarifProbes(run *sarif.Run) {
	for i := range r.Probes {
		asked := &r.Probes[i]
		lines := []string{fmt.Sprintf("%s %s: %s.", asked.Question, outcomeWords(asked.Outcome), asked.Why)}
		for j := range asked.Sent {
			lines = append(lines, sentLine(&asked.Sent[j]))
		}
		run.Notify("probe/"+string(asked.ID), "A probe of the API server: "+asked.Question, findingsURL+"#probes", "note",
			strings.Join(lines, "\n"))
	}
}
