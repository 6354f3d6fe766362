package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/finding"
	"github.com/node-authorizer/node-authorizer/internal/probe"
	"github.com/node-authorizer/node-authorizer/internal/render"
	"github.com/node-authorizer/node-authorizer/internal/sarif"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// Codes of findings that only probes make.
const (
	NodesReadNodesAndPods   finding.Code = "NodesReadNodesAndPods"
	NodesRequestAnyAudience finding.Code = "NodesRequestAnyAudience"
	AnonymousAccess         finding.Code = "AnonymousAccess"
)

// probed is what a probe decides: the check that it is for, and the finding if the protection that it
// asks about does not hold. Probes of the same finding are reported as one.
type probed struct {
	check CheckID
	ids   []probe.ID
	// found returns the finding without message and place; ok is false if there is none, because
	// another probe or check reports the cause.
	found func(*examination, *probe.Probe) (f finding.Finding, ok bool)
}

func probeTable() []probed {
	return []probed{
		{CheckAuthorization, []probe.ID{probe.MadeUpNodes}, noFinding},
		{CheckAuthorization, []probe.ID{probe.Everyone}, (*examination).everyoneMay},
		{CheckAuthorization, []probe.ID{probe.NodeIdentity}, (*examination).noIdentity},
		{CheckAuthorization, []probe.ID{probe.Secret, probe.Secrets}, (*examination).readsSecrets},
		{CheckAuthorization, []probe.ID{probe.Approval}, (*examination).approves},
		{CheckAdmission, []probe.ID{probe.OtherNode, probe.AllPods}, (*examination).readsOthers},
		{CheckAdmission, []probe.ID{probe.WriteOtherNode, probe.WriteLabel, probe.WritePod}, (*examination).writesOthers},
		{CheckAdmission, []probe.ID{probe.Certificate}, (*examination).anyCertificate},
		{CheckAdmission, []probe.ID{probe.Audience}, (*examination).anyAudience},
		{CheckAdmission, []probe.ID{probe.Anonymous}, (*examination).anonymousMay},
	}
}

