package doctor

import (
	"strings"
	"testing"
)

func windowsNode(name, instance string) string {
	return strings.Replace(nodeText(name, instance, name), "metadata: {name: ", "metadata: {labels: {kubernetes.io/os: windows}, name: ", 1)
}

func TestWindowsNodesNeedTheGroupOfTheirProxy(t *testing.T) {
	const arn = "arn:aws:iam::111122223333:role/"
	const name, linux = "ip-10-0-0-9.eu-west-1.compute.internal", "ip-10-0-0-7.eu-west-1.compute.internal"
	windows := windowsNode(name, "i-00000000000000009")
	ec2 := nodeText(linux, "i-00000000000000007", linux)
	node := roleEntry("node", goodUsername, bootstrap, nodes)
	with := roleEntry("win", goodUsername, bootstrap, nodes, groupWindowsProxy)
	for _, test := range []struct {
		rule, text string
		users      map[string]string // roles, by the nodes that were seen to use them
		want       []string
	}{
		{"no Windows", awsAuthText(node) + ec2, nil, nil},
		{"a role with the group", awsAuthText(node, with) + ec2 + windows, nil, nil},
		{"no role with the group", awsAuthText(node) + windows, nil, []string{"warning WindowsWithoutKubeProxy " + arn + "node"}},
		{
			"the role that they use", awsAuthText(node, with) + ec2 + windows,
			map[string]string{name: "node"},
			[]string{"error WindowsWithoutKubeProxy " + arn + "node"},
		},
		{
			"not the one that others use", awsAuthText(node, roleEntry("win", goodUsername, bootstrap, nodes)) + ec2 + windows,
			map[string]string{linux: "node"},
			[]string{"warning WindowsWithoutKubeProxy " + arn + "win"},
		},
		{
			"a role that is called so", awsAuthText(roleEntry("eksWindowsNodeRole", goodUsername, bootstrap, nodes)), nil,
			[]string{"warning WindowsWithoutKubeProxy " + arn + "eksWindowsNodeRole"},
		},
		{
			"administrators have it", awsAuthText(roleEntry("eksWindowsNodeRole", goodUsername, masters)), nil,
			[]string{"error NodeRoleIsAdministrator " + arn + "eksWindowsNodeRole"},
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			c := readText(t, test.text)
			for node, role := range test.users {
				c.Requests = append(c.Requests, CertificateRequest{
					Name: "csr-" + node, CommonName: "system:node:" + node, RoleARN: arn + role,
				})
			}
			wantFindings(t, run(c, awsAuth).Findings, test.want...)
		})
	}
}

// TestWhatABindingGrantsIsEnoughForTheProxy: rights are found in the rules of roles, not by the names of roles.
func TestWhatABindingGrantsIsEnoughForTheProxy(t *testing.T) {
	const binding = `
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: proxies}
rules: [{apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: proxies}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: proxies}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:nodes"}]
`
	for bound, want := range map[string]int{"": 1, binding: 0} {
		c := readText(t, awsAuthText(roleEntry("windows", goodUsername, bootstrap, nodes))+bound)
		c.RBACKnown = true
		found := 0
		for _, f := range run(c, awsAuth).Findings {
			if f.Code == WindowsWithoutKubeProxy {
				found++
			}
		}
		if found != want {
			t.Errorf("found %d times, want %d", found, want)
		}
	}
}
