package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// readAll reads texts as files, one each.
func readAll(t *testing.T, texts ...string) *Cluster {
	t.Helper()
	var paths []string
	for i, text := range texts {
		path := filepath.Join(t.TempDir(), fmt.Sprintf("%d.yaml", i))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return readFiles(t, paths...)
}

// describedEntry returns output of aws eks describe-access-entry.
func describedEntry(role, kind, username string, groups ...string) string {
	list := "[]"
	if len(groups) > 0 {
		list = `["` + strings.Join(groups, `","`) + `"]`
	}
	return fmt.Sprintf(`{"accessEntry": {"clusterName": "blue", "principalArn": "arn:aws:iam::111122223333:role/%s",
  "kubernetesGroups": %s, "username": %q, "type": %q,
  "accessEntryArn": "arn:aws:eks:us-west-2:111122223333:access-entry/blue/role/111122223333/x/1",
  "createdAt": "2025-04-14T22:45:48Z", "tags": {}}}`,
		role, list, username, kind)
}

const listedEntries = `{"accessEntries": ["arn:aws:iam::111122223333:role/Admin", "arn:aws:iam::111122223333:role/Compute"]}`

func TestAccessEntriesAreRead(t *testing.T) {
	const arn = "arn:aws:iam::111122223333:role/"
	for form, test := range map[string]struct {
		text string
		want []string
	}{
		"aws eks describe-access-entry": {
			describedEntry("node", "EC2_LINUX", "system:node:{{EC2PrivateDNSName}}", "system:nodes"),
			[]string{arn + "node EC2_LINUX system:node:{{EC2PrivateDNSName}} [system:nodes]"},
		},
		"aws eks list-access-entries": {listedEntries, []string{arn + "Admin   []", arn + "Compute   []"}},
		"several answers collected": {
			`{"accessEntries": [{"principalArn": "` + arn + `node", "type": "HYBRID_LINUX"}]}`, []string{arn + "node HYBRID_LINUX  []"},
		},
		"ACK": {
			"apiVersion: eks.services.k8s.aws/v1alpha1\nkind: AccessEntry\nmetadata: {name: a}\nspec:\n  clusterName: blue\n" +
				"  principalARN: " + arn + "node\n  type: FARGATE_LINUX\n",
			[]string{arn + "node FARGATE_LINUX  []"},
		},
		"Crossplane": {
			"apiVersion: eks.aws.upbound.io/v1beta1\nkind: AccessEntry\nmetadata: {name: a}\nspec:\n  forProvider:\n" +
				"    clusterName: blue\n    principalArn: " + arn + "ops\n    userName: ops\n    kubernetesGroups: [view]\n",
			[]string{arn + "ops STANDARD ops [view]"},
		},
		"Crossplane with a reference": {
			"apiVersion: eks.aws.m.upbound.io/v1beta1\nkind: AccessEntry\nmetadata: {name: a}\nspec:\n" +
				"  forProvider: {principalArnRef: {name: x}}\nstatus:\n  atProvider: {principalArn: " + arn + "node, type: EC2_WINDOWS}\n",
			[]string{arn + "node EC2_WINDOWS  []"},
		},
	} {
		t.Run(form, func(t *testing.T) {
			var got []string
			for _, a := range readText(t, test.text).AccessEntries {
				got = append(got, fmt.Sprintf("%s %s %s %v", a.ARN, a.Type, a.Username, a.Groups))
				if a.Place.File == "" || a.Place.Line == 0 || a.Place.Object == "" {
					t.Errorf("at no place: %+v", a.Place)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("read %q, want %q", got, test.want)
			}
		})
	}
}

func TestInvalidAccessEntries(t *testing.T) {
	for _, text := range []string{
		`{"accessEntries": [5]}`, `{"accessEntry": "x"}`,
		"apiVersion: eks.services.k8s.aws/v1alpha1\nkind: AccessEntry\nmetadata: {name: a}\nspec: {type: [a]}\n",
	} {
		path := filepath.Join(t.TempDir(), "entries.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(t.Context(), []string{path}, ReadOptions{}); err == nil || !strings.Contains(err.Error(), "entries.json") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestAccessEntriesTakePrecedenceOverAWSAuth(t *testing.T) {
	const name, arn = "ip-10-0-0-7.eu-west-1.compute.internal", "arn:aws:iam::111122223333:role/"
	node := nodeText(name, "i-00000000000000007", name)
	entry := func(kind string) string { return describedEntry("Compute", kind, "", "") }
	right := roleEntry("Compute", goodUsername, bootstrap, nodes)
	for _, test := range []struct {
		rule  string
		texts []string
		uses  bool // whether the node was seen to use the role Compute
		want  []string
	}{
		{
			"a role that only EKS maps",
			[]string{awsAuthText(roleEntry("node", goodUsername, bootstrap, nodes)) + node, entry("EC2_LINUX")},
			true, nil,
		},
		{
			"a list is enough to know that it is mapped",
			[]string{awsAuthText(roleEntry("node", goodUsername, bootstrap, nodes)) + node, listedEntries},
			true, nil,
		},
		{
			"a list without it",
			[]string{awsAuthText(roleEntry("node", goodUsername, bootstrap, nodes)) + node, `{"accessEntries": []}`},
			true,
			[]string{"error NodeRoleMissing " + arn + "Compute"},
		},
		{"nodes by access entries alone", []string{awsAuthText(roleEntry("Admin", "admin", masters)), entry("EC2_LINUX")}, false, nil},
		{"nodes perhaps by one of a list", []string{awsAuthText(roleEntry("Admin2", "admin", masters)), listedEntries}, false, nil},
		{
			"no node by the access entries either",
			[]string{awsAuthText(roleEntry("Admin", "admin", masters)), describedEntry("ops", "STANDARD", "ops", "view")},
			false,
			[]string{"error NoNodeRole "},
		},
		{
			"both, alike",
			[]string{awsAuthText(right) + node, entry("EC2_LINUX")},
			false,
			[]string{"info AccessEntryFirst " + arn + "Compute"},
		},
		{
			"both, the entry of aws-auth wrong",
			[]string{awsAuthText(roleEntry("Compute", "WorkerNodeRole", masters)) + node, entry("EC2_LINUX")},
			false,
			[]string{"warning AccessEntryFirst " + arn + "Compute"},
		},
		{
			"both, and what the access entry gives is not known",
			[]string{awsAuthText(roleEntry("Compute", "WorkerNodeRole", bootstrap, nodes)) + node, listedEntries},
			false,
			[]string{"info AccessEntryFirst " + arn + "Compute"},
		},
		{
			"Windows nodes with an entry for Linux",
			[]string{awsAuthText(roleEntry("Admin", "admin", masters)), entry("EC2_LINUX"), windowsNode(name, "i-00000000000000007")},
			true,
			[]string{"error WindowsWithoutKubeProxy " + arn + "Compute"},
		},
		{
			"Windows nodes with theirs",
			[]string{awsAuthText(roleEntry("Admin", "admin", masters)), entry("EC2_WINDOWS"), windowsNode(name, "i-00000000000000007")},
			true, nil,
		},
		{
			"hybrid nodes",
			[]string{
				describedEntry("machines", "HYBRID_LINUX", "system:node:{{SessionName}}", "system:nodes"),
				hybridNode("mi-0a1b2c3d4e5f60718"),
			},
			false, nil,
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			c := readAll(t, test.texts...)
			if test.uses {
				c.Requests = []CertificateRequest{
					{Name: "csr-1", CommonName: "system:node:" + name, Requester: "system:node:" + name, RoleARN: arn + "Compute"},
				}
			}
			report := run(c, awsAuth)
			wantFindings(t, report.Findings, test.want...)
			for _, r := range report.Roles {
				if r.Source == accessEntrySourceName && r.Purpose.makesNodes() && (!r.NodeIdentity || !r.Works()) {
					t.Errorf("nodes of an access entry do not work: %+v", r)
				}
			}
		})
	}
}

func TestFindingsMentionUnknownAccessEntries(t *testing.T) {
	for _, f := range run(readText(t, awsAuthText(roleEntry("Admin", "admin", masters))), awsAuth).Findings {
		if f.Code == NoNodeRole &&
			!strings.Contains(
				f.Consequence, "unless an EKS access entry maps them (give the answer of aws eks list-access-entries with --from)",
			) {
			t.Errorf("the consequence is %q", f.Consequence)
		}
	}
}

func TestDataOfAWSAuthWithoutHeaderIsRead(t *testing.T) {
	text := awsAuthText(roleEntry("node", "WorkerNodeRole", bootstrap, nodes))
	alone := text[strings.Index(text, "\ndata:")+1:]
	for rule, text := range map[string]string{"the data": alone, "with a name": "metadata: {name: aws-auth}\n" + alone} {
		c := readText(t, text)
		if c.AWSAuth == nil || len(c.MappingFiles) > 0 {
			t.Fatalf("%s: %+v", rule, c)
		}
		report := run(c, awsAuth)
		wantFindings(t, report.Findings, "error NodeRoleUsername arn:aws:iam::111122223333:role/node")
		if at := report.Findings[0].Place; at.Object != "ConfigMap kube-system/aws-auth" ||
			at.Line != strings.Count(text[:strings.Index(text, "username")], "\n")+1 {
			t.Errorf("%s: found at %+v", rule, at)
		}
	}
	c := readText(t, "metadata: {name: other}\n"+alone)
	if c.AWSAuth != nil {
		t.Error("another ConfigMap is read as aws-auth")
	}
}