// probed adds what the probes found. What flags show already is not reported twice.
func (e *examination) probed() {
	if e.options.Probes == nil {
		return
	}
	e.report.Probes = e.options.Probes.Probes
	for _, row := range probeTable() {
		failed := e.failed(row.ids...)
		if len(failed) == 0 {
			continue
		}
		f, ok := row.found(e, failed[0])
		if !ok || e.reported(&f) {
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

// reported reports whether flags have shown the same.
func (e *examination) reported(f *finding.Finding) bool {
	return slices.ContainsFunc(e.report.Findings, func(other finding.Finding) bool {
		return e.checkOf[f.Code] != CheckBindings && other.Code == f.Code &&
			(f.Code != NodeIsolationGate || other.Consequence == f.Consequence)
	})
}

// bound reports whether bindings give a user in groups a right, and the check of bindings reports that.
func (e *examination) bound(groups []string, verb, group, resource string) bool {
	asked := access.Request{User: "user", Groups: groups, Verb: verb, ResourceRequest: true, Group: group, Resource: resource, Name: "any"}
	return e.cluster.RBACKnown && e.options.wanted(CheckBindings) && e.cluster.RBAC.Evaluate(&asked).Allowed
}

// failed returns those of the probes that show that a protection does not hold.
func (e *examination) failed(ids ...probe.ID) []*probe.Probe {
	var list []*probe.Probe
	for _, id := range ids {
		if p := e.options.Probes.Get(id); p != nil && p.Outcome == probe.DoesNotHold {
			list = append(list, p)
		}
	}
	return list
}

func noFinding(*examination, *probe.Probe) (f finding.Finding, ok bool) { return f, false }

func (e *examination) everyoneMay(*probe.Probe) (finding.Finding, bool) {
	return finding.Finding{
		Code: AlwaysAllow, Severity: finding.Error,
		Consequence: everyoneAdministrator,
		Remedy: "ask the Node authorizer and RBAC, --authorization-mode=Node,RBAC, unless it is a binding that gives everyone all " +
			"rights: then remove that",
	}, !e.bound([]string{groupAuthenticated}, "delete", "node-authorizer.invalid", "probes")
}

func (e *examination) noIdentity(p *probe.Probe) (finding.Finding, bool) {
	return finding.Finding{
		Code: NodeAuthorizationOff, Severity: finding.Error,
		Consequence: nodesHaveAll,
		Remedy:      "have kube-apiserver ask the Node authorizer: --authorization-mode=Node,RBAC (node-authorizer doctor --plan)",
	}, p.Cause == ""
}

func (e *examination) readsSecrets(p *probe.Probe) (finding.Finding, bool) {
	nodes := []string{nodeidentity.Group, groupAuthenticated}
	bound := e.bound(nodes, "get", "", "secrets") || e.bound(nodes, "list", "", "secrets")
	return finding.Finding{
		Code: NodesReadSecrets, Severity: finding.Error,
		Consequence: "every node reads secrets of pods that do not run on it, and can act as whom they belong to",
		Remedy:      "remove the nodes from the binding, or restrict the authorizer that allows it (node-authorizer doctor --plan)",
	}, p.Cause != probe.ByEveryone && !bound
}

func (e *examination) approves(p *probe.Probe) (finding.Finding, bool) {
	groups := []string{nodeidentity.Group, groupBootstrappers, groupAuthenticated}
	bound := e.bound(groups, "approve", certificatesv1.GroupName, "signers")
	return finding.Finding{
		Code: NodesGrantCertificates, Severity: finding.Error,
		Consequence: "they can become any node, and serve as one",
		Remedy:      "remove them from the binding, and bind the role to the approver",
	}, p.Cause != probe.ByEveryone && !bound
}

func (e *examination) readsOthers(p *probe.Probe) (finding.Finding, bool) {
	switch p.Cause {
	case "":
		return isolation("AuthorizeNodeWithSelectors"), true
	case probe.ByGroup:
		return finding.Finding{
			Code: NodesReadNodesAndPods, Severity: finding.Warning,
			Consequence: "a node that is taken over learns what runs on all nodes",
			Remedy:      "remove the nodes from the binding: the Node authorizer allows a kubelet its own Node and pods",
		}, true
	}
	return finding.Finding{}, false
}

func (e *examination) writesOthers(*probe.Probe) (finding.Finding, bool) {
	return finding.Finding{
		Code: NodeRestrictionOff, Severity: finding.Error,
		Consequence: nodesWriteAll,
		Remedy: "--enable-admission-plugins=NodeRestriction; where that is not possible, node-authorizer's admission webhook applies " +
			"the same rules (docs/install.md)",
	}, true
}

func (e *examination) anyCertificate(p *probe.Probe) (finding.Finding, bool) {
	return isolation("AllowInsecureKubeletCertificateSigningRequests"), p.Cause == "" && e.restricts()
}

func (e *examination) anyAudience(p *probe.Probe) (finding.Finding, bool) {
	if p.Cause == probe.ByAudience {
		return finding.Finding{
			Code: NodesRequestAnyAudience, Severity: finding.Warning,
			Consequence: "a node that is taken over acts towards any service as the service accounts of its pods",
			Remedy:      "name the audiences and service accounts in the role, or let pods name their audiences in volumes",
		}, !e.everyone()
	}
	return isolation("ServiceAccountNodeAudienceRestriction"), p.Cause == "" && e.restricts()
}

// restricts reports whether no probe shows that NodeRestriction is off, which has the consequences of
// its gates too.
func (e *examination) restricts() bool {
	return len(e.failed(probe.WriteOtherNode, probe.WriteLabel, probe.WritePod)) == 0
}

func (e *examination) everyone() bool { return len(e.failed(probe.Everyone)) > 0 }

func (e *examination) anonymousMay(p *probe.Probe) (finding.Finding, bool) {
	f := finding.Finding{
		Code: AnonymousAccess, Severity: finding.Error,
		Consequence: "whoever reaches the API server may do it",
		Remedy: "remove system:unauthenticated and system:anonymous from the bindings; if nothing needs anonymous requests, " +
			"switch them off: --anonymous-auth=false",
	}
	if p.Cause == probe.ByDiscovery {
		f.Severity, f.Consequence = finding.Warning, "whoever reaches the API server learns which APIs are installed"
	}
	return f, true
}

// isolation returns the finding about a gate.
func isolation(name string) finding.Finding {
	for _, gate := range isolationGates() {
		if gate.name == name {
			return finding.Finding{
				Code: NodeIsolationGate, Severity: finding.Warning, Consequence: gate.consequence,
				Remedy: fmt.Sprintf("leave the feature gate %s at its default, and NodeRestriction on", name),
			}
		}
	}
	return finding.Finding{}
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
		id := "probe/" + string(asked.ID)
		run.Tool.Driver.Notifications = append(run.Tool.Driver.Notifications, sarif.Notice{
			ID: id, ShortDescription: sarif.Text("A probe of the API server: " + asked.Question), HelpURI: findingsURL + "#probes",
		})
		lines := []string{fmt.Sprintf("%s %s: %s.", asked.Question, outcomeWords(asked.Outcome), asked.Why)}
		for j := range asked.Sent {
			lines = append(lines, sentLine(&asked.Sent[j]))
		}
		run.Invocations[0].ToolExecutionNotifications = append(run.Invocations[0].ToolExecutionNotifications, sarif.Notification{
			Descriptor: sarif.Reference{ID: id}, Level: "note", Message: sarif.Text(strings.Join(lines, "\n")),
		})
	}
}
