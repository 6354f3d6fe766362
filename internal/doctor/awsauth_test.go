package doctor

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/internal/finding"
)

// roleEntry returns an entry of mapRoles, of account 111122223333.
func roleEntry(name, username string, groups ...string) string {
	return fmt.Sprintf(
		"- rolearn: arn:aws:iam::111122223333:role/%s\n  username: %s\n  groups: [%s]\n", name, username, strings.Join(groups, ", "),
	)
}

// awsAuthText returns an aws-auth with entries in mapRoles.
func awsAuthText(entries ...string) string {
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: aws-auth, namespace: kube-system}\ndata:\n  mapRoles: |\n"
	for line := range strings.Lines(strings.Join(entries, "")) {
		text += "    " + line
	}
	return text
}

// nodeText returns the Node of an instance.
func nodeText(name, instance, dns string) string {
	return fmt.Sprintf(`
---
apiVersion: v1
kind: Node
metadata: {name: %q}
spec: {providerID: "aws:///eu-west-1a/%s"}
status:
  addresses: [{type: InternalDNS, address: %q}]
`, name, instance, dns)
}

const (
	goodUsername = `"system:node:{{EC2PrivateDNSName}}"`
	bootstrap    = "system:bootstrappers"
	nodes        = "system:nodes"
	masters      = "system:masters"
)

// outcome returns a prediction in short form: registers, Ready, logs and exec, node identity,
// administrator.
func outcome(f RolePrediction) string {
	return fmt.Sprintf("%s %s %s %t %t", f.Registers.Value, f.Ready.Value, f.Serving.Value, f.NodeIdentity, f.ClusterAdmin)
}

// leftBinding grants nodes the rights that they had before the Node authorizer existed.
const leftBinding = `
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "system:node"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:node"}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:nodes"}]
`

