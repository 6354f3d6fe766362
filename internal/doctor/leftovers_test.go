package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// readText returns a cluster from one file with the text.
func readText(t *testing.T, text string) *Cluster {
	t.Helper()
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return readFiles(t, file)
}

func readFiles(t *testing.T, paths ...string) *Cluster {
	t.Helper()
	c, err := Read(context.Background(), paths, ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// run runs the checks of one family on a cluster.
func run(c *Cluster, look func(*examination)) *Report { return runWith(c, look, Options{}) }

func runWith(c *Cluster, look func(*examination), o Options) *Report {
	for _, f := range families() {
		if reflect.ValueOf(f.run).Pointer() == reflect.ValueOf(look).Pointer() {
			for i := range f.checks {
				o.Checks = append(o.Checks, f.checks[i].id)
			}
		}
	}
	return Examine(c, o)
}

// brief returns severity, code and subject of findings.
func brief(findings []finding.Finding) []string {
	lines := []string{}
	for _, f := range findings {
		lines = append(lines, fmt.Sprintf("%s %s %s", f.Severity, f.Code, f.Subject))
	}
	slices.Sort(lines)
	return lines
}

func wantFindings(t *testing.T, findings []finding.Finding, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := brief(findings); !slices.Equal(got, want) {
		t.Errorf("found\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
		for _, f := range findings {
			t.Log(f)
		}
	}
	for _, f := range findings {
		if f.Message == "" || f.Consequence == "" || f.Remedy == "" || f.Place.Object == "" && f.Place.File == "" {
			t.Errorf("%s lacks its place, message, consequence or remedy: %+v", f.Code, f)
		}
	}
}

func TestDefaultClustersHaveNoLeftovers(t *testing.T) {
	for _, extra := range []string{"", "kubeadm-1.37.yaml", "eks.yaml"} {
		paths := []string{"testdata/default/kubernetes-1.37.yaml"}
		if extra != "" {
			paths = append(paths, filepath.Join("testdata/default", extra))
		}
		c := readFiles(t, paths...)
		if !c.RBACKnown || len(c.Bindings) < 40 {
			t.Fatalf("%v: %d bindings read, known %t", paths, len(c.Bindings), c.RBACKnown)
		}
		report := run(c, leftovers)
		wantFindings(t, report.Findings)
		if len(report.Missing) > 0 {
			t.Errorf("%v: missing %v", paths, report.Missing)
		}
	}
}

// binding writes a binding of one role, which is written with its rules, to subjects.
func bindingText(namespace, subjects string, rules ...string) string {
	kind, metadata := "ClusterRoleBinding", "{name: given}"
	if namespace != "" {
		kind, metadata = "RoleBinding", fmt.Sprintf("{name: given, namespace: %s}", namespace)
	}
	return fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: innocent}
rules: [%s]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: %s
metadata: %s
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: innocent}
subjects: [%s]
`, strings.Join(rules, ", "), kind, metadata, subjects)
}

func TestRightsBesideTheNodeAuthorizer(t *testing.T) {
	const nodes, authenticated = "{kind: Group, name: system:nodes}", "{kind: Group, name: system:authenticated}"
	rule := func(group, resource, verbs string) string {
		return fmt.Sprintf("{apiGroups: [%q], resources: [%q], verbs: [%s]}", group, resource, verbs)
	}
	for _, test := range []struct {
		name, namespace, subjects string
		rules                     []string
		want                      []string
	}{
		{
			name: "nodes read secrets", subjects: nodes, rules: []string{rule("", "secrets", "list")},
			want: []string{"error NodesReadSecrets group system:nodes"},
		},
		{
			name: "nodes watch secrets", subjects: nodes, rules: []string{rule("", "secrets", "watch")},
			want: []string{"error NodesReadSecrets group system:nodes"},
		},
		{name: "nodes write secrets only", subjects: nodes, rules: []string{rule("", "secrets", "create")}},
		{
			name: "nodes read secrets of one namespace", namespace: "shop", subjects: nodes, rules: []string{rule("", "secrets", "get")},
			want: []string{"warning NodesReadSecrets group system:nodes"},
		},
		{
			name: "nodes read secrets of kube-system", namespace: "kube-system", subjects: nodes,
			rules: []string{rule("", "secrets", "get")},
			want:  []string{"error NodesReadSecrets group system:nodes"},
		},
		{
			name: "nodes read one secret", subjects: nodes,
			rules: []string{`{apiGroups: [""], resources: [secrets], resourceNames: [pull], verbs: [get]}`},
			want:  []string{"warning NodesReadSecrets group system:nodes"},
		},
		{
			name: "a rule for all names counts before one for some", subjects: nodes,
			rules: []string{`{apiGroups: [""], resources: [secrets], resourceNames: [pull], verbs: [get]}`, rule("", "secrets", "get")},
			want:  []string{"error NodesReadSecrets group system:nodes"},
		},
		{
			name: "one node reads secrets", subjects: "{kind: User, name: 'system:node:worker-1'}",
			rules: []string{rule("", "secrets", "get")},
			want:  []string{"error NodesReadSecrets user system:node:worker-1"},
		},
		{
			name: "machines that join read secrets", subjects: "{kind: Group, name: 'system:bootstrappers:blue'}",
			rules: []string{rule("", "secrets", "get")},
			want:  []string{"error NodesReadSecrets group system:bootstrappers:blue"},
		},
		{
			name: "all who are authenticated read secrets", subjects: authenticated, rules: []string{rule("", "secrets", "get")},
			want: []string{"error EveryoneReadsSecrets group system:authenticated"},
		},
		{
			name: "without credentials", subjects: "{kind: Group, name: system:unauthenticated}, {kind: User, name: system:anonymous}",
			rules: []string{rule("", "secrets", "get")},
			want:  []string{"error EveryoneReadsSecrets group system:unauthenticated", "error EveryoneReadsSecrets user system:anonymous"},
		},
		{
			name: "all service accounts", subjects: "{kind: Group, name: system:serviceaccounts}",
			rules: []string{rule("", "secrets", "get")},
			want:  []string{"error EveryoneReadsSecrets group system:serviceaccounts"},
		},
		{
			name: "one service account is nobody's business here", subjects: "{kind: ServiceAccount, name: api, namespace: shop}",
			rules: []string{rule("", "secrets", "get")},
		},
		{name: "the group of masters neither", subjects: "{kind: Group, name: system:masters}", rules: []string{rule("*", "*", `"*"`)}},
		{
			name: "nodes are masters", subjects: nodes, rules: []string{rule("*", "*", `"*"`)},
			want: []string{"error NodesMasters group system:nodes"},
		},
		{
			name: "nodes are masters of a namespace", namespace: "shop", subjects: nodes, rules: []string{rule("*", "*", `"*"`)},
			want: []string{"error NodesMasters group system:nodes"},
		},
		{
			name: "everyone is", subjects: authenticated, rules: []string{rule("*", "*", `"*"`)},
			want: []string{"error EveryoneMasters group system:authenticated"},
		},
		{
			name: "nodes read everything", subjects: nodes, rules: []string{rule("*", "*", "get, list")},
			want: []string{
				"warning NodesWildcard group system:nodes", "error NodesReadSecrets group system:nodes",
				"error NodesRunWorkloads group system:nodes",
			},
		},
		{name: "everyone reads all of one group", subjects: authenticated, rules: []string{rule("metrics.k8s.io", "*", "get, list")}},
		{
			name: "nodes escalate", subjects: nodes, rules: []string{rule("rbac.authorization.k8s.io", "clusterroles", "escalate")},
			want: []string{"error NodesEscalate group system:nodes"},
		},
		{
			name: "nodes bind", subjects: nodes, rules: []string{rule("rbac.authorization.k8s.io", "roles", "bind")},
			want: []string{"error NodesEscalate group system:nodes"},
		},
		{
			name: "everyone impersonates", subjects: authenticated, rules: []string{rule("", "groups", "impersonate")},
			want: []string{"error EveryoneEscalates group system:authenticated"},
		},
		{
			name: "nodes make tokens", subjects: nodes, rules: []string{rule("", "serviceaccounts/token", "create")},
			want: []string{"error NodesEscalate group system:nodes"},
		},
		{
			name: "nodes make pods", subjects: nodes, rules: []string{rule("", "pods", "create")},
			want: []string{"error NodesRunWorkloads group system:nodes"},
		},
		{
			name: "nodes make DaemonSets", subjects: nodes, rules: []string{rule("apps", "daemonsets", "patch")},
			want: []string{"error NodesRunWorkloads group system:nodes"},
		},
		{
			name: "everyone enters pods", subjects: authenticated, rules: []string{rule("", "pods/exec", "create")},
			want: []string{"error EveryoneRunsWorkloads group system:authenticated"},
		},
		{
			name: "nodes reach kubelets", subjects: nodes, rules: []string{rule("", "nodes/proxy", "get")},
			want: []string{"error NodesRunWorkloads group system:nodes"},
		},
		{name: "nodes read pods", subjects: nodes, rules: []string{rule("", "pods", "get, list, watch")}},
		{
			name: "nodes approve", subjects: nodes, rules: []string{rule("certificates.k8s.io", "signers", "approve")},
			want: []string{"error NodesGrantCertificates group system:nodes"},
		},
		{
			name: "nodes sign for Kubernetes' signers", subjects: nodes,
			rules: []string{`{apiGroups: [certificates.k8s.io], resources: [signers], resourceNames: ["kubernetes.io/*"], verbs: [sign]}`},
			want:  []string{"error NodesGrantCertificates group system:nodes"},
		},
		{
			name: "or for others", subjects: nodes,
			rules: []string{`{apiGroups: [certificates.k8s.io], resources: [signers], resourceNames: ["example.com/blue"], verbs: [sign]}`},
		},
		{
			name: "nodes get a first certificate of any node's name", subjects: nodes,
			rules: []string{rule("certificates.k8s.io", "certificatesigningrequests/nodeclient", "create")},
			want:  []string{"error NodesGrantCertificates group system:nodes"},
		},
		{
			name: "machines that join are there for it", subjects: "{kind: Group, name: system:bootstrappers}",
			rules: []string{rule("certificates.k8s.io", "certificatesigningrequests/nodeclient", "create")},
		},
		{
			name: "nodes change nodes", subjects: nodes, rules: []string{rule("", "nodes", "patch")},
			want: []string{"warning NodesChangeNodes group system:nodes"},
		},
		{
			name: "everyone does", subjects: authenticated, rules: []string{rule("", "nodes/status", "update")},
			want: []string{"error EveryoneChangesNodes group system:authenticated"},
		},
		{name: "what is in no namespace is not given in one", namespace: "shop", subjects: nodes, rules: []string{
			rule("", "nodes", "patch"), rule("", "nodes/proxy", "get"), rule("", "users", "impersonate"),
			rule("certificates.k8s.io", "signers", "approve"), rule("rbac.authorization.k8s.io", "clusterroles", "escalate"),
		}},
		{
			name: "a cluster role can be bound in one", namespace: "shop", subjects: nodes,
			rules: []string{rule("rbac.authorization.k8s.io", "clusterroles", "bind")},
			want:  []string{"warning NodesEscalate group system:nodes"},
		},
		{
			name: "a node changes itself", subjects: "{kind: User, name: 'system:node:worker-1'}",
			rules: []string{`{apiGroups: [""], resources: [nodes], resourceNames: [worker-1], verbs: [patch]}`},
		},
		{
			name: "nodes have what they had before, under another name", subjects: nodes,
			rules: []string{
				rule("", "nodes", "create, patch"), rule("", "nodes/status", "patch"), rule("", "pods/status", "patch"),
				`{apiGroups: [""], resources: [pods, secrets, configmaps], verbs: [get, list, watch]}`,
			},
			want: []string{"error SystemNodeBinding group system:nodes"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			report := run(readText(t, bindingText(test.namespace, test.subjects, test.rules...)), leftovers)
			wantFindings(t, report.Findings, test.want...)
			for _, f := range report.Findings {
				if f.Place.Line == 0 || !strings.HasPrefix(f.Place.Key, "subjects[") {
					t.Errorf("%s is at %v, without line or subject", f.Code, f.Place)
				}
			}
		})
	}
}

func TestLeftoverOfSystemNode(t *testing.T) {
	const leftover = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "system:node"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:node"}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:nodes"}
`
	for name, c := range map[string]*Cluster{
		"alone":                          readText(t, leftover),
		"with the role as the cluster's": readText(t, readFile(t, "testdata/default/kubernetes-1.37.yaml")+"---"+leftover),
	} {
		report := run(c, leftovers)
		wantFindings(t, report.Findings, "error SystemNodeBinding group system:nodes")
		if f := report.Findings[0]; !strings.HasPrefix(f.Remedy, "not yet: ") ||
			!strings.HasSuffix(f.Remedy, "kubectl delete clusterrolebinding system:node") {
			t.Errorf("%s: remedy %q, want one that waits for the Node authorizer", name, f.Remedy)
		}
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestAssumedRolesGrantTheSameAsTheRealOnes binds each default role to nodes, once with the role
// and once without it.
func TestAssumedRolesGrantTheSameAsTheRealOnes(t *testing.T) {
	policy := readFile(t, "testdata/default/kubernetes-1.37.yaml")
	names := []string{}
	for _, line := range strings.Split(policy, "\n") {
		if name, ok := strings.CutPrefix(line, "  name: "); ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	assumed := 0
	for _, name := range names {
		if _, known := rbac.DefaultRules(rbac.Ref{Kind: "ClusterRole", Name: name}); !known {
			continue
		}
		assumed++
		for _, group := range []string{"system:nodes", "system:authenticated", "system:bootstrappers"} {
			text := fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: given}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %q}
subjects: [{kind: Group, name: %q}]
`, name, group)
			alone, whole := run(readText(t, text), leftovers), run(readText(t, policy+"---"+text), leftovers)
			if a, b := brief(alone.Findings), brief(whole.Findings); !slices.Equal(a, b) {
				t.Errorf("%s for %s: without the role %v, with it %v", name, group, a, b)
			}
		}
	}
	if assumed < 10 {
		t.Errorf("%d roles of the default policy are assumed: %v", assumed, names)
	}
}

func TestRoleThatWasNotGivenIsReported(t *testing.T) {
	const text = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: given}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: elsewhere}
subjects: [{kind: Group, name: "system:nodes"}]
`
	c := readText(t, text)
	report := run(c, leftovers)
	wantFindings(t, report.Findings)
	if len(report.Missing) != 2 || !strings.Contains(report.Missing[0].Reason, `ClusterRole "elsewhere"`) {
		t.Errorf("missing %v, want the role", report.Missing)
	}
	c.Live, c.RBACKnown = true, true
	if report := run(c, leftovers); len(report.Findings)+len(report.Missing) > 0 {
		t.Errorf("a live cluster that has no such role: %v, missing %v", report.Findings, report.Missing)
	}
}

func TestWithdrawal(t *testing.T) {
	for _, test := range []struct {
		binding, subjects, want string
	}{
		{binding: "given", subjects: `{kind: Group, name: "system:nodes"}`, want: "kubectl delete clusterrolebinding given"},
		{
			binding: "given", subjects: `{kind: User, name: ops}, {kind: Group, name: "system:nodes"}`,
			want: `kubectl patch clusterrolebinding given --type=json -p '[{"op":"test","path":"/subjects/1/name",` +
				`"value":"system:nodes"},{"op":"remove","path":"/subjects/1"}]'`,
		},
		{
			binding: `"x; rm -rf ~"`, subjects: `{kind: Group, name: "system:nodes"}`,
			want: "kubectl delete clusterrolebinding 'x; rm -rf ~'",
		},
		{binding: `"it's"`, subjects: `{kind: Group, name: "system:nodes"}`, want: `kubectl delete clusterrolebinding 'it'\''s'`},
	} {
		text := fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [%s]
`, test.binding, test.subjects)
		report := run(readText(t, text), leftovers)
		wantFindings(t, report.Findings, "error NodesMasters group system:nodes")
		if f := report.Findings[0]; !strings.HasSuffix(f.Message, `: ClusterRole "cluster-admin", as every cluster has it: * *`) {
			t.Errorf("message %q, want one that says where the rule is from", f.Message)
		}
		if f := report.Findings[0]; !strings.HasSuffix(f.Remedy, ": "+test.want) {
			t.Errorf("remedy %q, want %q", f.Remedy, test.want)
		}
	}
}
