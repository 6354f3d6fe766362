package doctor

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
)

const (
	wholeCluster = "testdata/plan/finished.yaml"
	kubeconfig   = "testdata/checks/kubeconfig.yaml"
)

// without is a transport that may not read some resources, which have the names that the doctor
// uses.
type without struct {
	next      http.RoundTripper
	resources []string
}

func (w without) RoundTrip(r *http.Request) (*http.Response, error) {
	if slices.ContainsFunc(w.resources, func(resource string) bool { return isAbout(r.URL.Path, resource) }) {
		body := fmt.Sprintf(
			`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":%q}`,
			r.URL.Path+" is forbidden",
		)
		return &http.Response{
			StatusCode: http.StatusForbidden, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(body)), Request: r,
		}, nil
	}
	r = r.Clone(r.Context())
	query := r.URL.Query()
	query.Del("fieldSelector") // the server selects by names alone
	r.URL.RawQuery = query.Encode()
	return w.next.RoundTrip(r)
}

// isAbout reports whether a path belongs to a resource: "roles.rbac.authorization.k8s.io".
func isAbout(path, resource string) bool {
	name, group, _ := strings.Cut(resource, ".")
	if group == "" {
		return strings.HasPrefix(path, "/api/v1/") && slices.Contains(strings.Split(path, "/"), name)
	}
	return strings.HasPrefix(path, "/apis/"+group+"/") && slices.Contains(strings.Split(path, "/"), name)
}

