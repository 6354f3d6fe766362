package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// apiServer returns the static pod of an API server with flags.
func apiServer(name string, flags ...string) string {
	var command strings.Builder
	for _, flag := range flags {
		fmt.Fprintf(&command, "    - %q\n", flag)
	}
	return fmt.Sprintf(`---
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: kube-system}
spec:
  containers:
  - name: kube-apiserver
    image: registry.k8s.io/kube-apiserver:v1.37.1
    command:
    - kube-apiserver
%s`, name, command.String())
}

// configuration returns an AuthorizationConfiguration with authorizers of the given types.
func configuration(types ...string) string {
	var list strings.Builder
	for i, t := range types {
		fmt.Fprintf(&list, "- type: %s\n  name: a%d\n", t, i)
	}
	return "---\napiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n" + list.String()
}

func TestFindingsAboutAPIServerFlags(t *testing.T) {
	const restriction = "--enable-admission-plugins=NodeRestriction"
	for _, test := range []struct {
		name  string
		flags []string
		want  []string
	}{
		{name: "as kubeadm sets it up", flags: []string{"--authorization-mode=Node,RBAC", restriction}},
		{name: "the flag twice", flags: []string{"--authorization-mode=Node", "--authorization-mode=RBAC", restriction}},
		{
			name:  "values apart",
			flags: []string{"--authorization-mode", "Node,RBAC", "--enable-admission-plugins", "LimitRanger,NodeRestriction"},
		},
		{
			name:  "the old list of plugins",
			flags: []string{"--authorization-mode=Node,RBAC", "--admission-control=NamespaceLifecycle,NodeRestriction"},
		},
		{
			name: "RBAC alone", flags: []string{"--authorization-mode=RBAC", restriction},
			want: []string{"error NodeAuthorizationOff kube-apiserver-a"},
		},
		{
			name: "RBAC and a webhook", flags: []string{"--authorization-mode=Webhook,RBAC", restriction},
			want: []string{"info NodeAuthorizationElsewhere kube-apiserver-a"},
		},
		{name: "no flag at all", flags: []string{restriction}, want: []string{"error AlwaysAllow kube-apiserver-a"}},
		{
			name: "AlwaysAllow first", flags: []string{"--authorization-mode=AlwaysAllow,Node,RBAC", restriction},
			want: []string{"error AlwaysAllow kube-apiserver-a", "error AuthorizationOrder kube-apiserver-a"},
		},
		{
			name: "AlwaysAllow last", flags: []string{"--authorization-mode=Node,RBAC,AlwaysAllow", restriction},
			want: []string{"error AlwaysAllow kube-apiserver-a"},
		},
		{
			name: "AlwaysDeny first", flags: []string{"--authorization-mode=AlwaysDeny,Node,RBAC", restriction},
			want: []string{"error AuthorizationOrder kube-apiserver-a"},
		},
		{
			name: "Node without RBAC", flags: []string{"--authorization-mode=Node", restriction},
			want: []string{"error NodeWithoutRBAC kube-apiserver-a"},
		},
		{
			name: "Node and a webhook without RBAC", flags: []string{"--authorization-mode=Node,Webhook", restriction},
			want: []string{"warning NodeWithoutRBAC kube-apiserver-a"},
		},
		{
			name: "RBAC before Node", flags: []string{"--authorization-mode=RBAC,Node", restriction},
			want: []string{"warning AuthorizationOrder kube-apiserver-a"},
		},
		{name: "a webhook before Node", flags: []string{"--authorization-mode=Webhook,Node,RBAC", restriction}},
		{name: "a webhook between", flags: []string{"--authorization-mode=Node,Webhook,RBAC", restriction}},
		{
			name: "an authorizer twice", flags: []string{"--authorization-mode=Node,RBAC,Node", restriction},
			want: []string{"error AuthorizationModeInvalid kube-apiserver-a"},
		},
		{
			name: "an unknown authorizer", flags: []string{"--authorization-mode=Node,RBAC,Roles", restriction},
			want: []string{"error AuthorizationModeInvalid kube-apiserver-a"},
		},
		{
			name: "no NodeRestriction", flags: []string{"--authorization-mode=Node,RBAC"},
			want: []string{"error NodeRestrictionOff kube-apiserver-a"},
		},
		{
			name: "NodeRestriction off", flags: []string{"--authorization-mode=Node,RBAC", "--disable-admission-plugins=NodeRestriction"},
			want: []string{"error NodeRestrictionOff kube-apiserver-a"},
		},
		{
			name:  "flags beside the configuration",
			flags: []string{"--authorization-config=/etc/authz.yaml", "--authorization-webhook-config-file=/etc/hook", restriction},
			want:  []string{"error BothConfigAndFlags kube-apiserver-a"},
		},
		{
			name: "gates",
			flags: []string{
				"--authorization-mode=Node,RBAC", restriction, "--feature-gates=AuthorizeNodeWithSelectors=false,CSIVolumeHealth=true",
			},
			want: []string{"warning NodeIsolationGate kube-apiserver-a"},
		},
		{
			name:  "gates that are as they are",
			flags: []string{"--authorization-mode=Node,RBAC", restriction, "--feature-gates=AuthorizeNodeWithSelectors=true"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			report := run(readText(t, apiServer("kube-apiserver-a", test.flags...)), apiServers)
			wantFindings(t, report.Findings, test.want...)
			for _, f := range report.Findings {
				if f.Place.Line == 0 || !strings.HasPrefix(f.Place.Key, "--") {
					t.Errorf("%s is at %v, without line or flag", f.Code, f.Place)
				}
			}
		})
	}
}

