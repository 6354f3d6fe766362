package doctor

import (
	"fmt"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/finding"
)

// hybridNode is the Node of a machine outside of AWS.
func hybridNode(name string) string {
	return fmt.Sprintf("\n---\napiVersion: v1\nkind: Node\nmetadata: {name: %q, labels: {eks.amazonaws.com/compute-type: hybrid}}\n"+
		"spec: {providerID: \"eks-hybrid:///us-west-2/blue/%s\"}\nstatus: {conditions: [{type: Ready, status: \"True\"}]}\n", name, name)
}

const sessionName = `"system:node:{{SessionName}}"`

// roleOf is the prediction of a role by the end of its ARN.
func roleOf(t *testing.T, report *Report, name string) RolePrediction {
	t.Helper()
	for _, r := range report.Roles {
		if strings.HasSuffix(r.ARN, "/"+name) {
			return r
		}
	}
	t.Fatalf("there is no role %s: %+v", name, report.Roles)
	return RolePrediction{}
}

func TestHybridNodesAreCalledAfterTheirSessions(t *testing.T) {
	const arn = "arn:aws:iam::111122223333:role/"
	ec2 := nodeText("ip-10-0-0-7.eu-west-1.compute.internal", "i-00000000000000007", "ip-10-0-0-7.eu-west-1.compute.internal")
	right := roleEntry("node", goodUsername, bootstrap, nodes)
	for _, test := range []struct {
		rule, text, role string
		purpose          Purpose
		outcome          string
		want             []string
	}{
		{
			"a role that is called so", awsAuthText(roleEntry("AmazonEKSHybridNodesRole", sessionName, bootstrap, nodes)),
			"AmazonEKSHybridNodesRole", ForHybrid, "yes yes yes true false",
			[]string{"info HybridSessionName " + arn + "AmazonEKSHybridNodesRole"},
		},
		{
			"a hybrid node that is there",
			awsAuthText(roleEntry("machines", sessionName, bootstrap, nodes)) + hybridNode("mi-0a1b2c3d4e5f60718"),
			"machines", ForHybrid, "yes yes yes true false",
			[]string{"info HybridSessionName " + arn + "machines"},
		},
		{
			"one with a name of its own, beside instances",
			awsAuthText(right, roleEntry("machines", sessionName, bootstrap, nodes)) + ec2 + hybridNode("press-3"),
			"machines", ForHybrid, "yes yes yes true false",
			[]string{"info HybridSessionName " + arn + "machines"},
		},
		{
			"before any joined, beside instances with another role",
			awsAuthText(right, roleEntry("machines", sessionName, bootstrap, nodes)) + ec2,
			"machines", ForNodes, "no no no false false",
			[]string{"warning NodeRoleUsernameIsInstanceID " + arn + "machines"},
		},
		{
			"where nothing shows what uses it", awsAuthText(roleEntry("machines", sessionName, bootstrap, nodes)),
			"machines", ForNodes, "no no no false false",
			[]string{"warning NodeRoleUsernameIsInstanceID " + arn + "machines"},
		},
		{
			"with the username of instances", awsAuthText(roleEntry("HybridNodes", goodUsername, bootstrap, nodes)),
			"HybridNodes", ForHybrid, "no no no false false",
			[]string{"warning HybridUsername " + arn + "HybridNodes"},
		},
		{
			"with the username of instances, and a hybrid node that is there",
			awsAuthText(roleEntry("HybridNodes", goodUsername, bootstrap, nodes)) + hybridNode("press-3"),
			"HybridNodes", ForHybrid, "no no no false false",
			[]string{"error HybridUsername " + arn + "HybridNodes"},
		},
		{
			"called so, with the username of the instances that are there",
			awsAuthText(roleEntry("HybridNodes", goodUsername, bootstrap, nodes)) + ec2,
			"HybridNodes", ForNodes, "yes yes yes true false", nil,
		},
		{
			"with one name for all", awsAuthText(roleEntry("HybridNodes", "system:node:press-3", bootstrap, nodes)),
			"HybridNodes", ForHybrid, "no no no false false",
			[]string{"error NodeRoleUsernameFixed " + arn + "HybridNodes"},
		},
		{
			"with a name of no node", awsAuthText(roleEntry("HybridNodes", `"{{SessionName}}"`, bootstrap, nodes)),
			"HybridNodes", ForHybrid, "no no no false false",
			[]string{"error NodeRoleUsername " + arn + "HybridNodes"},
		},
		{
			"as administrators", awsAuthText(roleEntry("HybridNodes", sessionName, masters)),
			"HybridNodes", ForHybrid, "yes yes yes false true",
			[]string{"error NodeRoleIsAdministrator " + arn + "HybridNodes"},
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			report := run(readText(t, test.text), awsAuth)
			wantFindings(t, report.Findings, test.want...)
			if prediction := roleOf(t, report, test.role); prediction.Purpose != test.purpose || outcome(prediction) != test.outcome {
				t.Errorf("%s, %s, want %s, %s: %+v", prediction.Purpose, outcome(prediction), test.purpose, test.outcome, prediction)
			}
			for _, f := range report.Findings {
				if prediction := roleOf(t, report, test.role); prediction.Purpose == ForHybrid &&
					strings.Contains(f.Remedy, "EC2PrivateDNSName") {
					t.Errorf("the remedy breaks hybrid nodes: %s", f.Remedy)
				}
			}
		})
	}
}

// TestKubeletsOfMachinesShowTheirRole: a request for a certificate names the role.
func TestKubeletsOfMachinesShowTheirRole(t *testing.T) {
	const arn = "arn:aws:iam::111122223333:role/machines"
	for name, purpose := range map[string]Purpose{"mi-0a1b2c3d4e5f60718": ForHybrid, "ip-10-0-0-7.eu-west-1.compute.internal": ForNodes} {
		c := readText(t, awsAuthText(roleEntry("machines", sessionName, bootstrap, nodes))+
			nodeText("ip-10-0-0-7.eu-west-1.compute.internal", "i-00000000000000007", "ip-10-0-0-7.eu-west-1.compute.internal"))
		c.Requests = []CertificateRequest{{Name: "csr-1", CommonName: "system:node:" + name, RoleARN: arn}}
		report := run(c, awsAuth)
		if prediction := roleOf(t, report, "machines"); prediction.Purpose != purpose {
			t.Errorf("%s: the role is for %s, want %s", name, prediction.Purpose, purpose)
		}
		for _, f := range report.Findings {
			if wrong := f.Code == NodeRoleUsernameIsInstanceID && f.Severity == finding.Error; wrong != (purpose == ForNodes) {
				t.Errorf("%s: %s", name, f)
			}
		}
	}
}
