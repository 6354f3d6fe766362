package doctor

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/strictjson"
)

// Audit is the part of the output of "node-authorizer audit -o json" that the plan needs.
type Audit struct {
	Totals struct {
		First       *time.Time `json:"first"`
		Last        *time.Time `json:"last"`
		Requests    int        `json:"requests"`
		Conforming  int        `json:"conforming"`
		Undecided   int        `json:"undecided"`
		BrokenLines int        `json:"brokenLines"`
	} `json:"totals"`
	WouldBeRefused []AuditedRefusal `json:"wouldBeRefused"`
	Refused        []AuditedRefusal `json:"refused"`
	More           *struct {
		WouldBeRefused []struct{} `json:"wouldBeRefused"`
	} `json:"more"`
	Nonconforming []auditedUser `json:"nonconforming"`
	Nodes         struct {
		Conforming      int           `json:"conforming"`
		NeverConforming []auditedNode `json:"neverConforming"`
		Silent          []string      `json:"silent"`
		NotTold         int           `json:"notTold"`
	} `json:"nodes"`
	// LeftOut are bindings that were ignored: "ClusterRoleBinding system:node".
	LeftOut []string `json:"leftOut"`
}

// auditedUser is a user that acts as kubelet without the name of a node.
type auditedUser struct {
	Username string   `json:"username"`
	Nodes    []string `json:"nodes"`
	Count    int      `json:"count"`
}

func (u *auditedUser) String() string {
	nodes := cmp.Or(some(u.Nodes), "none")
	return fmt.Sprintf("in the audit log %q acts as kubelet for %s: %s", u.Username, nodes, render.Count(u.Count, "request"))
}

// auditedNode is a node that others act for.
type auditedNode struct {
	Name string `json:"name"`
}

// AuditedRefusal is a request of a kubelet that was, or would be, refused.
type AuditedRefusal struct {
	Node        string `json:"node"`
	Identity    string `json:"identity"`
	Verb        string `json:"verb"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource"`
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
	// By is who refuses: "authorization", the name of an authorizer, "NodeRestriction",
	// or in a log "admission".
	By     string    `json:"by"`
	Code   string    `json:"code"`
	Caveat string    `json:"caveat"`
	Count  int       `json:"count"`
	First  time.Time `json:"first"`
	Last   time.Time `json:"last"`
}

// String returns one line: "worker-1: get secrets shop/db (NoPathToObject), 12 times".
func (r AuditedRefusal) String() string {
	what := r.Verb + " " + r.Resource
	if r.Subresource != "" {
		what += "/" + r.Subresource
	}
	switch {
	case r.Name != "":
		what += " " + qualified(r.Namespace, r.Name)
	case r.Namespace != "":
		what += " in " + r.Namespace
	}
	if r.Code != "" {
		what += " (" + r.Code + ")"
	}
	return fmt.Sprintf("%s: %s, %s", cmp.Or(r.Node, r.Identity), what, render.Count(r.Count, "time"))
}

func (r *AuditedRefusal) ofAdmission() bool {
	return r.By == pluginNodeRestriction || r.By == "admission"
}

// persists reports whether a refusal is not transient. Transient refusals occur when a kubelet
// requests an object of a pod just before or after the pod exists.
func (r *AuditedRefusal) persists() bool { return r.Last.Sub(r.First) >= 10*time.Minute }

const auditKind = "AuditReport"

