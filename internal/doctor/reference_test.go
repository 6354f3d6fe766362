package doctor

import (
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

// ours configures node-authorizer as the cluster's authenticator.
const ours = "---\napiVersion: config.node-authorizer.io/v1alpha1\nkind: ServerConfiguration\n" +
	"webhook: {serves: [Authentication], certificateFile: tls.crt, keyFile: tls.key, clientCAFile: ca.crt, allowedClientNames: [a]}\n" +
	"iam: {clusterID: blue, partition: aws}\n"

// TestEntriesThatCannotBeUsed predicts for nodes whose role has an unusable entry:
// aws-iam-authenticator and EKS use the parts that they can read, and the last of several entries;
// node-authorizer refuses the caller.
func TestEntriesThatCannotBeUsed(t *testing.T) {
	entry := func(username, groups string) string {
		return "- rolearn: arn:aws:iam::111122223333:role/node\n  username: " + username + "\n  groups: " + groups + "\n"
	}
	good := roleEntry("node", goodUsername, bootstrap, nodes)
	for _, test := range []struct {
		rule, entries string
		// outcome is the outcome with aws-iam-authenticator, and why a part of the reason.
		outcome, why string
		// both is true if node-authorizer also authenticates the node.
		both bool
	}{
		{
			"groups with commas are no groups", entry(goodUsername, `"system:bootstrappers,system:nodes"`), "no no no false false",
			"without group system:nodes it is not a node", false,
		},
		{
			"groups that are a text are none", entry(goodUsername, "system:nodes"), "no no no false false", "without group system:nodes",
			false,
		},
		{
			"a number is no group, and the others count", entry(goodUsername, "[1, system:bootstrappers, system:nodes]"),
			"yes yes yes true false", "", false,
		},
		{
			"the last entry counts, also if it cannot be used", good + entry(goodUsername, "view"), "no no no false false",
			"without group system:nodes", false,
		},
		{
			"an entry that cannot be used does not count before a good one", entry(goodUsername, "view") + good, "yes yes yes true false",
			"", false,
		},
		{
			"braces stay as they are", entry(`"system:node:{{Nobody}}"`, "[system:nodes]"), "no no no false false",
			`it is node "{{Nobody}}"`, false,
		},
		{
			"and placeholders beside them do not",
			entry(`"system:node:{{EC2PrivateDNSName}}"`, "['{{x}}', system:nodes, system:bootstrappers]"), "yes yes yes true false", "",
			false,
		},
		{"a good entry", good, "yes yes yes true false", "", true},
	} {
		t.Run(test.rule, func(t *testing.T) {
			report := run(readText(t, awsAuthText(test.entries)), awsAuth)
			if len(report.Roles) != 1 || outcome(report.Roles[0]) != test.outcome ||
				!strings.Contains(report.Roles[0].Registers.Why, test.why) {
				t.Errorf("aws-iam-authenticator: want %s, got %+v", test.outcome, report.Roles)
			}
			if len(report.Roles) > 0 && strings.Contains(report.Roles[0].Registers.Why, "Unauthorized") {
				t.Errorf("who is let in without rights is Forbidden: %+v", report.Roles[0].Registers)
			}
			if len(report.Roles) > 0 && (report.Roles[0].NodeAuthorizer == Outcome{}) != test.both {
				t.Errorf("what node-authorizer makes of it is not said beside: %+v", report.Roles[0])
			}
			for _, config := range []string{ours, strings.Replace(ours, "partition: aws", "rolePaths: Exact", 1)} {
				report = run(readText(t, awsAuthText(test.entries)+config), awsAuth)
				if len(report.Roles) != 1 || strings.HasPrefix(report.Roles[0].Registers.Why, "Unauthorized: ") == test.both ||
					report.Roles[0].Authenticator != NodeAuthorizer {
					t.Errorf("node-authorizer: %+v", report.Roles)
				}
			}
		})
	}
}

// TestTheTableNamesWhoseOutcomesItHas has an entry that the two programs interpret differently, one
// that both interpret alike, and one of another source.
func TestTheTableNamesWhoseOutcomesItHas(t *testing.T) {
	const unusable = "- rolearn: arn:aws:iam::111122223333:role/node\n  username: " + goodUsername +
		"\n  groups: [1, system:bootstrappers, system:nodes]\n"
	file := "---\nclusterID: blue\nserver:\n  mapRoles:\n" +
		indented(roleEntry("node", goodUsername, bootstrap, nodes)+roleEntry("other", goodUsername, bootstrap, nodes))
	report := run(readText(t, awsAuthText(unusable)+file), awsAuth)
	var page strings.Builder
	if err := render.Write(&page, report, render.Options{Format: render.Table}); err != nil {
		t.Fatal(err)
	}
	text := page.String()
	for _, want := range []string{
		"as taken by      aws-iam-authenticator, as on EKS",
		"node-authorizer  no   refuses its nodes: the entry at ",
		`cannot be used (a group is the number "1": want a text), and no other entry about this ARN counts`,
		"unknown  refuses its nodes if it asks ConfigMap kube-system/aws-auth before ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in\n%s", want, text)
		}
	}
	if n := strings.Count(text, "  node-authorizer "); n != 2 {
		t.Errorf("%d roles have a line for node-authorizer, want the two about the ARN:\n%s", n, text)
	}
}

