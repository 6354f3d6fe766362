package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// writtenFiles writes files: name, text, name, text.
func writtenFiles(t *testing.T, nameAndText ...string) []string {
	t.Helper()
	folder := t.TempDir()
	var paths []string
	for i := 0; i < len(nameAndText); i += 2 {
		path := filepath.Join(folder, nameAndText[i])
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(nameAndText[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

// TestTalosConfigsOfManyDocuments: with a KubeAPIServerConfig, the KubeAuthorizerConfigs
// name all authorizers.
func TestTalosConfigsOfManyDocuments(t *testing.T) {
	const (
		main  = "version: v1alpha1\nmachine: {type: controlplane, token: s3cret}\ncluster: {clusterName: shop}\n"
		api   = "---\napiVersion: v1alpha1\nkind: KubeAPIServerConfig\nimage: registry.k8s.io/kube-apiserver:v1.37.0\n"
		node  = "---\napiVersion: v1alpha1\nkind: KubeAuthorizerConfig\nname: node\ntype: Node\n"
		rbac  = "---\napiVersion: v1alpha1\nkind: KubeAuthorizerConfig\nname: rbac\ntype: RBAC\n"
		host  = "---\napiVersion: v1alpha1\nkind: HostnameConfig\nhostname: cp-1\n"
		patch = "---\napiVersion: v1alpha1\nkind: KubeAuthorizerConfig\nname: node\n$patch: delete\n"
	)
	both := []CheckID{CheckAuthorization, CheckAdmission}
	for _, test := range []struct {
		rule, text   string
		want         []string
		undetermined []CheckID
	}{
		{"Node and RBAC", main + api + node + rbac + host, nil, nil},
		{"without the first document", api + node + rbac, nil, nil},
		{"no authorizer is added", main + api + rbac + host, []string{"error NodeAuthorizationOff cp-1"}, nil},
		{"none at all", main + api + host, []string{"error NodeAuthorizationOff cp-1"}, nil},
		{
			"NodeRestriction is off", main + api + "extraArgs: {disable-admission-plugins: NodeRestriction}\n" + node + rbac + host,
			[]string{"error NodeRestrictionOff cp-1"},
			nil,
		},
		{"authorizers alone are a part", node + rbac, nil, both},
		{"authorizers beside cluster.apiServer", main + node + rbac, nil, both},
		{"a patch is a part", main + api + node + rbac + patch, nil, both},
	} {
		t.Run(test.rule, func(t *testing.T) {
			r := runWith(readFiles(t, writtenFiles(t, "cp.yaml", test.text)...), apiServers, Options{})
			wantFindings(t, r.Findings, test.want...)
			wantUndetermined(t, r, test.undetermined...)
		})
	}
}

// TestUnitsOfSystemd reads the commands of systemd units.
func TestUnitsOfSystemd(t *testing.T) {
	unit := func(lines ...string) string {
		return "[Unit]\nDescription=Kubernetes\n\n[Service]\nType=notify\nExecStartPre=-/sbin/modprobe overlay\n" +
			strings.Join(lines, "\n") + "\n\n[Install]\nWantedBy=multi-user.target\n"
	}
	both := []CheckID{CheckAuthorization, CheckAdmission}
	for _, test := range []struct {
		rule         string
		files        []string
		want         []string
		undetermined []CheckID
	}{
		{
			"k3s without options also reads a config file",
			[]string{"k3s.service", unit("ExecStart=/usr/local/bin/k3s \\", "    server \\", "")},
			nil, both,
		},
		{
			"its options replace those of the file",
			[]string{
				"k3s.service",
				unit("ExecStart=/usr/local/bin/k3s \\", "    server \\", "\t'--kube-apiserver-arg=authorization-mode=RBAC' \\", ""),
			},
			[]string{"error NodeAuthorizationOff k3s.service"},
			nil,
		},
		{
			"k3s without options, and its config file",
			[]string{
				"k3s.service", unit("ExecStart=/usr/local/bin/k3s server"), "etc/rancher/k3s/config.yaml",
				"write-kubeconfig-mode: \"0644\"\n",
			},
			nil, nil,
		},
		{
			"the last command counts, with its prefix",
			[]string{
				"rke2-server.service",
				unit(
					"ExecStart=/usr/bin/old", "ExecStart=",
					`ExecStart=-/usr/local/bin/rke2 server --kube-apiserver-arg "authorization-mode=AlwaysAllow"`,
				),
			},
			[]string{"error AlwaysAllow rke2-server.service"},
			nil,
		},
		{
			"kube-apiserver itself",
			[]string{
				"kube-apiserver.service",
				unit(
					"ExecStart=/usr/local/bin/kube-apiserver \\", "  --authorization-mode=Node,RBAC \\", "  # a comment within",
					"  --enable-admission-plugins=NodeRestriction",
				),
			},
			nil, nil,
		},
		{
			"flags in a variable",
			[]string{"kube-apiserver.service", unit("EnvironmentFile=/etc/default/k8s", "ExecStart=/usr/local/bin/kube-apiserver $ARGS")},
			nil, both,
		},
		{
			"a server without kube-apiserver",
			[]string{"k3s.service", unit("ExecStart=/usr/local/bin/k3s server --disable-apiserver"), "rbac.yaml", leftBinding},
			nil, both,
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			r := runWith(readFiles(t, writtenFiles(t, test.files...)...), apiServers, Options{})
			for i := range r.Findings {
				r.Findings[i].Subject = filepath.Base(r.Findings[i].Subject)
			}
			wantFindings(t, r.Findings, test.want...)
			wantUndetermined(t, r, test.undetermined...)
		})
	}
}

func TestUnitsOfAFolderAreRead(t *testing.T) {
	paths := writtenFiles(
		t, "system/k3s.service", "[Service]\nExecStart=/usr/local/bin/k3s server --kube-apiserver-arg=authorization-mode=RBAC\n",
		"rbac.yaml", leftBinding,
	)
	r := runWith(readFiles(t, filepath.Dir(paths[1])), apiServers, Options{})
	wantFindings(t, r.Findings, "error NodeAuthorizationOff k3s.service")
}

func TestUnitWithoutAServerIsAnError(t *testing.T) {
	for rule, text := range map[string]string{
		"an agent":        "[Service]\nExecStart=/usr/local/bin/k3s agent\n",
		"another program": "[Service]\nExecStart=/usr/bin/containerd\n",
		"no command":      "[Service]\nType=oneshot\n",
	} {
		_, err := Read(t.Context(), writtenFiles(t, "x.service", text), ReadOptions{})
		if err == nil || !strings.Contains(err.Error(), "x.service: want aws-auth") {
			t.Errorf("%s: %v", rule, err)
		}
	}
}

// TestAccessEntriesOfTemplates reads access entries of CloudFormation and eksctl. Values that only
// they can resolve are reported, and the mappings are undetermined.
func TestAccessEntriesOfTemplates(t *testing.T) {
	const (
		role     = "arn:aws:iam::111122223333:role/node"
		template = "AWSTemplateFormatVersion: \"2010-09-09\"\nResources:\n  Bucket: {Type: \"AWS::S3::Bucket\"}\n  Nodes:\n" +
			"    Type: AWS::EKS::AccessEntry\n    Properties:\n      ClusterName: !Ref Cluster\n      Type: EC2_LINUX\n" +
			"      PrincipalArn: "
		eksctl  = "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {name: shop, region: eu-west-1}\n"
		entries = "accessConfig:\n  accessEntries:\n  - principalARN: " + role +
			"\n    type: EC2_LINUX\n  - principalARN: arn:aws:iam::111122223333:role/ops\n    kubernetesUsername: ops\n" +
			"    kubernetesGroups: [view]\n"
	)
	for _, test := range []struct {
		rule, name, text string
		roles            []string
		undetermined     string
	}{
		{"CloudFormation", "stack.yaml", template + role + "\n", []string{role + " nodes"}, ""},
		{
			"as JSON", "stack.json",
			`{"Resources": {"Nodes": {"Type": "AWS::EKS::AccessEntry", "Properties": {"PrincipalArn": "` + role +
				`", "Type": "EC2_LINUX"}}}}`,
			[]string{role + " nodes"},
			"",
		},
		{"a principal that the stack makes", "stack.yaml", template + "!GetAtt Role.Arn\n", nil, "the PrincipalArn of Nodes"},
		{"in the long form", "stack.yaml", template + "{\"Fn::GetAtt\": [Role, Arn]}\n", nil, "the PrincipalArn of Nodes"},
		{"eksctl", "cluster.yaml", eksctl + entries, []string{role + " nodes", "arn:aws:iam::111122223333:role/ops others"}, ""},
		{
			"mappings of eksctl", "cluster.yaml", eksctl + "iamIdentityMappings:\n- arn: " + role + "\n  username: x\n", nil,
			"iamIdentityMappings",
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			report := run(readFiles(t, writtenFiles(t, test.name, test.text, "aws-auth.yaml", awsAuthText())...), awsAuth)
			var roles []string
			for _, r := range report.Roles {
				roles = append(roles, r.ARN+" "+string(r.Purpose))
			}
			if strings.Join(roles, ", ") != strings.Join(test.roles, ", ") {
				t.Errorf("roles: %q", roles)
			}
			named := ""
			for _, c := range report.Checks {
				for _, m := range c.Missing {
					if m.Resource == accessEntrySourceName && c.ID == CheckMappings {
						named += m.Reason
					}
				}
			}
			if (named != "") != (test.undetermined != "") || !strings.Contains(named, test.undetermined) {
				t.Errorf("undetermined: %q, want %q", named, test.undetermined)
			}
		})
	}
}
