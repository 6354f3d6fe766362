package doctor

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

// TestDistributions reads the API server configuration of each distribution. Missing input makes
// checks undetermined. The golden files have the reports.
func TestDistributions(t *testing.T) {
	const folder = "testdata/distributions"
	for _, test := range []struct {
		golden       string
		files        []string
		want         []string
		undetermined []CheckID
	}{
		{"openshift.alone.txt", []string{"openshift/pod.yaml"}, nil, []CheckID{CheckAuthorization, CheckAdmission}},
		{"openshift.txt", []string{"openshift/pod.yaml", "openshift/config.yaml"}, nil, nil},
		{
			"openshift.overridden.txt",
			[]string{"openshift/pod.yaml", "openshift/overridden.yaml"},
			[]string{
				"error NodeAuthorizationOff kube-apiserver-master-0", "error NodeRestrictionOff kube-apiserver-master-0",
				"warning NodeIsolationGate kube-apiserver-master-0",
			},
			nil,
		},
		{"k3s.txt", []string{"k3s/etc/rancher/k3s/config.yaml"}, nil, nil},
		{
			"k3s.installed.txt",
			[]string{"k3s/etc/rancher/k3s", "../../../../deploy/static-pod/apiserver/authorization.yaml"},
			[]string{"info NodeAuthorizationElsewhere FOLDER/k3s/etc/rancher/k3s/config.yaml.d/node-authorizer.yaml"},
			nil,
		},
		{"k3s.dropin.txt", []string{
			"k3s/etc/rancher/k3s/config.yaml.d/node-authorizer.yaml", "../../../../deploy/static-pod/apiserver/authorization.yaml",
		}, []string{
			"info NodeAuthorizationElsewhere FOLDER/k3s/etc/rancher/k3s/config.yaml.d/node-authorizer.yaml",
		}, []CheckID{CheckAdmission}},
		{
			"k3s.replaced.txt",
			[]string{"k3s/replaced"},
			[]string{"error NodeRestrictionOff FOLDER/k3s/replaced/config.yaml.d/10-admission.yaml"},
			nil,
		},
		{"k3s.node.txt", []string{"k3s/node.yaml"}, []string{"error NodeAuthorizationOff edge-1", "warning NodeIsolationGate edge-1"}, nil},
		{"k3s.pod.txt", []string{"k3s/pod.yaml"}, []string{"error AlwaysAllow virtual"}, nil},
		{"k3s.mounted.txt", []string{"k3s/mounted.yaml"}, nil, []CheckID{CheckAuthorization, CheckAdmission}},
		{"rke2.txt", []string{"rke2/pod.yaml"}, nil, nil},
		{
			"rke2.config.txt",
			[]string{"rke2/etc/rancher/rke2"},
			[]string{"error NodeAuthorizationOff FOLDER/rke2/etc/rancher/rke2/config.yaml"},
			nil,
		},
		{"talos.txt", []string{"talos/controlplane.yaml"}, nil, nil},
		{"talos.webhook.txt", []string{"talos/webhook.yaml"}, []string{"warning NodeIsolationGate cp-1"}, nil},
		{"talos.mode.txt", []string{"talos/mode.yaml"}, []string{"error AlwaysAllow cp-1", "error NodeRestrictionOff cp-1"}, nil},
		{"talos.pod.txt", []string{"talos/pod.yaml"}, nil, []CheckID{CheckAuthorization}},
		{"talos.both.txt", []string{"talos/pod.yaml", "talos/controlplane.yaml", "talos/worker.yaml"}, nil, nil},
	} {
		t.Run(test.golden, func(t *testing.T) {
			var paths []string
			for _, file := range test.files {
				paths = append(paths, filepath.Join(folder, file))
			}
			r := runWith(readFiles(t, paths...), apiServers, Options{})
			for i := range test.want {
				test.want[i] = strings.ReplaceAll(test.want[i], "FOLDER", folder)
			}
			wantFindings(t, r.Findings, test.want...)
			wantUndetermined(t, r, test.undetermined...)
			var page bytes.Buffer
			if err := render.Write(&page, r, render.Options{Format: render.Table}); err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join(folder, test.golden)
			if os.Getenv("UPDATE_GOLDEN") != "" {
				if err := os.WriteFile(golden, page.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want := readFile(t, golden); page.String() != want {
				t.Errorf("%s:\n%s\nwant\n%s", golden, page.String(), want)
			}
		})
	}
}

// TestALiveOpenShift reads the pods and the configuration from OpenShift's namespace, and reports
// what is unknown if these may not be read.
func TestALiveOpenShift(t *testing.T) {
	files := []string{"testdata/distributions/openshift/pod.yaml", "testdata/distributions/openshift/config.yaml"}
	both := []CheckID{CheckAuthorization, CheckAdmission}
	for _, test := range []struct {
		name   string
		files  []string
		rights []string
		want   []CheckID
	}{
		{name: "all rights", files: files},
		{name: "no right to the configuration", files: files, rights: []string{"configmaps"}, want: both},
		{name: "no configuration", files: files[:1], want: both},
		{name: "no right to the pods", files: files, rights: []string{"pods"}, want: both},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := restricted(t, test.files, test.rights...)
			r := runWith(c, apiServers, Options{})
			wantFindings(t, r.Findings)
			wantUndetermined(t, r, test.want...)
		})
	}
}