func TestFilesWithoutInputForChecksAreAnError(t *testing.T) {
	for name, text := range map[string]string{
		"an empty file":         "",
		"other objects":         "apiVersion: v1\nkind: Service\nmetadata: {name: aws-auth}\n",
		"another config map":    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\ndata: {about: aws-auth}\n",
		"roles that nobody has": "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: view}\n",
	} {
		file := filepath.Join(t.TempDir(), "x.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Read(t.Context(), []string{file}, ReadOptions{})
		if err == nil || !strings.Contains(err.Error(), "x.yaml: want aws-auth") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestASnapshotOfAnotherVersionIsNotRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cluster.snapshot")
	if err := os.WriteFile(file, []byte("apiVersion: snapshot.node-authorizer.io/v2\nkind: Snapshot\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Read(t.Context(), []string{file}, ReadOptions{})
	if err == nil || !strings.Contains(err.Error(), "apiVersion snapshot.node-authorizer.io/v2 is not known to this version") {
		t.Errorf("got %v", err)
	}
}

func TestMissingInputsOfASnapshot(t *testing.T) {
	report := Examine(
		readText(t, "apiVersion: snapshot.node-authorizer.io/v1alpha1\nkind: Snapshot\nkubernetesVersion: v1.36.3\nrbacReadable: true\n"),
		Options{},
	)
	for _, resource := range []string{"configmaps", resourceRequests, resourceAPIServers} {
		if !slices.ContainsFunc(report.Missing, func(m Missing) bool {
			return m.Resource == resource && strings.HasPrefix(m.Reason, "a snapshot ") && strings.Contains(m.Remedy, "--")
		}) {
			t.Errorf("%s: %v", resource, report.Missing)
		}
	}
}

// TestThreeWrongMappingsAndTheRightOne has the outcomes of the three common mistakes and of the
// right mapping, in clusters with and without known roles.
func TestThreeWrongMappingsAndTheRightOne(t *testing.T) {
	type want struct {
		rule, username string
		groups         []string
		outcome        string
		findings       []string
	}
	cases := []want{
		{
			"not a node's name: nothing but certificate requests", "WorkerNodeRole",
			[]string{bootstrap, nodes},
			"no no no false false",
			[]string{"error NodeRoleUsername"},
		},
		{
			"an administrator of another name: no serving certificate", "WorkerNodeRole",
			[]string{masters},
			"yes yes no false true",
			[]string{"error NodeRoleIsAdministrator", "error NodeRoleUsername"},
		},
		{
			"a node's name as administrator: works, not isolated", goodUsername,
			[]string{masters},
			"yes yes yes false true",
			[]string{"error NodeRoleIsAdministrator"},
		},
		{"a node's name and groups", goodUsername, []string{bootstrap, nodes}, "yes yes yes true false", nil},
	}
	clusters := map[string][]string{
		"roles unknown": nil,
		"kubeadm":       {"testdata/default/kubernetes-1.37.yaml", "testdata/default/kubeadm-1.37.yaml"},
		"EKS":           {"testdata/default/kubernetes-1.37.yaml", "testdata/default/eks.yaml"},
	}
	for name, files := range clusters {
		for _, test := range cases {
			t.Run(name+"/"+test.rule, func(t *testing.T) {
				c := readText(t, awsAuthText(roleEntry("node", test.username, test.groups...)))
				if files != nil {
					rest := readFiles(t, files...)
					c.RBAC, c.RBACKnown, c.Bindings = rest.RBAC, rest.RBACKnown, rest.Bindings
				}
				report := run(c, awsAuth)
				if len(report.Roles) != 1 {
					t.Fatalf("%d roles: %+v", len(report.Roles), report.Roles)
				}
				if got := outcome(report.Roles[0]); got != test.outcome {
					t.Errorf("got %s, want %s: %+v", got, test.outcome, report.Roles[0])
				}
				var want []string
				for _, w := range test.findings {
					want = append(want, w+" arn:aws:iam::111122223333:role/node")
				}
				wantFindings(t, report.Findings, want...)
			})
		}
	}
}

// TestPredictionFollowsWhatTheClusterAllows: outcomes depend on the cluster's authorization.
func TestPredictionFollowsWhatTheClusterAllows(t *testing.T) {
	apiServer := func(flags string) string {
		return fmt.Sprintf(
			"\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: kube-apiserver, namespace: kube-system}\nspec:\n  containers:\n"+
				"  - name: kube-apiserver\n    command: [kube-apiserver, %s]\n",
			flags,
		)
	}
	wrong, right := roleEntry("node", "WorkerNodeRole", bootstrap, nodes), roleEntry("node", goodUsername, bootstrap, nodes)
	foreign := roleEntry("node", `"system:node:{{SessionName}}"`, bootstrap, nodes)
	for _, test := range []struct {
		rule, entry, rest, want string
	}{
		{"a binding left over lets any member of system:nodes register", wrong, leftBinding, "yes yes no false false"},
		{
			"without the Node authorizer a node has what RBAC grants", right,
			apiServer("--authorization-mode=RBAC, --enable-admission-plugins=NodeRestriction"), "no no yes true false",
		},
		{
			"a binding is enough without the Node authorizer", right,
			leftBinding + apiServer("--authorization-mode=RBAC, --enable-admission-plugins=NodeRestriction"), "yes yes yes true false",
		},
		{
			"a webhook may allow what the others do not", wrong,
			apiServer("'--authorization-mode=Node,Webhook,RBAC', --enable-admission-plugins=NodeRestriction"),
			"unknown unknown no false false",
		},
		{"AlwaysAllow allows", wrong, apiServer("--authorization-mode=AlwaysAllow"), "yes yes no false false"},
		{"a node of another name may not register", foreign, "", "no no no false false"},
		{"nor keep its Lease without NodeRestriction", foreign, apiServer("'--authorization-mode=Node,RBAC'"), "yes no no false false"},
		{
			"nodes called after their instances", foreign,
			nodeText("i-00000000000000007", "i-00000000000000007", "ip-10-0-0-7.eu-west-1.compute.internal"), "yes yes yes true false",
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			report := run(readText(t, awsAuthText(test.entry)+test.rest), awsAuth)
			if len(report.Roles) != 1 || outcome(report.Roles[0]) != test.want {
				t.Errorf("want %s, got %+v", test.want, report.Roles)
			}
		})
	}
}

func TestFindingsAboutRoles(t *testing.T) {
	const arn = "arn:aws:iam::111122223333:role/"
	ec2 := nodeText("ip-10-0-0-7.eu-west-1.compute.internal", "i-00000000000000007", "ip-10-0-0-7.eu-west-1.compute.internal")
	right := roleEntry("node", goodUsername, bootstrap, nodes)
	adminNamedLikeNodes := roleEntry("shop-nodegroup-NodeInstanceRole-1ABC", "ops", masters)
	for _, test := range []struct {
		rule, text string
		want       []string
	}{
		{"nothing is wrong", awsAuthText(right, roleEntry("Admin", "admin", masters)) + ec2, nil},
		{
			"one name for all", awsAuthText(roleEntry("node", "system:node:worker-1", bootstrap, nodes)),
			[]string{"error NodeRoleUsernameFixed " + arn + "node"},
		},
		{
			"the instance's id", awsAuthText(roleEntry("node", `"system:node:{{SessionName}}"`, bootstrap, nodes)) + ec2,
			[]string{"error NodeRoleUsernameIsInstanceID " + arn + "node"},
		},
		{
			"the instance's id, as it is", awsAuthText(roleEntry("node", `"system:node:{{SessionNameRaw}}"`, bootstrap, nodes)) + ec2,
			[]string{"error NodeRoleUsernameIsInstanceID " + arn + "node"},
		},
		{
			"a node that is not called after its DNS name",
			awsAuthText(right) + nodeText("worker-1", "i-00000000000000007", "ip-10-0-0-7.eu-west-1.compute.internal"),
			[]string{"error NodeRoleUsernameOfOtherNode " + arn + "node"},
		},
		{
			"no group of nodes", awsAuthText(roleEntry("node", goodUsername, bootstrap)),
			[]string{"error NodeRoleWithoutNodesGroup " + arn + "node"},
		},
		{"no group at all", awsAuthText(roleEntry("node", goodUsername)), []string{"error NodeRoleWithoutNodesGroup " + arn + "node"}},
		{"nobody is a node", awsAuthText(roleEntry("Admin", "admin", masters)), []string{"error NoNodeRole "}},
		{"nobody is mapped", awsAuthText(), []string{"error NoNodeRole "}},
		{"an administrator called like a node", awsAuthText(right, adminNamedLikeNodes), []string{
			"error NodeRoleUsername " + arn + "shop-nodegroup-NodeInstanceRole-1ABC",
			"error NodeRoleIsAdministrator " + arn + "shop-nodegroup-NodeInstanceRole-1ABC",
		}},
		{
			"the path of a role", awsAuthText(roleEntry("teams/a/node", goodUsername, bootstrap, nodes)),
			[]string{"error MappingRolePath " + arn + "teams/a/node"},
		},
		{"the same role twice", awsAuthText(roleEntry("node", "x", nodes), right), []string{"warning MappingDuplicate " + arn + "node"}},
		{
			"a template with a space", awsAuthText(roleEntry("node", `"system:node:{{ EC2PrivateDNSName }}"`, bootstrap, nodes)),
			[]string{"error MappingTemplateSpaced " + arn + "node"},
		},
		{"YAML that empties a key", awsAuthText("- rolearn: [\n"), []string{"error MappingSyntax "}},
		{
			"a key in another case",
			awsAuthText(right) + "  mapusers: |\n    - userarn: arn:aws:iam::111122223333:user/ada\n      username: ada\n",
			[]string{"error MappingUnknownKey "},
		},
		{
			"another partition",
			awsAuthText(right, strings.ReplaceAll(roleEntry("node-cn", goodUsername, bootstrap, nodes), "arn:aws:", "arn:aws-cn:")) + ec2,
			[]string{"error MappingPartition arn:aws-cn:iam::111122223333:role/node-cn"},
		},
		{
			"another account than most",
			awsAuthText(right, roleEntry("node-b", goodUsername, bootstrap, nodes), strings.ReplaceAll(
				roleEntry("node-c", goodUsername, bootstrap, nodes), "111122223333", "444455556666",
			)),
			[]string{"warning RoleAccount arn:aws:iam::444455556666:role/node-c"},
		},
		{
			"a Fargate profile",
			awsAuthText(
				right,
				"- rolearn: arn:aws:eks:eu-west-1:111122223333:fargateprofile/shop/default/1234\n"+
					"  username: \"system:node:{{SessionName}}\"\n"+
					"  groups: [system:bootstrappers, system:nodes, system:node-proxier]\n",
			),
			[]string{"error FargateProfileARN arn:aws:eks:eu-west-1:111122223333:fargateprofile/shop/default/1234"},
		},
		{
			"Fargate",
			awsAuthText(roleEntry("AmazonEKSFargatePodExecutionRole", `"system:node:{{SessionName}}"`, bootstrap, nodes, groupNodeProxier)),
			nil,
		},
		{
			"Fargate with the username of instances",
			awsAuthText(roleEntry("AmazonEKSFargatePodExecutionRole", goodUsername, bootstrap, nodes)),
			[]string{"error FargateUsername " + arn + "AmazonEKSFargatePodExecutionRole"},
		},
		{
			"Fargate without its proxier",
			awsAuthText(roleEntry("AmazonEKSFargatePodExecutionRole", `"system:node:{{SessionName}}"`, bootstrap, nodes)),
			[]string{"warning FargateWithoutNodeProxier " + arn + "AmazonEKSFargatePodExecutionRole"},
		},
		{
			"an aws-auth in another namespace", strings.Replace(awsAuthText(right), "kube-system", "shop", 1),
			[]string{"warning AWSAuthNotRead "},
		},
		{
			"two of them", awsAuthText(roleEntry("node-a", goodUsername, bootstrap, nodes)) + "---\n" + awsAuthText(right),
			[]string{"warning AWSAuthNotRead "},
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			wantFindings(t, run(readText(t, test.text), awsAuth).Findings, test.want...)
		})
	}
}

// TestRolesSeenInRequests: certificate requests of kubelets show their roles.
func TestRolesSeenInRequests(t *testing.T) {
	const name, arn = "ip-10-0-0-7.eu-west-1.compute.internal", "arn:aws:iam::111122223333:role/Compute"
	request := CertificateRequest{Name: "csr-1", CommonName: "system:node:" + name, Requester: "system:node:" + name, RoleARN: arn}
	node := nodeText(name, "i-00000000000000007", name)
	for _, test := range []struct {
		rule, text string
		want       []string
	}{
		{
			"a role without entry, whose node is there", awsAuthText(roleEntry("node", goodUsername, bootstrap, nodes)) + node,
			[]string{"error NodeRoleMissing " + arn},
		},
		{"a role without entry, whose node is gone", awsAuthText(roleEntry("node", goodUsername, bootstrap, nodes)), nil},
		{"a role with its entry in another case", awsAuthText(roleEntry("COMPUTE", goodUsername, bootstrap, nodes)) + node, nil},
		{
			"a role that is not called like one of nodes", awsAuthText(roleEntry("Compute", "ops", masters)) + node,
			[]string{"error NodeRoleIsAdministrator " + arn, "error NodeRoleUsername " + arn},
		},
		{
			"instances with the username of Fargate",
			awsAuthText(roleEntry("Compute", `"system:node:{{SessionName}}"`, bootstrap, nodes, groupNodeProxier)) + node,
			[]string{"error FargateUsername " + arn},
		},
		{"mappings that cannot be read accuse nobody", awsAuthText("- rolearn: [\n") + node, []string{"error MappingSyntax "}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			c := readText(t, test.text)
			c.Requests = []CertificateRequest{request}
			wantFindings(t, run(c, awsAuth).Findings, test.want...)
		})
	}
}

func TestNodesThatStayReadyAreMappedElsewhere(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	const node = "ip-10-0-0-7.eu-west-1.compute.internal"
	for _, test := range []struct {
		name   string
		change func(*Cluster)
		want   finding.Severity
	}{
		{"long after the edit", func(*Cluster) {}, finding.Info},
		{"just after the edit", func(c *Cluster) { c.AWSAuth.Changed = now.Add(-10 * time.Minute) }, finding.Error},
		{"when nobody knows of the edit", func(c *Cluster) { c.AWSAuth.Changed = time.Time{} }, finding.Error},
		{"in files", func(c *Cluster) { c.Live = false }, finding.Error},
		{"unless one is not", func(c *Cluster) { c.Nodes[0].Ready = corev1.ConditionUnknown }, finding.Error},
		{"unless there is none", func(c *Cluster) { c.Nodes = nil }, finding.Error},
	} {
		request := asks("system:node:"+node, "system:node:"+node, nodes)
		request.RoleARN = "arn:aws:iam::111122223333:role/other"
		c := clusterOf(request.approved())
		c.Nodes = []Node{{Name: node, ProviderID: "aws:///eu-west-1a/i-0123456789abcdef0", Ready: corev1.ConditionTrue}}
		c.AWSAuth = &ConfigMap{Data: map[string]string{"mapRoles": roleEntry("admin", "admin", masters)}, Changed: now.Add(-2 * time.Hour)}
		test.change(c)
		found := map[finding.Code]bool{}
		for _, f := range Examine(c, Options{Now: now}).Findings {
			found[f.Code] = true
			if (f.Code == NodeRoleMissing || f.Code == NoNodeRole) && f.Severity != test.want {
				t.Errorf("%s: %s is %s: %s", test.name, f.Code, f.Severity, f.Message)
			}
		}
		if !found[NoNodeRole] || found[NodeRoleMissing] != (len(c.Nodes) > 0) {
			t.Errorf("%s: found %v", test.name, found)
		}
	}
}

func TestTokensAreMadeForWhatIsAccepted(t *testing.T) {
	kubeconfig := func(command string, args ...string) string {
		return fmt.Sprintf(
			"apiVersion: v1\nkind: Config\nusers:\n- name: kubelet\n  user:\n    token: secret-of-the-kubeconfig\n"+
				"    exec: {apiVersion: client.authentication.k8s.io/v1, command: %s, args: [%s]}\n---\n",
			command, strings.Join(args, ", "),
		)
	}
	const (
		reference = "clusterID: shop\nserver: {partition: aws}\n"
		pod       = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: auth, namespace: kube-system}\n" +
			"spec: {template: {spec: {containers: [{name: a, command: [/aws-iam-authenticator, server, --cluster-id, " + "shop]}]}}}\n"
		configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: aws-iam-authenticator, namespace: kube-system}\ndata:\n" +
			"  config.yaml: |\n    clusterID: shop\n"
	)
	for _, test := range []struct {
		rule, text string
		want       []string
	}{
		{"the same id", kubeconfig("aws-iam-authenticator", "token", "-i", "shop") + reference, nil},
		{"another id", kubeconfig("aws-iam-authenticator", "token", "-i", "blue") + reference, []string{"error ClusterIDMismatch blue"}},
		{
			"another id, of our program, to our server", kubeconfig("/usr/bin/node-authorizer", "token", "--cluster-id=shop") + ours,
			[]string{"error ClusterIDMismatch shop"},
		},
		{
			"another id, of the AWS CLI, to a workload", kubeconfig("aws", "eks", "get-token", "--cluster-name", "blue") + pod,
			[]string{"error ClusterIDMismatch blue"},
		},
		{
			"another id, to what a ConfigMap says", kubeconfig("aws-iam-authenticator", "token", "--cluster-id", "blue") + configMap,
			[]string{"error ClusterIDMismatch blue"},
		},
		{"nobody to compare with", kubeconfig("aws-iam-authenticator", "token", "-i", "blue"), nil},
		{"a program that makes other tokens", kubeconfig("gke-gcloud-auth-plugin", "--cluster-id", "blue") + reference, nil},
		{
			"STS of another partition", kubeconfig("aws-iam-authenticator", "token", "-i", "shop", "--region", "cn-north-1") + reference,
			[]string{"error STSHostMismatch cn-north-1"},
		},
		{"STS of the same partition", kubeconfig("aws-iam-authenticator", "token", "-i", "shop", "--region", "eu-west-1") + reference, nil},
	} {
		t.Run(test.rule, func(t *testing.T) {
			report := run(readText(t, test.text), awsAuth)
			wantFindings(t, report.Findings, test.want...)
			for _, f := range report.Findings {
				if strings.Contains(f.String()+f.Consequence+f.Remedy, "secret-of") {
					t.Errorf("a secret of the kubeconfig is in %v", f)
				}
			}
		})
	}
}

