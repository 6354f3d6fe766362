package attackpaths

import "fmt"

// policyFor is an admission policy with one expression about requests in the namespace guarded.
// Policies are not asked about objects that the test itself makes elsewhere.
func policyFor(name, operation, resources, expression string) string {
	return fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: guarded}}
    resourceRules: [{operations: [%[2]s], apiGroups: ['*'], apiVersions: ['*'], resources: [%[3]s]}]
  validations: [{expression: %[4]q, reason: Forbidden}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s, validationActions: [Deny]}
---`, name, operation, resources, expression)
}

const (
	noPrivileged = "(object.spec.containers + (has(object.spec.initContainers) ? object.spec.initContainers : []))" +
		".all(c, !has(c.securityContext) || !has(c.securityContext.privileged) || !c.securityContext.privileged)"
	noHostPath = "!has(object.spec.volumes) || object.spec.volumes.all(v, !has(v.hostPath))"
	noHostPID  = "!has(object.spec.hostPID) || !object.spec.hostPID"
)

// guarded is a namespace whose requests the policies are asked about.
var (
	guarded   = namespace("guarded", "") + account("guarded", "db")
	guardedDB = podOf("guarded", "db-1", web1, "db")
	podMaker  = roleOf("r", "guarded", "shop/web", "create pods@")
)

var policyCases = []testCase{
	{
		rule: "PodCreate: a policy against privileged pods leaves folders of the host",
		add:  guarded + podMaker + policyFor("p", "CREATE", "pods", noPrivileged),
		want: []string{
			"Namespace guarded", "Node pay-1", "Node web-1", "ServiceAccount guarded/db", "ServiceAccount guarded/default",
		},
	},
	{
		rule: "PodCreate: a policy against folders of the host leaves privileged pods",
		add:  guarded + podMaker + policyFor("p", "CREATE", "pods", noHostPath),
		want: []string{
			"Namespace guarded", "Node pay-1", "Node web-1", "ServiceAccount guarded/db", "ServiceAccount guarded/default",
		},
	},
	{
		rule: "PodCreate: policies that together leave no node to take",
		add: guarded + podMaker + policyFor("p", "CREATE", "pods", noPrivileged) +
			policyFor("q", "CREATE", "pods", noHostPath) + policyFor("s", "CREATE", "pods", noHostPID),
		want:   []string{"Namespace guarded", "ServiceAccount guarded/db", "ServiceAccount guarded/default"},
		closed: []string{"Node pay-1", "Node web-1"},
	},
	{
		rule:   "PodCreate: a policy that refuses every pod",
		add:    guarded + podMaker + policyFor("p", "CREATE", "pods", "false"),
		closed: []string{"Namespace guarded", "Node web-1", "ServiceAccount guarded/db"},
	},
	{
		rule: "PodCreate: a policy about one account",
		add: guarded + podMaker +
			policyFor("p", "CREATE", "pods", "!has(object.spec.serviceAccountName) || object.spec.serviceAccountName != 'db'"),
		want:   []string{"Namespace guarded", "Node pay-1", "Node web-1", "ServiceAccount guarded/default"},
		closed: []string{"ServiceAccount guarded/db"},
	},
	{
		rule: "PodCreate: a policy that does not select another namespace",
		add: guarded + podMaker + namespace("store", "") + roleOf("s", "store", "shop/web", "create pods@") +
			policyFor("p", "CREATE", "pods", "false"),
		want:   []string{"Namespace store", "Node pay-1", "Node web-1", "ServiceAccount store/default"},
		closed: []string{"Namespace guarded"},
	},
	{
		rule: "PodExec: a policy that refuses exec",
		add: guarded + guardedDB + roleOf("r", "guarded", "shop/web", "create,get pods/exec@") +
			policyFor("p", "CONNECT", "pods/exec", "request.operation != 'CONNECT'"),
		closed: []string{"Pod guarded/db-1"},
	},
	{
		rule: "PodExec: a policy about a terminal",
		add: guarded + guardedDB + roleOf("r", "guarded", "shop/web", "create pods/exec@") +
			policyFor("p", "CONNECT", "pods/exec", "!has(object.tty) || !object.tty"),
		want: []string{"Pod guarded/db-1", "ServiceAccount guarded/db"},
	},
}
