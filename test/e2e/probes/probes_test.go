package probes

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/internal/cli"
	"github.com/node-authorizer/node-authorizer/internal/doctor"
	"github.com/node-authorizer/node-authorizer/internal/doctor/probe"
)

// The cluster roles that docs/reference/findings/README.md has for whoever probes, and for nodes and everyone in cases.
const (
	documented = "node-authorizer-probe"
	limited    = "node-authorizer-probe-limited"
)

var (
	group     = rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "system:nodes"}
	everyone  = rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "system:authenticated"}
	anonymous = rbacv1.Subject{Kind: rbacv1.UserKind, Name: "system:anonymous"}
)

// grant is a cluster role for a case, with what shows that authorizers know it.
type grant struct {
	subject rbacv1.Subject
	rules   []rbacv1.PolicyRule
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// asNodesBefore are rights of the role system:node that probes ask about.
func asNodesBefore() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule("", "nodes", "create", "get", "list"), rule("", "pods", "create", "get", "list"), rule("", "secrets", "get", "list"),
		rule("certificates.k8s.io", "certificatesigningrequests", "create"), rule("", "serviceaccounts/token", "create"),
	}
}

// TestOutcomesAreWhatIsConfigured runs the doctor on API servers that are configured in different ways.
func TestOutcomesAreWhatIsConfigured(t *testing.T) {
	refused := []string{
		"write-other-node undetermined", "write-label undetermined", "write-pod undetermined", "certificate undetermined",
		"audience undetermined",
	}
	for _, test := range []struct {
		rule   string
		world  *world
		grants []grant
		// role is the role of prober; empty for the documented one.
		role string
		// outcomes are those that differ from holds; findings are codes.
		outcomes, findings []string
		status             int
	}{
		{rule: "as kubeadm sets it up, everything holds", world: standard},
		{rule: "and shows with constrained impersonation", world: standard, role: limited},
		{rule: "with node-authorizer's server everything holds", world: ours},
		{
			rule: "without the right to impersonate", world: standard, role: "reviews", outcomes: refused, status: 2,
		},
		{
			rule: "without the right to create reviews", world: standard, role: "reads", status: 2,
			outcomes: append([]string{
				"everyone undetermined", "node-identity undetermined", "secret undetermined", "secrets undetermined",
				"approval undetermined", "other-node undetermined", "all-pods undetermined",
			}, append(slices.Clone(refused), "anonymous undetermined")...),
		},
		{
			rule: "a role of the group reads what all nodes have", world: standard, status: 1,
			grants: []grant{{group, []rbacv1.PolicyRule{
				rule("", "secrets", "get", "list"), rule("", "nodes", "get"), rule("", "pods", "list"),
			}}},
			outcomes: []string{
				"secret doesNotHold group", "secrets doesNotHold group", "other-node doesNotHold group", "all-pods doesNotHold group",
			},
			findings: []string{"NodesReadNodesAndPods", "NodesReadSecrets"},
		},
		{
			rule: "a role of the group gives audiences and approvals", world: standard, status: 1,
			grants: []grant{{group, []rbacv1.PolicyRule{
				rule("", "*", "request-serviceaccounts-token-audience"), rule("certificates.k8s.io", "signers", "approve"),
				rule("certificates.k8s.io", "certificatesigningrequests/approval", "update"),
			}}},
			outcomes: []string{"approval doesNotHold", "audience doesNotHold audience"},
			findings: []string{"NodesGrantCertificates", "NodesRequestAnyAudience"},
		},
		{
			rule: "callers without a credential list pods", world: standard, status: 1,
			grants:   []grant{{anonymous, []rbacv1.PolicyRule{rule("", "pods", "list")}}},
			outcomes: []string{"anonymous doesNotHold"}, findings: []string{"AnonymousAccess"},
		},
		{
			rule: "callers without a credential list APIs", world: standard, status: 1,
			grants:   []grant{{anonymous, []rbacv1.PolicyRule{{NonResourceURLs: []string{"/api"}, Verbs: []string{"get"}}}}},
			outcomes: []string{"anonymous doesNotHold discovery"}, findings: []string{"AnonymousAccess"},
		},
		{
			rule: "feature gates, and no anonymous requests", world: gates, status: 1,
			outcomes: []string{"certificate doesNotHold", "audience doesNotHold"},
			findings: []string{"NodeIsolationGate", "NodeIsolationGate"},
		},
		{
			rule: "neither the Node authorizer nor NodeRestriction, and nodes without rights", world: rbacOnly, status: 1,
			outcomes: append([]string{"node-identity doesNotHold"}, refused...), findings: []string{"NodeAuthorizationOff"},
		},
		{
			rule: "and with rights of the group", world: rbacOnly, status: 1, grants: []grant{{group, asNodesBefore()}},
			outcomes: []string{
				"node-identity doesNotHold group", "secret doesNotHold group", "secrets doesNotHold group", "other-node doesNotHold group",
				"all-pods doesNotHold group", "write-other-node doesNotHold", "write-label doesNotHold", "write-pod doesNotHold",
				"certificate doesNotHold", "audience doesNotHold",
			},
			findings: []string{"NodeRestrictionOff", "NodesReadNodesAndPods", "NodesReadSecrets"},
		},
		{
			rule: "everyone is administrator", world: rbacOnly, status: 1,
			grants: []grant{{everyone, []rbacv1.PolicyRule{rule("*", "*", "*")}}},
			outcomes: []string{
				"everyone doesNotHold everyone", "node-identity doesNotHold everyone", "secret doesNotHold everyone",
				"secrets doesNotHold everyone", "approval doesNotHold everyone", "other-node doesNotHold everyone",
				"all-pods doesNotHold everyone", "write-other-node doesNotHold", "write-label doesNotHold", "write-pod doesNotHold",
				"certificate doesNotHold", "audience doesNotHold",
			},
			findings: []string{"AlwaysAllow", "NodeRestrictionOff"},
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			for i, g := range test.grants {
				test.world.grant(t, fmt.Sprintf("case-%d", i), g)
			}
			user, role := prober, cmp.Or(test.role, documented)
			if role == limited {
				user = constrained
			}
			test.world.grant(t, role, grant{rbacv1.Subject{Kind: rbacv1.UserKind, Name: user}, roleOf(t, role)})
			report, status := test.world.doctor(t, user)
			var outcomes, findings []string
			for _, p := range report.Probes {
				if p.Outcome != probe.Holds {
					outcomes = append(outcomes, strings.TrimSpace(fmt.Sprintf("%s %s %s", p.ID, p.Outcome, p.Cause)))
				}
			}
			for _, f := range report.Findings {
				findings = append(findings, string(f.Code))
			}
			slices.Sort(findings)
			if !slices.Equal(outcomes, test.outcomes) || !slices.Equal(findings, test.findings) || status != test.status {
				t.Errorf("exit status %d, want %d\nfindings %q\nwant %q", status, test.status, findings, test.findings)
				t.Errorf("outcomes\n  %s\nwant\n  %s", strings.Join(outcomes, "\n  "), strings.Join(test.outcomes, "\n  "))
				for _, p := range report.Probes {
					t.Logf("%s %s: %s", p.ID, p.Outcome, p.Why)
				}
			}
		})
	}
}