func TestPathsAreMatchedAsTheAuthenticatorDoes(t *testing.T) {
	text := awsAuthText(roleEntry("teams/a/node", goodUsername, bootstrap, nodes))
	for _, test := range []struct{ rule, config, want string }{
		{"aws-iam-authenticator", "", "no no no false false"},
		{"node-authorizer", ours, "yes yes yes true false"},
		{"node-authorizer, exactly", strings.Replace(ours, "partition: aws", "rolePaths: Exact", 1), "no no no false false"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			report := run(readText(t, text+test.config), awsAuth)
			if len(report.Roles) != 1 || outcome(report.Roles[0]) != test.want {
				t.Errorf("want %s, got %+v", test.want, report.Roles)
			}
		})
	}
}

// TestPlacesAreLinesOfTheFile checks the lines of findings in a ConfigMap within a list.
func TestPlacesAreLinesOfTheFile(t *testing.T) {
	c := readFiles(t, "testdata/awsauth/list.yaml")
	places := map[string]int{}
	for _, f := range run(c, awsAuth).Findings {
		places[string(f.Code)+" "+f.Place.Key] = f.Place.Line
		if f.Place.File != "testdata/awsauth/list.yaml" || f.Place.Object != "ConfigMap kube-system/aws-auth" {
			t.Errorf("%s is at %+v", f.Code, f.Place)
		}
	}
	want := map[string]int{
		"NodeRoleUsername data.mapRoles[0].username":      20,
		"MappingTemplateSpaced data.mapRoles[1].username": 25,
		"NodeRoleIsAdministrator data.mapRoles[2].groups": 30,
	}
	if len(places) != len(want) {
		t.Errorf("found %v, want %v", places, want)
	}
	for what, line := range want {
		if places[what] != line {
			t.Errorf("%s is on line %d, want %d", what, places[what], line)
		}
	}
}