func indented(text string) string {
	var all string
	for line := range strings.Lines(text) {
		all += "    " + line
	}
	return all
}

func TestTheRegionOfAKubeconfigIsNotThatOfTheRoles(t *testing.T) {
	right := awsAuthText(roleEntry("node", goodUsername, bootstrap, nodes))
	kubeconfig := func(region string) string {
		return "---\napiVersion: v1\nkind: Config\nusers:\n- name: ada\n  user:\n    exec:\n" +
			"      apiVersion: client.authentication.k8s.io/v1\n      command: aws\n" +
			"      args: [eks, get-token, --cluster-name, blue, --region, " + region + "]\n"
	}
	const name = "ip-10-0-0-7.us-gov-west-1.compute.internal"
	gov := strings.ReplaceAll(nodeText(name, "i-00000000000000007", name), "eu-west-1a", "us-gov-west-1a")
	for _, test := range []struct {
		rule, text string
		want       []string
	}{
		{
			"the kubeconfig may be wrong, or the role", right + kubeconfig("us-gov-west-1"),
			[]string{"warning STSHostMismatch us-gov-west-1"},
		},
		{
			"the kubeconfig is wrong: the authenticator's configuration has the partition", right + kubeconfig("us-gov-west-1") + ours,
			[]string{"error STSHostMismatch us-gov-west-1"},
		},
		{
			"the kubeconfig is wrong: a node is elsewhere",
			right + nodeText("ip-10-0-0-7.eu-west-1.compute.internal", "i-00000000000000007", "ip-10-0-0-7.eu-west-1.compute.internal") +
				kubeconfig("us-gov-west-1"),
			[]string{"error STSHostMismatch us-gov-west-1"},
		},
		{"of the partition of the roles", right + kubeconfig("eu-west-1"), nil},
		{"of China", right + kubeconfig("cn-north-1"), []string{"warning STSHostMismatch cn-north-1"}},
		{
			"the region of nodes is", right + gov + kubeconfig("us-gov-west-1"),
			[]string{"error MappingPartition arn:aws:iam::111122223333:role/node"},
		},
		{
			"roles of two partitions say nothing",
			awsAuthText(roleEntry("node", goodUsername, bootstrap, nodes), strings.ReplaceAll(
				roleEntry("node", goodUsername, bootstrap, nodes), "arn:aws:", "arn:aws-us-gov:",
			)) +
				kubeconfig("us-gov-west-1"),
			nil,
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			wantFindings(t, run(readText(t, test.text), awsAuth).Findings, test.want...)
		})
	}
}

func TestAPartitionThatIsInferredIsNamedAsSuch(t *testing.T) {
	kubeconfig := "---\napiVersion: v1\nkind: Config\nusers:\n- name: ada\n  user:\n    exec:\n" +
		"      apiVersion: client.authentication.k8s.io/v1\n      command: aws\n" +
		"      args: [eks, get-token, --cluster-name, shop, --region, us-gov-west-1]\n"
	findings := run(readText(t, awsAuthText(roleEntry("node", goodUsername, bootstrap, nodes))+kubeconfig), awsAuth).Findings
	if len(findings) != 1 {
		t.Fatalf("got %+v", findings)
	}
	for _, part := range []struct{ got, want string }{
		{findings[0].Message, "the ARNs of the nodes' roles are of partition aws"},
		{findings[0].Consequence, "if the cluster is in aws"},
		{findings[0].Remedy, "--region"},
	} {
		if !strings.Contains(part.got, part.want) {
			t.Errorf("want %q in %q", part.want, part.got)
		}
	}
}

func TestCommonMistakesInMappings(t *testing.T) {
	const arn = "arn:aws:iam::111122223333:role/node"
	right := roleEntry("node", goodUsername, bootstrap, nodes)
	for _, test := range []struct {
		rule, text, remedy string
		want               []string
	}{
		{
			"a username that ends in its colon",
			awsAuthText("- rolearn: " + arn + "\n  username: system:node:\n  groups: [system:nodes]\n"),
			"to YAML a colon at the end of a text begins a field without a value",
			[]string{"error MappingSyntax "},
		},
		{
			"in quotes too", awsAuthText("- rolearn: " + arn + "\n  username: \"system:node:\"\n  groups: [system:nodes]\n"),
			`write username: "system:node:{{EC2PrivateDNSName}}"`,
			[]string{"error MappingInvalid " + arn, "error NodeRoleUsernameFixed " + arn},
		},
		{
			"userarn for a role", awsAuthText(right, "- userarn: "+arn+"2\n  username: ops\n  groups: [view]\n"),
			"rename userarn to rolearn",
			[]string{"error MappingInvalid " + arn + "2"},
		},
		{
			"accounts have no groups", awsAuthText(right) + "  mapAccounts: |\n    - \"111122223333\"\n",
			"map the roles and users that are meant",
			[]string{"info AccountWithoutGroups 111122223333"},
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			report := run(readText(t, test.text), awsAuth)
			wantFindings(t, report.Findings, test.want...)
			found := false
			for _, f := range report.Findings {
				found = found || strings.Contains(f.Remedy, test.remedy)
			}
			if !found {
				t.Errorf("no remedy has %q: %+v", test.remedy, report.Findings)
			}
		})
	}
}