// TestOptionsOfK3s checks how k3s and RKE2 combine options and defaults.
func TestOptionsOfK3s(t *testing.T) {
	const mode, plugins = "authorization-mode", "enable-admission-plugins"
	for _, test := range []struct {
		values        []string
		modes, enable []string
	}{
		{nil, []string{"Node", "RBAC"}, []string{"NodeRestriction"}},
		{[]string{"--authorization-mode=RBAC"}, []string{"RBAC"}, []string{"NodeRestriction"}},
		{[]string{mode + "=RBAC", mode + "=Webhook"}, []string{"RBAC", "Webhook"}, []string{"NodeRestriction"}},
		{[]string{mode + "+=Webhook"}, []string{"Node", "RBAC", "Webhook"}, []string{"NodeRestriction"}},
		{[]string{mode + "-=Webhook"}, []string{"Webhook", "Node", "RBAC"}, []string{"NodeRestriction"}},
		{[]string{plugins + "=PodSecurity", plugins + "+=LimitRanger"}, []string{"Node", "RBAC"}, []string{"PodSecurity", "LimitRanger"}},
		{[]string{"authorization-config=/etc/authz.yaml"}, nil, []string{"NodeRestriction"}},
	} {
		a := APIServer{Flags: rancherFlags(test.values)}
		if !slices.Equal(a.Flags.list(mode), test.modes) || !slices.Equal(a.Flags.list(plugins), test.enable) {
			t.Errorf("%q: %q, %q", test.values, a.Flags.list(mode), a.Flags.list(plugins))
		}
	}
}

// TestSecretsOfConfigsAreNotShown: the configs of these distributions contain tokens, which no
// error and no report may contain.
func TestSecretsOfConfigsAreNotShown(t *testing.T) {
	for name, text := range map[string]string{
		"talos": "version: v1alpha1\nmachine: {type: controlplane, token: s3cret}\n" +
			"cluster: {secret: s3cret, apiServer: {extraArgs: {a: {b: s3cret}}}}\n",
		"talos two":   "machine: {type: controlplane, token: s3cret}\ncluster: {apiServer: s3cret}\n",
		"talos three": "apiVersion: v1alpha1\nkind: KubeAPIServerConfig\nextraArgs: s3cret\n",
		"talos four":  "apiVersion: v1alpha1\nkind: KubeAPIServerConfig\nextraArgs: {a: {b: s3cret}}\n",
		"talos five":  "apiVersion: v1alpha1\nkind: KubeAuthorizerConfig\nwebhook: s3cret\n",
		"stack":       "Resources: [{Type: AWS::EKS::AccessEntry, x: s3cret}]\n",
		"eksctl":      "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\naccessConfig: {accessEntries: s3cret}\n",
		"k3s":         "token: s3cret\ncluster-init: true\nkube-apiserver-arg: {a: s3cret}\n",
		"openshift":   "apiVersion: kubecontrolplane.config.openshift.io/v1\nkind: KubeAPIServerConfig\napiServerArguments: s3cret\n",
	} {
		path := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Read(context.Background(), []string{path}, ReadOptions{})
		if err == nil || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), "config.yaml") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzDistributions: for any input, reading returns an error with a place, or the checks are made
// or undetermined.
func FuzzDistributions(f *testing.F) {
	for _, file := range []string{
		"openshift/pod.yaml", "openshift/config.yaml", "openshift/overridden.yaml", "k3s/etc/rancher/k3s/config.yaml", "k3s/node.yaml",
		"k3s/pod.yaml", "talos/webhook.yaml", "talos/mode.yaml",
	} {
		text, err := os.ReadFile(filepath.Join("testdata/distributions", file))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(
		"machine: {type: controlplane}\ncluster: {}\n---\napiVersion: v1alpha1\nkind: KubeAPIServerConfig\nextraArgs: {a: b}\n" +
			"---\napiVersion: v1alpha1\nkind: KubeAuthorizerConfig\nname: node\ntype: Node\n",
	))
	f.Add([]byte("apiVersion: kubecontrolplane.config.openshift.io/v1\nkind: i"))
	f.Add([]byte("Resources:\n  N: {Type: \"AWS::EKS::AccessEntry\", Properties: {PrincipalArn: !Ref R}}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Read(context.Background(), []string{"-"}, ReadOptions{Stdin: bytes.NewReader(text)})
		if err != nil {
			if !strings.Contains(err.Error(), "stdin") {
				t.Errorf("an error without a place: %v", err)
			}
			return
		}
		r := Examine(c, Options{Checks: []CheckID{CheckAuthorization, CheckAdmission}})
		for _, check := range r.Checks {
			if (check.Status == Undetermined) != (len(check.Missing) > 0) {
				t.Errorf("%+v", check)
			}
		}
		if len(c.APIServers)+len(c.Authorizations) == 0 && r.Summary.Undetermined != 2 {
			t.Errorf("no API server, and %+v", r.Summary)
		}
	})
}