// TestOtherSources has mappings that are not in aws-auth.
func TestOtherSources(t *testing.T) {
	identity := func(name, arn, username string) string {
		return fmt.Sprintf(
			"---\napiVersion: iamauthenticator.k8s.aws/v1alpha1\nkind: IAMIdentityMapping\nmetadata: {name: %s}\nspec:\n"+
				"  arn: %s\n  username: %s\n  groups: [system:bootstrappers, system:nodes]\n",
			name, arn, username,
		)
	}
	const arn = "arn:aws:iam::111122223333:role/"
	for _, test := range []struct {
		rule, text string
		roles      []string
		want       []string
	}{
		{
			"custom resources",
			identity("a", arn+"node-a", goodUsername) + identity("b", arn+"node-b", "WorkerNodeRole") +
				identity("c", arn+"node-c", `"{{ SessionName }}"`),
			[]string{"node-a:2 yes yes yes true false", "node-b:10 no no no false false", "node-c:18 no no no false false"},
			[]string{"error NodeRoleUsername " + arn + "node-b", "error MappingTemplateSpaced " + arn + "node-c"},
		},
		{
			"aws-iam-authenticator's own file",
			"# own\nclusterID: shop\nserver:\n  mapRoles:\n  - rolearn: " + arn +
				"node-a\n    username: WorkerNodeRole\n    groups: [system:nodes]\n",
			[]string{"node-a:5 no no no false false"},
			[]string{"error NodeRoleUsername " + arn + "node-a"},
		},
		{
			"its file in a ConfigMap",
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: aws-iam-authenticator, namespace: kube-system}\ndata:\n" +
				"  config.yaml: |\n    clusterID: shop\n    server:\n      mapRoles:\n      - rolearn: " + arn +
				"node-a\n        username: WorkerNodeRole\n        groups: [system:nodes]\n",
			[]string{"node-a:9 no no no false false"},
			[]string{"error NodeRoleUsername " + arn + "node-a"},
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			report := run(readText(t, test.text), awsAuth)
			var roles []string
			for _, r := range report.Roles {
				roles = append(roles, fmt.Sprintf("%s:%d %s", roleName(r.ARN), r.Place.Line, outcome(r)))
			}
			if !slices.Equal(roles, test.roles) {
				t.Errorf("roles are\n  %s\nwant\n  %s", strings.Join(roles, "\n  "), strings.Join(test.roles, "\n  "))
			}
			wantFindings(t, report.Findings, test.want...)
		})
	}
}