// roleOf returns the rules of a role of docs/reference/findings/README.md, or a part of them.
func roleOf(t *testing.T, name string) []rbacv1.PolicyRule {
	t.Helper()
	reads, reviews := rule("", "nodes", "get", "list"), rule("authorization.k8s.io", "subjectaccessreviews", "create")
	switch name {
	case "reads":
		return []rbacv1.PolicyRule{reads, rule("", "pods", "get", "list")}
	case "reviews":
		return []rbacv1.PolicyRule{reads, reviews, rule("", "pods", "get", "list")}
	}
	page, err := os.ReadFile("../../../docs/reference/findings/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(page, -1) {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal(block[1], &role); err == nil && role.Kind == "ClusterRole" && role.Name == name {
			return role.Rules
		}
	}
	t.Fatalf("docs/reference/findings/README.md has no ClusterRole %s", name)
	return nil
}

// grant gives a subject a role until the test ends, and waits until the API server knows both.
func (w *world) grant(t *testing.T, name string, g grant) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: g.rules}
	if _, err := w.admin.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := w.bind(t.Context(), name, name, g.subject); err != nil {
		t.Fatal(err)
	}
	spec := asking(g)
	if err := w.until(t.Context(), true, spec); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.Background()
		for _, err := range []error{
			w.admin.RbacV1().ClusterRoleBindings().Delete(ctx, name, metav1.DeleteOptions{}),
			w.admin.RbacV1().ClusterRoles().Delete(ctx, name, metav1.DeleteOptions{}),
			w.until(ctx, false, spec),
		} {
			if err != nil {
				t.Error(err)
			}
		}
	})
}