func TestRemediesKeepExistingFlags(t *testing.T) {
	report := run(
		readText(t, apiServer("a", "--authorization-mode=ABAC,RBAC,Webhook", "--enable-admission-plugins=LimitRanger,PodSecurity")),
		apiServers,
	)
	for _, want := range []string{
		"--authorization-mode=ABAC,Node,RBAC,Webhook", "--enable-admission-plugins=LimitRanger,PodSecurity,NodeRestriction",
	} {
		found := false
		for _, f := range report.Findings {
			found = found || strings.Contains(f.Remedy, want)
		}
		if !found {
			t.Errorf("no remedy is %s: %v", want, report.Findings)
		}
	}
}

func TestAuthorizationConfigurations(t *testing.T) {
	server := apiServer("a", "--authorization-config=/etc/kubernetes/authz.yaml", "--enable-admission-plugins=NodeRestriction")
	for _, test := range []struct {
		name    string
		files   map[string]string
		want    []string
		missing string
	}{
		{name: "in order", files: map[string]string{"authz.yaml": configuration("Node", "RBAC"), "pod.yaml": server}},
		{
			name: "alone", files: map[string]string{"authz.yaml": configuration("RBAC")},
			want: []string{"error NodeAuthorizationOff DIR/authz.yaml"}, missing: "does not show the flags",
		},
		{
			name: "without Node", files: map[string]string{"authz.yaml": configuration("RBAC"), "pod.yaml": server},
			want: []string{"error NodeAuthorizationOff a"},
		},
		{
			name: "under another name", files: map[string]string{"other.yaml": configuration("RBAC"), "pod.yaml": server},
			want: []string{"error NodeAuthorizationOff a"},
		},
		{
			name: "one of two, by its name",
			files: map[string]string{
				"authz.yaml": configuration("Node", "RBAC"), "other.yaml": configuration("AlwaysAllow"), "pod.yaml": server,
			},
		},
		{
			name:    "one of two, neither of its name",
			files:   map[string]string{"x.yaml": configuration("Node", "RBAC"), "y.yaml": configuration("AlwaysAllow"), "pod.yaml": server},
			missing: "/etc/kubernetes/authz.yaml",
		},
		{name: "not given", files: map[string]string{"pod.yaml": server}, missing: "/etc/kubernetes/authz.yaml"},
		{
			name: "with an unknown field",
			files: map[string]string{
				"authz.yaml": strings.Replace(configuration("Node", "RBAC"), "  name:", "  nam:", 1), "pod.yaml": server,
			},
			want: []string{"error AuthorizationConfigInvalid a"}, missing: "cannot be read",
		},
		{
			name:  "which allows everything",
			files: map[string]string{"authz.yaml": configuration("Node", "AlwaysAllow"), "pod.yaml": server},
			want:  []string{"error AlwaysAllow a"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			var paths []string
			for name, text := range test.files {
				path := filepath.Join(dir, name)
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				paths = append(paths, path)
			}
			report := run(readFiles(t, paths...), apiServers)
			for i := range test.want {
				test.want[i] = strings.Replace(test.want[i], "DIR", dir, 1)
			}
			wantFindings(t, report.Findings, test.want...)
			if test.missing == "" && len(report.Missing) > 0 ||
				test.missing != "" && (len(report.Missing) != 1 || !strings.Contains(report.Missing[0].Reason, test.missing)) {
				t.Errorf("missing %v, want %q", report.Missing, test.missing)
			}
		})
	}
}

func TestAPIServersThatDiffer(t *testing.T) {
	const restriction = "--enable-admission-plugins=NodeRestriction"
	a := apiServer("a", "--authorization-mode=Node,RBAC", restriction)
	for _, test := range []struct {
		name, other string
		want        []string
	}{
		{name: "alike", other: apiServer("b", "--authorization-mode=Node,RBAC", restriction)},
		{
			name: "in authorizers", other: apiServer("b", "--authorization-mode=RBAC", restriction),
			want: []string{"error NodeAuthorizationOff b", "warning APIServersDiffer b"},
		},
		{
			name: "in admission", other: apiServer("b", "--authorization-mode=Node,RBAC"),
			want: []string{"error NodeRestrictionOff b", "warning APIServersDiffer b"},
		},
		{
			name:  "in who knows tokens",
			other: apiServer("b", "--authorization-mode=Node,RBAC", restriction, "--authentication-token-webhook-config-file=/etc/hook"),
			want:  []string{"warning APIServersDiffer b"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			wantFindings(t, run(readText(t, a+test.other), apiServers).Findings, test.want...)
		})
	}
}

func TestMappingsWithoutATokenWebhook(t *testing.T) {
	const mappings = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: aws-auth, namespace: kube-system}\ndata: {mapRoles: \"[]\"}\n"
	flags := []string{"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction"}
	wantFindings(t, run(readText(t, mappings+apiServer("a", flags...)), apiServers).Findings, "warning TokenWebhookMissing a")
	flags = append(flags, "--authentication-token-webhook-config-file=/etc/kubernetes/webhook.yaml")
	wantFindings(t, run(readText(t, mappings+apiServer("a", flags...)), apiServers).Findings)
}

func TestWithoutAPIServersTheirChecksAreUndetermined(t *testing.T) {
	report := run(&Cluster{}, apiServers)
	if len(report.Findings) > 0 || len(report.Missing) != 1 || report.Missing[0].Resource != resourceAPIServers {
		t.Errorf("findings %v, missing %v", report.Findings, report.Missing)
	}
}