// FuzzExamine: any input that can be read can be examined, and every finding has a place.
func FuzzExamine(f *testing.F) {
	f.Add([]byte(awsAuthText(roleEntry("node", goodUsername, bootstrap, nodes)) + nodeText("a", "i-00000000000000007", "b")))
	f.Add([]byte(awsAuthText(roleEntry("teams/node", `"{{ AccountID }}"`, masters), "- rolearn: [\n")))
	f.Add([]byte("clusterID: a\nserver: {mapRoles: [{rolearn: 'arn:aws:iam::1:role/', username: x}]}\n"))
	f.Add([]byte(leftBinding))
	f.Add([]byte("kind: C\n"))
	f.Add([]byte(""))
	f.Add([]byte("clusterID: a\nserver: h\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Read(t.Context(), []string{"-"}, ReadOptions{Stdin: bytes.NewReader(text)})
		if err != nil {
			if !strings.Contains(err.Error(), "stdin") {
				t.Errorf("an error without a place: %v", err)
			}
			return
		}
		for _, finding := range Examine(c, Options{}).Findings {
			if finding.Code == "" || finding.Message == "" || finding.Place.String() == "" {
				t.Errorf("a finding lacks something: %+v", finding)
			}
		}
	})
}

func TestPurpose(t *testing.T) {
	for _, test := range []struct {
		role, username, groups string
		want                   Purpose
	}{
		{"x", "system:node:{{EC2PrivateDNSName}}", "", ForNodes},
		{"x", "x", "system:nodes", ForNodes},
		{"x", "x", "system:bootstrappers", ForNodes},
		{"eksctl-shop-nodegroup-a-NodeInstanceRole-1ABC", "x", "", ForNodes},
		{"nodes.k8s.example.com", "x", "system:masters", ForNodes},
		{"x", "WorkerNodeRole", "system:masters", ForNodes},
		{"AmazonEKSFargatePodExecutionRole", "x", "", ForFargate},
		{"x", "system:node:{{SessionName}}", "system:node-proxier", ForFargate},
		{"Admin", "admin", "system:masters", ForOthers},
		{"NodeJSDeveloper", "dev", "", ForOthers},
		{"noderunner", "ci", "", ForOthers},
	} {
		t.Run(test.role+" "+test.username, func(t *testing.T) {
			groups := slices.DeleteFunc([]string{test.groups}, func(g string) bool { return g == "" })
			if got := purposeOf("arn:aws:iam::111122223333:role/"+test.role, test.username, groups, false); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestReportIsTheSameForTheSameCluster(t *testing.T) {
	c := readFiles(t, "testdata/awsauth/list.yaml", "testdata/default/kubernetes-1.37.yaml")
	first := fmt.Sprintf("%+v", Examine(c, Options{}))
	for range 5 {
		if again := fmt.Sprintf("%+v", Examine(c, Options{})); again != first {
			t.Fatalf("%s\nand then\n%s", first, again)
		}
	}
	if worst, found := Examine(c, Options{}).Worst(); !found || worst != finding.Error {
		t.Errorf("the worst finding is %s (%t)", worst, found)
	}
}