// asking returns a review about the last rule of a grant.
func asking(g grant) authorizationv1.SubjectAccessReviewSpec {
	last := g.rules[len(g.rules)-1]
	spec := authorizationv1.SubjectAccessReviewSpec{User: "whoever", Groups: []string{g.subject.Name}}
	if g.subject.Kind == rbacv1.UserKind {
		spec.User, spec.Groups = g.subject.Name, nil
	}
	if len(last.NonResourceURLs) > 0 {
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: last.NonResourceURLs[0], Verb: last.Verbs[0]}
		return spec
	}
	a := &authorizationv1.ResourceAttributes{Group: last.APIGroups[0], Verb: last.Verbs[0]}
	a.Resource, a.Subresource, _ = strings.Cut(last.Resources[0], "/")
	if len(last.ResourceNames) > 0 {
		a.Name = last.ResourceNames[0]
	}
	spec.ResourceAttributes = a
	return spec
}

// doctor runs the doctor as a user, and fails the test if something was changed.
func (w *world) doctor(t *testing.T, user string) (report *doctor.Report, status int) {
	t.Helper()
	before, size := w.objects(t), w.audit.Size()
	var stdout, stderr bytes.Buffer
	status = cli.Main([]string{
		"node-authorizer", "doctor", "--probe", "--checks", "authorization,admission", "--kubeconfig", w.kubeconfigs[user], "-o", "json",
	}, strings.NewReader(""), &stdout, &stderr)
	if err := json.Unmarshal(stdout.Bytes(), &report); err != nil {
		t.Fatalf("exit status %d: %v: %s", status, err, stderr.String())
	}
	if after := w.objects(t); !maps.Equal(before, after) {
		t.Errorf("objects were\n%v\nand are\n%v", before, after)
	}
	w.wantNoChanges(t, size)
	for _, secret := range []string{"eyJ", "PRIVATE KEY"} {
		if strings.Contains(stdout.String()+stderr.String(), secret) {
			t.Errorf("the output has %q", secret)
		}
	}
	return report, status
}

// wantNoChanges checks the requests in the audit log: reads, access reviews, dry runs, and requests for
// tokens that failed.
func (w *world) wantNoChanges(t *testing.T, after int64) {
	t.Helper()
	events, err := w.audit.Events(after)
	if err != nil {
		t.Fatal(err)
	}
	sent := map[string]int{}
	for _, e := range events {
		switch uri := e.RequestURI; {
		case e.Verb == "get" || e.Verb == "list":
			sent["read"]++
		case e.Verb == "create" && strings.HasSuffix(uri, "accessreviews"):
			sent["review"]++
		case e.Verb == "create" && strings.Contains(uri, "/token?dryRun="):
			sent["token"]++
			if e.ResponseStatus.Code < 400 {
				t.Errorf("a token was issued: %s", uri)
			}
		case e.Verb == "create" && strings.HasSuffix(uri, "?dryRun=All"):
			sent["dry run"]++
		case e.Verb == "create" && strings.Contains(uri, "?dryRun=") && e.ResponseStatus.Code >= 400:
			sent["check of dryRun"]++
		default:
			t.Errorf("%s %s as %+v: %d", e.Verb, uri, e.ImpersonatedUser, e.ResponseStatus.Code)
		}
	}
	if sent["read"] == 0 {
		t.Error("the audit log has no requests")
	}
	t.Logf("requests: %v", sent)
}

// objects returns the resource versions of all objects that probes could change.
func (w *world) objects(t *testing.T) map[string]string {
	t.Helper()
	versions := map[string]string{}
	for _, path := range []string{
		"/api/v1/nodes", "/api/v1/pods", "/api/v1/secrets", "/api/v1/serviceaccounts", "/api/v1/namespaces", "/api/v1/configmaps",
		"/apis/certificates.k8s.io/v1/certificatesigningrequests", "/apis/rbac.authorization.k8s.io/v1/clusterroles",
		"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", "/apis/resource.k8s.io/v1/resourceslices", "/api/v1/events",
	} {
		text, err := w.admin.Discovery().RESTClient().Get().AbsPath(path).DoRaw(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var list metav1.PartialObjectMetadataList
		if err := json.Unmarshal(text, &list); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			versions[path+" "+list.Items[i].Namespace+"/"+list.Items[i].Name] = list.Items[i].ResourceVersion
		}
	}
	return versions
}
