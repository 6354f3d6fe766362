package replay

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/audit/auditlog"
	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
)

// evaluators returns evaluators for testdata/cluster.yaml after the move to Node
// authorization.
func evaluators(t *testing.T) *Evaluators {
	t.Helper()
	state, err := source.LoadFiles(t.Context(), []string{"testdata/cluster.yaml"}, source.FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if left := LeaveOutSystemNode(state.RBAC); len(left) != 1 || left[0] != "ClusterRoleBinding system:node" {
		t.Fatalf("left out %v", left)
	}
	evaluator, err := evaluate.New(t.Context(), state, evaluate.Options{Features: kubeversion.For(kubeversion.Latest)})
	if err != nil {
		t.Fatal(err)
	}
	return &Evaluators{Evaluator: evaluator}
}

// auditLog builds a log line by line.
type auditLog struct {
	lines strings.Builder
	made  int
}

// entry describes a line. The defaults describe an allowed request of a kubelet.
type entry struct {
	user, agent, source, stage, id string
	groups                         []string
	as                             string // impersonated
	asGroups                       []string
	verb, uri                      string
	object                         map[string]string // objectRef
	written                        string            // requestObject
	code                           int
	decision, reason, message      string // "-" for no decision
}

const agent = "kubelet/v1.37.1 (linux/amd64) kubernetes/5c9f8ab"

func (l *auditLog) add(e entry) {
	l.made++
	or := func(text, otherwise string) string {
		if text == "" {
			return otherwise
		}
		return text
	}
	// All stages of a request have the time at which it was received.
	second, err := strconv.Atoi(e.id)
	if err != nil {
		second = l.made
	}
	at := time.Date(2026, 1, 31, 12, 0, second, 0, time.UTC).Format("2006-01-02T15:04:05.000000Z")
	event := map[string]any{
		"kind": "Event", "apiVersion": "audit.k8s.io/v1", "stage": or(e.stage, "ResponseComplete"), "auditID": or(e.id, fmt.Sprint(l.made)),
		"requestURI": e.uri, "verb": e.verb, "userAgent": or(e.agent, agent), "sourceIPs": []string{or(e.source, "10.0.0.1")},
		"user":                     map[string]any{"username": e.user, "groups": e.groups},
		"requestReceivedTimestamp": at, "stageTimestamp": at,
	}
	if e.as != "" {
		event["impersonatedUser"] = map[string]any{"username": e.as, "groups": e.asGroups}
	}
	if e.object != nil {
		event["objectRef"] = e.object
	}
	if e.written != "" {
		event["requestObject"] = json.RawMessage(e.written)
	}
	code := e.code
	if code == 0 {
		code = 200
	}
	event["responseStatus"] = map[string]any{"code": code, "message": e.message}
	if e.decision != "-" {
		event["annotations"] = map[string]string{
			"authorization.k8s.io/decision": or(e.decision, "allow"), "authorization.k8s.io/reason": e.reason,
		}
	}
	line, err := json.Marshal(event)
	if err != nil {
		panic(err)
	}
	l.lines.Write(line)
	l.lines.WriteByte('\n')
}

// logOf returns a log with the entries.
func logOf(entries ...entry) string {
	var l auditLog
	for _, e := range entries {
		l.add(e)
	}
	return l.lines.String()
}

func replayed(t *testing.T, ev *Evaluators, log string) *Report {
	t.Helper()
	part, err := Run(t.Context(), []auditlog.File{{Path: auditlog.Stdin}}, ev, auditlog.Options{Stdin: strings.NewReader(log)})
	if err != nil {
		t.Fatal(err)
	}
	if len(part.Read.Broken) > 0 {
		t.Fatal(part.Read.Broken[0])
	}
	return &part.Report
}

// by sets the user and groups of an entry.
func (e entry) by(user string, groups ...string) entry {
	e.user, e.groups = user, append(groups, "system:authenticated")
	return e
}

func (e entry) node(name string) entry { return e.by("system:node:"+name, "system:nodes") }

func getSecret(name string) entry {
	return entry{
		verb: "get", uri: "/api/v1/namespaces/shop/secrets/" + name,
		object: map[string]string{"resource": "secrets", "namespace": "shop", "name": name, "apiVersion": "v1"},
	}
}

func renewLease(node string) entry {
	return entry{
		verb: "update", uri: "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/" + node + "?timeout=10s",
		object: map[string]string{
			"resource": "leases", "namespace": "kube-node-lease", "name": node, "apiGroup": "coordination.k8s.io", "apiVersion": "v1",
		},
	}
}

func patchStatus(node string) entry {
	return entry{
		verb: "patch", uri: "/api/v1/nodes/" + node + "/status?timeout=10s",
		object: map[string]string{"resource": "nodes", "subresource": "status", "name": node, "apiVersion": "v1"},
	}
}
