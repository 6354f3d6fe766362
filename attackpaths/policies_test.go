package attackpaths_test

import (
	"cmp"
	"fmt"
	"testing"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// admissionPolicy is a policy with one expression about writes of some resources of any group.
func admissionPolicy(name, resources, expression string) string {
	return fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  matchConstraints:
    resourceRules: [{operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: [%[2]s]}]
  validations: [{expression: %[3]q}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s, validationActions: [Deny]}
---`, name, resources, expression)
}

// TestAdmissionPolicies starts from the service account shop/web. Each case says how one holding
// is reached, and what the steps to it depend on.
func TestAdmissionPolicies(t *testing.T) {
	const (
		roles        = "@rbac.authorization.k8s.io"
		noPrivileged = "(object.spec.containers + (has(object.spec.initContainers) ? object.spec.initContainers : []))" +
			".all(c, !has(c.securityContext) || !has(c.securityContext.privileged) || !c.securityContext.privileged)"
		noHost  = "!has(object.spec.volumes) || object.spec.volumes.all(v, !has(v.hostPath))"
		noAdded = "object.spec.ephemeralContainers.all(c, !has(c.securityContext.privileged))"
		noPID   = "!has(object.spec.hostPID) || !object.spec.hostPID"
		tried   = ", which refused each object that was tried"
	)
	policy := func(name string) string { return "ValidatingAdmissionPolicy " + name + " (" + name + ")" }
	db := attackpaths.Holding{Kind: attackpaths.ServiceAccount, Namespace: "shop", Name: "db"}
	admin := attackpaths.Holding{Kind: attackpaths.ClusterAdmin}
	cases := []struct {
		rule      string
		add       string
		to        attackpaths.Holding
		want      attackpaths.Certainty
		dependsOn string
	}{
		{
			rule: "a policy that forbids privileged pods leaves folders of the host", to: nodeN1, want: attackpaths.Certain,
			add: role("r", "shop", "shop/web", "create pods@") + admissionPolicy("p", "pods", noPrivileged),
		},
		{
			rule: "policies that leave only host processes leave the confinement", to: nodeN1, want: attackpaths.Possible,
			add: role("r", "shop", "shop/web", "create pods@") + admissionPolicy("p", "pods", noPrivileged) +
				admissionPolicy("q", "pods", noHost),
			dependsOn: "the container runtime's confinement (seccomp, AppArmor, SELinux)",
		},
		{
			rule: "policies that refuse all ways to the host together", to: nodeN1, want: attackpaths.Possible,
			add: role("r", "shop", "shop/web", "create pods@") + admissionPolicy("p", "pods", noPrivileged) +
				admissionPolicy("q", "pods", noHost) +
				admissionPolicy("s", "pods", noPID),
			dependsOn: policy("p") + " and " + policy("q") + " and " + policy("s") + ", which together refused each object that was tried",
		},
		{
			rule: "a policy that forbids privileged pods in containers alone leaves init containers", to: nodeN1, want: attackpaths.Certain,
			add: role("r", "shop", "shop/web", "create pods@") +
				admissionPolicy("q", "pods", noHost) + admissionPolicy("s", "pods", noPID) +
				admissionPolicy("p", "pods", "object.spec.containers.all(c, !has(c.securityContext.privileged))"),
		},
		{
			rule: "a policy that refuses every pod", to: nodeN1, want: attackpaths.Possible, dependsOn: policy("p") + tried,
			add: role("r", "shop", "shop/web", "create pods@") + admissionPolicy("p", "pods", "false"),
		},
		{
			rule: "a policy about users is named",
			to:   nodeN1, want: attackpaths.Possible, dependsOn: policy("p") + ", which reads request.userInfo",
			add: role("r", "shop", "shop/web", "create pods@") + admissionPolicy("p", "pods", "request.userInfo.username == 'alice'"),
		},
		{
			rule: "a policy that does not compile is named",
			to:   nodeN1, want: attackpaths.Possible, dependsOn: policy("p") + ", which does not compile",
			add: role("r", "shop", "shop/web", "create pods@") + admissionPolicy("p", "pods", "object."),
		},
		{
			rule: "a policy about templates looks at what makes pods", to: nodeN1, want: attackpaths.Possible,
			dependsOn: policy("p") + tried,
			add: role("r", "shop", "shop/web", "create deployments@apps") + admissionPolicy("p", "deployments",
				"!has(object.spec.template.spec.nodeName)"),
		},
		{
			rule: "a policy about templates does not look at pods", to: nodeN1, want: attackpaths.Certain,
			add: role("r", "shop", "shop/web", "create deployments@apps", "create pods@") + admissionPolicy("p", "deployments", "false"),
		},
		{
			rule: "a policy about pods looks at those of a deployment", to: nodeN1, want: attackpaths.Certain,
			add: role("r", "shop", "shop/web", "create deployments@apps") + admissionPolicy("p", "pods", noPrivileged),
		},
		{
			rule: "a policy about replica sets looks at those of a deployment",
			to:   nodeN1, want: attackpaths.Possible, dependsOn: policy("p") + tried,
			add: role("r", "shop", "shop/web", "create deployments@apps") + admissionPolicy("p", "replicasets", "false"),
		},
		{
			rule: "a policy about one account", to: db, want: attackpaths.Possible, dependsOn: policy("p") + tried,
			add: role("r", "shop", "shop/web", "create pods@") + admissionPolicy("p", "pods", "object.spec.serviceAccountName != 'db'"),
		},
		{
			rule: "a policy about another account", to: db, want: attackpaths.Certain,
			add: role("r", "shop", "shop/web", "create pods@") + admissionPolicy("p", "pods", "object.spec.serviceAccountName != 'other'"),
		},
		{
			rule: "a policy about the secrets that pods mount leaves their environment", want: attackpaths.Certain,
			to: attackpaths.Holding{Kind: attackpaths.Secret, Namespace: "shop", Name: "s"},
			add: secret("shop", "s", "Opaque", "") + role("r", "shop", "shop/web", "create pods@") +
				admissionPolicy("p", "pods", "!has(object.spec.volumes) || object.spec.volumes.all(v, !has(v.secret))"),
		},
		{
			rule: "a policy that protects each role with every right", to: admin, want: attackpaths.Possible,
			dependsOn: policy("p") + tried,
			add: role("r", "", "shop/web", "bind clusterroles"+roles, "create clusterrolebindings"+roles) +
				admissionPolicy("p", "clusterrolebindings", "!(object.roleRef.name in ['everything', 'cluster-admin'])"),
		},
		{
			rule: "a policy that protects one of them: each cluster has cluster-admin", to: admin, want: attackpaths.Certain,
			add: role("r", "", "shop/web", "bind clusterroles"+roles, "create clusterrolebindings"+roles) +
				admissionPolicy("p", "clusterrolebindings", "object.roleRef.name != 'everything'"),
		},
		{
			rule: "a policy that protects another role", to: admin, want: attackpaths.Certain,
			add: role("r", "", "shop/web", "bind clusterroles"+roles, "create clusterrolebindings"+roles) +
				admissionPolicy("p", "clusterrolebindings", "object.roleRef.name != 'other'"),
		},
		{
			rule: "a policy that protects the labels of Pod Security",
			to:   nodeN1, want: attackpaths.Possible, dependsOn: policy("p") + tried,
			add: namespace("shop", restrictedLabel) + role("r", "shop", "shop/web", "create pods@", "patch namespaces@") +
				admissionPolicy("p", "namespaces",
					"object.metadata.?labels['pod-security.kubernetes.io/enforce'].orValue('') == 'restricted'"),
		},
		{
			rule: "a policy about hosts in volumes", to: nodeN1, want: attackpaths.Possible, dependsOn: policy("p") + tried,
			add: namespace("shop", "pod-security.kubernetes.io/enforce: baseline") +
				role("v", "", "shop/web", "create persistentvolumes@") +
				role("r", "shop", "shop/web", "create pods@", "create persistentvolumeclaims@") +
				admissionPolicy("p", "persistentvolumes", "!has(object.spec.hostPath)"),
		},
		{
			rule: "a policy about containers that are added", to: nodeN1, want: attackpaths.Possible, dependsOn: policy("p") + tried,
			add: pod("shop", "db-1", "n1", "db") + role("r", "shop", "shop/web", "patch pods/ephemeralcontainers@") +
				admissionPolicy("p", "pods/ephemeralcontainers", noAdded),
		},
		{
			rule: "an added container that is not privileged", to: db, want: attackpaths.Certain,
			add: pod("shop", "db-1", "n1", "db") + role("r", "shop", "shop/web", "patch pods/ephemeralcontainers@") +
				admissionPolicy("p", "pods/ephemeralcontainers", noAdded),
		},
		{
			rule: "a policy that refuses exec", to: db, want: attackpaths.Possible, dependsOn: policy("p") + tried,
			add: pod("shop", "db-1", "n1", "db") + role("r", "shop", "shop/web", "create pods/exec@") +
				admissionPolicy("p", "pods/exec", "request.operation != 'CONNECT'"),
		},
		{
			rule: "a policy about exec with a terminal", to: db, want: attackpaths.Certain,
			add: pod("shop", "db-1", "n1", "db") + role("r", "shop", "shop/web", "create pods/exec@") +
				admissionPolicy("p", "pods/exec", "!has(object.tty) || !object.tty"),
		},
	}
	base := node("n1") + account("shop", "web") + account("shop", "db") +
		namespace("kube-system", "") + role("everything", "", "kube-system/admin", "* *@*")
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			cluster := newCluster()
			parse(t, cluster, base+namespace("shop", "")+c.add)
			result := from(t, graphOf(t, cluster), accountWeb)
			got, dependsOn := attackpaths.No, ""
			for _, r := range result.Reached {
				if r.Holding == c.to {
					got = r.Certainty
					for _, s := range r.Path {
						dependsOn = cmp.Or(s.DependsOn, dependsOn)
					}
				}
			}
			if got != c.want || dependsOn != c.dependsOn {
				t.Errorf("%s is %s because of %q, want %s because of %q", c.to, got, dependsOn, c.want, c.dependsOn)
			}
			compareSearch(t, cluster, result)
		})
	}
}

// TestPoliciesWithoutAnEvaluator are named.
func TestPoliciesWithoutAnEvaluator(t *testing.T) {
	cluster := newCluster()
	cluster.Policies = nil
	parse(t, cluster, account("shop", "web")+account("shop", "db")+role("r", "shop", "shop/web", "create pods@")+
		admissionPolicy("p", "pods", "true"))
	for _, r := range from(t, graphOf(t, cluster), accountWeb).Reached {
		if r.Certainty != attackpaths.Possible || r.Path[0].DependsOn != "ValidatingAdmissionPolicy p (p)" {
			t.Errorf("%s is %s because of %q", r.Holding, r.Certainty, r.Path[0].DependsOn)
		}
	}
}