// ReadAudit parses the output of "node-authorizer audit -o json".
func ReadAudit(text []byte) (*Audit, error) {
	var shape struct {
		APIVersion     string         `json:"apiVersion"`
		Kind           string         `json:"kind"`
		Totals         jsontext.Value `json:"totals"`
		WouldBeRefused jsontext.Value `json:"wouldBeRefused"`
		Nodes          jsontext.Value `json:"nodes"`
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, notAReport(io.EOF)
	}
	if err := json.Unmarshal(text, &shape); err != nil {
		return nil, notAReport(err)
	}
	if shape.APIVersion != render.DocumentVersion || shape.Kind != auditKind {
		return nil, fmt.Errorf("apiVersion %q, kind %q: want %s, %s, which \"node-authorizer audit -o json\" writes",
			shape.APIVersion, shape.Kind, render.DocumentVersion, auditKind)
	}
	if shape.Totals == nil || shape.WouldBeRefused == nil || shape.Nodes == nil {
		return nil, errors.New("no totals, wouldBeRefused and nodes in it: want what \"node-authorizer audit -o json\" writes")
	}
	var audit Audit
	if err := json.Unmarshal(text, &audit); err != nil {
		return nil, notAReport(err)
	}
	return &audit, nil
}

func notAReport(err error) error {
	return fmt.Errorf("not a report as \"node-authorizer audit -o json\" writes it: %w", strictjson.Explain(err))
}

func (a *Audit) span() time.Duration {
	if a.Totals.First == nil || a.Totals.Last == nil {
		return 0
	}
	return a.Totals.Last.Sub(*a.Totals.First)
}

// shows reports whether the log shows that the kubelet of a node authenticates as the node. The
// report counts such nodes and names only the others, so that the log must have as many
// nodes as the cluster.
func (a *Audit) shows(node string, nodes int) bool {
	if a == nil {
		return false
	}
	never := slices.ContainsFunc(a.Nodes.NeverConforming, func(n auditedNode) bool { return n.Name == node })
	counted := a.Nodes.Conforming + len(a.Nodes.NeverConforming) + len(a.Nodes.Silent)
	return !never && !slices.Contains(a.Nodes.Silent, node) && a.Nodes.NotTold == 0 && counted == nodes
}

func (e *examination) inLog() {
	if e.options.Audit == nil {
		return
	}
	for _, i := range e.options.Audit.Nonconforming {
		e.found(finding.Finding{
			Code: KubeletNotANode, Severity: finding.Error, Place: finding.Place{Object: "audit report", Key: "nonconforming"},
			Subject:     i.Username,
			Message:     i.String(),
			Consequence: notANode,
			Remedy:      ownName,
		})
	}
}

// auditPolicy logs the requests of kubelets with any username, and the written objects that
// NodeRestriction reads. It does not log secrets.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None  # they are no kubelets
  userGroups: ["system:serviceaccounts"]
- level: None
  users: ["system:apiserver", "system:kube-controller-manager", "system:kube-scheduler"]
- level: Metadata  # never what is secret
  resources:
  - {group: "", resources: ["secrets", "configmaps", "serviceaccounts/token"]}
  - {group: "authentication.k8s.io"}
- level: Request  # what NodeRestriction looks at
  userGroups: ["system:nodes"]
  verbs: ["create", "update", "patch", "delete"]
  resources:
  - {group: "", resources: ["nodes", "nodes/status", "pods", "pods/status", "pods/eviction", "persistentvolumeclaims/status"]}
  - {group: "certificates.k8s.io", resources: ["certificatesigningrequests", "podcertificaterequests"]}
  - {group: "storage.k8s.io", resources: ["csinodes", "csinodes/status"]}
  - {group: "resource.k8s.io", resources: ["resourceslices"]}
- level: Metadata
`

func recordNodes() []Action {
	// The policy is a quoted string and not a here-document, because commands are indented,
	// and the end of a here-document must begin its line. YAML allows any indentation.
	file := append([]string{"echo '"}, strings.Split(strings.TrimSuffix(auditPolicy, "\n"), "\n")...)
	file[len(file)-1] += "' > audit-policy.yaml"
	return []Action{
		{Text: "write an audit policy where every API server reads it", Commands: file},
		{Text: "on every API server, one after another: --audit-policy-file=FILE --audit-log-path=/var/log/kubernetes/audit/audit.log " +
			"--audit-log-maxsize=500 --audit-log-maxbackup=10; the file and the folder have to be mounted into its pod"},
	}
}