// restricted reads the cluster of the files from an API server, without rights to some resources.
func restricted(t *testing.T, files []string, resources ...string) *Cluster {
	t.Helper()
	server := fakeapiserver.New(fakeapiserver.Options{})
	t.Cleanup(server.Close)
	for _, file := range files {
		for _, object := range objectsOf(t, readFile(t, file)) {
			if err := server.Put(pathOfObject(t, object), object); err != nil {
				t.Fatal(err)
			}
		}
	}
	config := server.Config()
	config.WrapTransport = func(next http.RoundTripper) http.RoundTripper { return without{next, resources} }
	config = rest.CopyConfig(config)
	c, err := List(context.Background(), config, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func pathOfObject(t *testing.T, object map[string]any) string {
	t.Helper()
	plurals := map[string]string{
		"Pod": "pods", "ConfigMap": "configmaps", "Node": "nodes", "ClusterRole": "clusterroles",
		"ClusterRoleBinding": "clusterrolebindings",
		"Role":               "roles", "RoleBinding": "rolebindings", "CertificateSigningRequest": "certificatesigningrequests",
		"MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
	}
	meta := object["metadata"].(map[string]any)
	version, plural := object["apiVersion"].(string), plurals[object["kind"].(string)]
	if plural == "" {
		t.Fatalf("no path for %v", object["kind"])
	}
	path := "/apis/" + version
	if !strings.Contains(version, "/") {
		path = "/api/" + version
	}
	if namespace, ok := meta["namespace"].(string); ok {
		path += "/namespaces/" + namespace
	}
	return path + "/" + plural + "/" + meta["name"].(string)
}

// wantUndetermined checks that exactly these checks could not be made, and that no output format
// suggests that they were.
func wantUndetermined(t *testing.T, r *Report, want ...CheckID) {
	t.Helper()
	got := []CheckID{}
	for _, c := range r.Undetermined() {
		got = append(got, c.ID)
		for _, m := range c.Missing {
			if m.Reason == "" || m.Remedy == "" {
				t.Errorf("%s lacks %s, and it is not said why or what to do: %+v", c.ID, m.Resource, m)
			}
		}
		if len(c.Missing) == 0 {
			t.Errorf("%s is undetermined for no reason", c.ID)
		}
	}
	if slices.Compare(got, want) != 0 {
		t.Errorf("undetermined are %q, want %q: %v", got, want, r.Missing)
	}
	if len(r.Checks) != r.Summary.Checks || r.Summary.Undetermined != len(got) {
		t.Errorf("the summary is %+v", r.Summary)
	}
	log := sarifOf(t, r)
	if success := at(t, log, "runs", 0, "invocations", 0, "executionSuccessful"); success != (len(got) == 0) {
		t.Errorf("executionSuccessful is %v, and undetermined are %q", success, got)
	}
	notifications, _ := at(t, log, "runs", 0, "invocations", 0, "toolExecutionNotifications").([]any)
	for _, id := range got {
		if !slices.ContainsFunc(notifications, func(n any) bool {
			return at(t, n, "level") == "error" && at(t, n, "descriptor", "id") == "undetermined/"+string(id)
		}) {
			t.Errorf("SARIF does not say that %s could not be made: %v", id, notifications)
		}
	}
	var page bytes.Buffer
	if err := render.Write(&page, r, render.Options{Format: render.Table}); err != nil {
		t.Fatal(err)
	}
	headline := strings.Split(page.String(), "\n")[1]
	if strings.Contains(headline, "could not be made") != (len(got) > 0) {
		t.Errorf("the headline is %q, and undetermined are %q", headline, got)
	}
}

// TestEachRightThatIsMissing removes each right that the doctor uses: no check that needs it may be
// reported as made.
func TestEachRightThatIsMissing(t *testing.T) {
	off := filepath.Join(t.TempDir(), "off.yaml")
	text := strings.ReplaceAll(readFile(t, wholeCluster), "    - --enable-admission-plugins=NodeRestriction\n", "")
	if err := os.WriteFile(off, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	rights := []string{
		"configmaps", resourceMappings, "nodes", resourceRequests, "clusterroles." + rbacv1.GroupName,
		"clusterrolebindings." + rbacv1.GroupName,
		"roles." + rbacv1.GroupName, "rolebindings." + rbacv1.GroupName, "pods", resourceWebhooks,
	}
	for _, what := range (&lister{client: fake.NewClientset()}).listings() {
		if !slices.Contains(rights, what.resource) && !strings.HasPrefix(what.resource, "pods in ") {
			t.Errorf("%s is read, and no case takes the right away", what.resource)
		}
	}
	view := []string{ // resources that the role view does not allow
		resourceMappings, "nodes", resourceRequests, "clusterroles." + rbacv1.GroupName, "clusterrolebindings." + rbacv1.GroupName,
		"roles." + rbacv1.GroupName, "rolebindings." + rbacv1.GroupName,
	}
	for _, test := range []struct {
		name    string
		cluster string
		rights  []string
		want    []CheckID
	}{
		{name: "nothing", cluster: wholeCluster, want: []CheckID{}},
		{name: "aws-auth", cluster: wholeCluster, rights: rights[0:1], want: []CheckID{CheckMappings, CheckNodes}},
		{name: "identity mappings", cluster: wholeCluster, rights: rights[1:2], want: []CheckID{CheckMappings, CheckNodes}},
		{name: "nodes", cluster: wholeCluster, rights: rights[2:3], want: []CheckID{CheckNodes, CheckKubelets}},
		{name: "certificate requests", cluster: wholeCluster, rights: rights[3:4], want: []CheckID{CheckNodes, CheckKubelets}},
		{name: "cluster roles", cluster: wholeCluster, rights: rights[4:5], want: []CheckID{CheckNodes, CheckKubelets, CheckBindings}},
		{
			name: "cluster role bindings", cluster: wholeCluster, rights: rights[5:6],
			want: []CheckID{CheckNodes, CheckKubelets, CheckBindings},
		},
		{name: "roles", cluster: wholeCluster, rights: rights[6:7], want: []CheckID{CheckNodes, CheckKubelets, CheckBindings}},
		{name: "role bindings", cluster: wholeCluster, rights: rights[7:8], want: []CheckID{CheckNodes, CheckKubelets, CheckBindings}},
		{name: "pods", cluster: wholeCluster, rights: rights[8:9], want: []CheckID{CheckAuthorization, CheckAdmission}},
		{name: "webhooks that nobody needs", cluster: wholeCluster, rights: rights[9:10], want: []CheckID{}},
		{name: "webhooks in the plugin's place", cluster: off, rights: rights[9:10], want: []CheckID{CheckAdmission}},
		{
			name: "all that view does not have", cluster: wholeCluster, rights: view,
			want: []CheckID{CheckMappings, CheckNodes, CheckKubelets, CheckBindings},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := restricted(t, []string{test.cluster}, test.rights...)
			if err := c.Add(context.Background(), []string{kubeconfig}, ReadOptions{}); err != nil {
				t.Fatal(err)
			}
			r := Examine(c, Options{ClusterID: "shop", Paths: noPaths(t)})
			wantFindings(t, r.Findings)
			wantUndetermined(t, r, test.want...)
			plan := MakePlan(c, r, nil)
			if len(test.want) > 0 && plan.Complete() && test.name != "webhooks in the plugin's place" {
				t.Errorf("the plan is complete: %+v", plan)
			}
		})
	}
}

// TestEachInputAlone reads one kind of input at a time: only the checks for which it is sufficient
// are made.
func TestEachInputAlone(t *testing.T) {
	whole := objectsIn(t, wholeCluster)
	all := Checks()
	for _, test := range []struct {
		name  string
		texts []string
		made  []CheckID
	}{
		{name: "aws-auth", texts: whole["ConfigMap"], made: []CheckID{CheckMappings}},
		{name: "nodes that name no provider", texts: whole["Node"]},
		{
			name:  "a node that is not of AWS",
			texts: []string{"apiVersion: v1\nkind: Node\nmetadata: {name: worker-1}\nspec: {providerID: \"gce://shop/b/worker-1\"}\n"},
			made:  []CheckID{CheckMappings, CheckNodes, CheckTokens},
		},
		{name: "a node of AWS", texts: []string{nodeText("worker-1", "i-00000000000000001", "worker-1")}},
		{name: "certificate requests", texts: whole["CertificateSigningRequest"]},
		{name: "cluster roles", texts: whole["ClusterRole"], made: nil},
		{name: "cluster roles and their bindings", texts: slices.Concat(whole["ClusterRole"], whole["ClusterRoleBinding"])},
		{
			name:  "all roles and bindings",
			texts: slices.Concat(whole["ClusterRole"], whole["ClusterRoleBinding"], whole["Role"], whole["RoleBinding"]),
			made:  []CheckID{CheckBindings},
		},
		{
			name: "roles, bindings, nodes and requests",
			texts: slices.Concat(
				whole["ClusterRole"], whole["ClusterRoleBinding"], whole["Role"], whole["RoleBinding"], whole["Node"],
				whole["CertificateSigningRequest"],
			),
			made: []CheckID{CheckKubelets, CheckBindings},
		},
		{
			name: "one request of two nodes",
			texts: slices.Concat(
				whole["ClusterRole"], whole["ClusterRoleBinding"], whole["Role"], whole["RoleBinding"], whole["Node"],
				whole["CertificateSigningRequest"][:1],
			),
			made: []CheckID{CheckBindings},
		},
		{name: "API servers", texts: whole["Pod"], made: []CheckID{CheckAuthorization, CheckAdmission}},
		{
			name:  "an API server that knows no tokens",
			texts: []string{apiServer("a", "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction")},
			made:  []CheckID{CheckMappings, CheckNodes, CheckTokens, CheckAuthorization, CheckAdmission},
		},
		{
			name:  "an API server whose authorizers are elsewhere",
			texts: []string{apiServer("a", "--authorization-config=/etc/authz.yaml", "--enable-admission-plugins=NodeRestriction")},
			made:  []CheckID{CheckMappings, CheckNodes, CheckTokens, CheckAdmission},
		},
		{name: "an API server whose flags are in a variable", texts: []string{apiServer("a", "--authorization-mode=Node,RBAC", "$EXTRA")}},
		{name: "a configuration of authorizers", texts: []string{configuration("Node", "RBAC")}, made: []CheckID{CheckAuthorization}},
		{name: "a kubeconfig", texts: []string{readFile(t, kubeconfig)}},
		{
			name: "a kubeconfig and the authenticator", texts: []string{readFile(t, kubeconfig), "clusterID: shop\n"},
			made: []CheckID{CheckTokens},
		},
		{
			name: "a snapshot",
			texts: []string{
				"apiVersion: snapshot.node-authorizer.io/v1alpha1\nkind: Snapshot\nkubernetesVersion: v1.37.1\nrbacReadable: true\n",
			},
			made: []CheckID{CheckBindings},
		},
		{
			name: "a snapshot without rights",
			texts: []string{
				"apiVersion: snapshot.node-authorizer.io/v1alpha1\nkind: Snapshot\nkubernetesVersion: v1.37.1\n" +
					"missing: [{resource: nodes, reason: forbidden}, {group: rbac.authorization.k8s.io, resource: roles, " +
					"reason: forbidden}]\n",
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "input.yaml")
			if err := os.WriteFile(path, []byte(strings.Join(test.texts, "\n---\n")), 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := Read(context.Background(), []string{path}, ReadOptions{})
			if len(test.made) == 0 && err != nil {
				return // nothing to examine is no answer either
			}
			if err != nil {
				t.Fatal(err)
			}
			want := slices.DeleteFunc(slices.Clone(all), func(id CheckID) bool { return slices.Contains(test.made, id) })
			wantUndetermined(t, Examine(c, Options{}), want...)
		})
	}
}

// objectsIn returns the texts of a file's objects by kind.
func objectsIn(t *testing.T, file string) map[string][]string {
	t.Helper()
	texts := map[string][]string{}
	for _, text := range strings.Split(readFile(t, file), "\n---\n") {
		kind := objectsOf(t, text)[0]["kind"].(string)
		texts[kind] = append(texts[kind], text)
	}
	return texts
}

// TestFindingsBelongToTheirChecks: each check counts its own findings, and a check that is not
// selected finds nothing.
func TestFindingsBelongToTheirChecks(t *testing.T) {
	c := readFiles(t, "testdata/plan/fresh.yaml")
	whole := Examine(c, Options{})
	counted := 0
	for _, check := range whole.Checks {
		counted += check.Findings
		alone := Examine(c, Options{Checks: []CheckID{check.ID}})
		if len(alone.Findings) != check.Findings || len(alone.Checks) != 1 || alone.Checks[0].Findings != check.Findings {
			t.Errorf("%s has %d findings, alone %v", check.ID, check.Findings, brief(alone.Findings))
		}
		if alone.Summary.LeftOut != len(Checks())-1 {
			t.Errorf("%s: the summary is %+v", check.ID, alone.Summary)
		}
	}
	if counted != len(whole.Findings) || counted == 0 {
		t.Errorf("%d of %d findings are counted", counted, len(whole.Findings))
	}
}

func TestHeadlines(t *testing.T) {
	for _, test := range []struct {
		summary Summary
		want    string
	}{
		{Summary{Checks: 7}, "nothing found in 7 checks"},
		{Summary{Checks: 1, LeftOut: 6}, "nothing found in 1 check; 6 checks left out"},
		{Summary{Checks: 6, Undetermined: 3}, "nothing found in 3 of 6 checks; 3 checks could not be made"},
		{Summary{Checks: 7, Undetermined: 7}, "nothing could be checked: 7 checks could not be made"},
		{Summary{Errors: 2, Warnings: 1, Checks: 7}, "2 errors, 1 warning in 7 checks"},
		{Summary{Errors: 1, Checks: 7, Undetermined: 1}, "1 error; 1 of 7 checks could not be made"},
		{Summary{Errors: 2, Checks: 8, Undetermined: 7}, "2 errors; 7 of 8 checks could not be made"},
		{Summary{Infos: 1, Checks: 8, Undetermined: 8}, "1 note; 8 of 8 checks could not be made"},
		{Summary{Errors: 1, Checks: 1, Undetermined: 1, LeftOut: 7}, "1 error; the check could not be made; 7 checks left out"},
		{Summary{Errors: 1, Checks: 1, Suppressed: 2}, "1 error in 1 check; 2 known findings"},
	} {
		if got := strings.Join(test.summary.headline(), "; "); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

// TestAnAuditReportShowsKubelets: an audit report about the same nodes replaces missing certificate
// requests.
func TestAnAuditReportShowsKubelets(t *testing.T) {
	report := func(conforming int, silent, never []string) *Audit {
		a := &Audit{}
		a.Nodes.Conforming, a.Nodes.Silent = conforming, silent
		for _, name := range never {
			a.Nodes.NeverConforming = append(a.Nodes.NeverConforming, auditedNode{Name: name})
		}
		return a
	}
	for _, test := range []struct {
		name  string
		audit *Audit
		made  bool
	}{
		{"none", nil, false},
		{"of all nodes", report(3, nil, nil), true},
		{"of fewer nodes", report(2, nil, nil), false},
		{"in which a node is silent", report(2, []string{"worker-3"}, nil), false},
		{"in which somebody else acts for a node", report(2, nil, []string{"worker-3"}), false},
	} {
		c := clusterOf()
		c.Nodes = []Node{{Name: "worker-1"}, {Name: "worker-2"}, {Name: "worker-3"}}
		r := Examine(c, Options{Audit: test.audit, Checks: []CheckID{CheckKubelets}})
		if made := r.Summary.Undetermined == 0; made != test.made {
			t.Errorf("a report %s: made %t, missing %v", test.name, made, r.Missing)
		}
	}
	a, err := ReadAudit([]byte(
		auditHeader + `"totals": {}, "wouldBeRefused": [], "nodes": {}, ` +
			`"nonconforming": [{"username": "kubelet", "nodes": ["worker-1"], "count": 7}]}`,
	))
	if err != nil {
		t.Fatal(err)
	}
	wantFindings(t, Examine(clusterOf(), Options{Audit: a, Checks: []CheckID{CheckKubelets}}).Findings, "error KubeletNotANode kubelet")
}

// TestWebhookThatDecidesForNodesIsUndetermined: the decisions of a webhook are unknown, unless it is
// this project's own.
func TestWebhookThatDecidesForNodesIsUndetermined(t *testing.T) {
	hook := func(name string) string {
		return "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n- {type: Webhook, name: " + name +
			"}\n- {type: RBAC, name: rbac}\n"
	}
	for name, want := range map[string]CheckStatus{"opa": Undetermined, ourAuthorizer: Made} {
		r := Examine(readText(t, hook(name)), Options{Checks: []CheckID{CheckAuthorization}})
		if r.Checks[0].Status != want {
			t.Errorf("webhook %s: %s, %v", name, r.Checks[0].Status, r.Missing)
		}
	}
}

// TestNodeRestrictionInThePluginsPlace: a webhook that applies the rules is not an error.
func TestNodeRestrictionInThePluginsPlace(t *testing.T) {
	server := apiServer("a", "--authorization-mode=Node,RBAC")
	hook := "\n---\n" + readFile(t, "../../deploy/static-pod/webhooks/noderestriction.yaml")
	for _, test := range []struct{ name, text, want string }{
		{"none", server, "error NodeRestrictionOff a"},
		{"the webhook", server + hook, "info NodeRestrictionElsewhere a"},
		{
			"a webhook that may be passed over", server + strings.ReplaceAll(hook, "failurePolicy: Fail", "failurePolicy: Ignore"),
			"error NodeRestrictionOff a",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			wantFindings(t, run(readText(t, test.text), apiServers).Findings, test.want)
		})
	}
}
