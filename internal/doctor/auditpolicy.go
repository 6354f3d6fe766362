package doctor

import "strings"

// auditPolicy logs the requests of kubelets with any username, and the written objects that
// NodeRestriction reads. It does not log secrets.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None  # they are no kubelets
  userGroups: ["system:serviceaccounts"]
- level: None
  users: ["system:apiserver", "system:kube-controller-manager", "system:kube-scheduler"]
- level: Metadata  # never what is secret
  resources:
  - {group: "", resources: ["secrets", "configmaps", "serviceaccounts/token"]}
  - {group: "authentication.k8s.io"}
- level: Request  # what NodeRestriction looks at
  userGroups: ["system:nodes"]
  verbs: ["create", "update", "patch", "delete"]
  resources:
  - {group: "", resources: ["nodes", "nodes/status", "pods", "pods/status", "pods/eviction", "persistentvolumeclaims/status"]}
  - {group: "certificates.k8s.io", resources: ["certificatesigningrequests", "podcertificaterequests"]}
  - {group: "storage.k8s.io", resources: ["csinodes", "csinodes/status"]}
  - {group: "resource.k8s.io", resources: ["resourceslices"]}
- level: Metadata
`

// recordNodes returns the actions that enable the audit log of kube-apiserver.
func recordNodes() []Action {
	// The policy is a quoted string and not a here-document, because commands are indented,
	// and the end of a here-document must begin its line. YAML allows any indentation.
	file := append([]string{"echo '"}, strings.Split(strings.TrimSuffix(auditPolicy, "\n"), "\n")...)
	file[len(file)-1] += "' > audit-policy.yaml"
	return []Action{
		{Text: "write an audit policy where every API server reads it", Commands: file},
		{Text: "on every API server, one after another: --audit-policy-file=FILE --audit-log-path=/var/log/kubernetes/audit/audit.log " +
			"--audit-log-maxsize=500 --audit-log-maxbackup=10; the file and the folder have to be mounted into its pod"},
	}
}
