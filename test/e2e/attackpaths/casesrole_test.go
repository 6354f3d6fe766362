package attackpaths

var roleCases = []testCase{
	{
		rule: "BindRole: cluster-admin",
		add:  roleOf("r", "", "shop/web", "bind clusterroles"+inRBAC+" cluster-admin", "create clusterrolebindings"+inRBAC),
		want: []string{"ClusterAdmin"},
	},
	{
		rule: "BindRole: in one namespace",
		add: namespace("store", enforceLabel+": restricted") + opaque("store", "key") + clusterRole("reader", "get secrets@") +
			roleOf("r", "store", "shop/web", "bind clusterroles"+inRBAC+" reader", "create rolebindings"+inRBAC),
		want: []string{"Secret store/key"},
	},
	{
		rule: "BindRole: in a binding that exists",
		add: opaque("shop", "key") + roleOf("reader", "shop", "user nobody", "get secrets@") +
			roleOf("r", "shop", "shop/web", "bind roles"+inRBAC+" reader", "patch rolebindings"+inRBAC+" reader"),
		want: []string{"Secret shop/key"},
	},
	{
		rule: "BindRole: cluster-admin, in a binding of some name that is applied",
		add:  roleOf("r", "", "shop/web", "bind clusterroles"+inRBAC+" cluster-admin", "create,patch clusterrolebindings"+inRBAC+" new"),
		want: []string{"ClusterAdmin"},
	},
	{
		rule: "BindRole: cluster-admin, in a binding of some name that is put",
		add:  roleOf("r", "", "shop/web", "bind clusterroles"+inRBAC+" cluster-admin", "create,update clusterrolebindings"+inRBAC+" new"),
		want: []string{"ClusterAdmin"},
	},
	{
		rule: "BindRole: not in a new binding by a right to create one of some name",
		add:  roleOf("r", "", "shop/web", "bind clusterroles"+inRBAC+" cluster-admin", "create clusterrolebindings"+inRBAC+" new"),
	},
	{
		rule: "EscalateRole: a role of some name that a binding names and that does not exist",
		add: binding("ClusterRole", "ghost", "", "ghost", "shop/web") +
			roleOf("r", "", "shop/web", "escalate,create,patch clusterroles"+inRBAC+" ghost"),
		want: []string{"ClusterAdmin"},
	},
	{rule: "BindRole: not without a right to bindings", add: roleOf("r", "", "shop/web", "bind clusterroles"+inRBAC)},
	{rule: "BindRole: not without bind", add: roleOf("r", "", "shop/web", "create,update,patch clusterrolebindings"+inRBAC)},
	{
		rule: "BindRole: not another role",
		add:  roleOf("r", "", "shop/web", "bind clusterroles"+inRBAC+" view", "create clusterrolebindings"+inRBAC),
		some: true,
	},
	{
		rule: "BindRole: not in the cluster with a right in a namespace", some: true,
		add: roleOf("r", "shop", "shop/web", "bind clusterroles"+inRBAC+" system:auth-delegator", "create rolebindings"+inRBAC) +
			roleOf("c", "", "shop/web", "create clusterrolebindings"+inRBAC),
	},
	{
		rule: "EscalateRole: a cluster role that is bound", add: roleOf("r", "", "shop/web", "escalate,update clusterroles"+inRBAC+" r"),
		want: []string{"ClusterAdmin"},
	},
	{
		rule: "EscalateRole: a role of a namespace", add: roleOf("r", "shop", "shop/web", "escalate,patch roles"+inRBAC+" r"),
		want: []string{"Namespace shop", "Node pay-1", "Node web-1", "ServiceAccount shop/db", "ServiceAccount shop/default"},
	},
	{
		rule: "EscalateRole: an aggregated role that is bound",
		add: aggregated("sum", "shop/web") + labelled("part", "sum", "get configmaps@") +
			roleOf("r", "", "shop/web", "escalate,patch clusterroles"+inRBAC+" sum"),
		want: []string{"ClusterAdmin"},
	},
	{rule: "EscalateRole: not without escalate", add: roleOf("r", "", "shop/web", "update,patch clusterroles"+inRBAC)},
	{rule: "EscalateRole: not without update", add: roleOf("r", "", "shop/web", "escalate clusterroles"+inRBAC)},
	{
		rule: "EscalateRole: not a role that nobody has",
		add:  clusterRole("other", "get configmaps@") + roleOf("r", "", "shop/web", "escalate,update clusterroles"+inRBAC+" other"),
	},
	{
		rule: "EscalateRole: a new part of an aggregated role",
		add: aggregated("sum", "shop/web") + labelled("part", "sum", "get configmaps@") +
			roleOf("r", "", "shop/web", "escalate,create clusterroles"+inRBAC),
		want: []string{"ClusterAdmin"},
	},
	{
		rule: "EscalateRole: another role becomes a part of an aggregated role",
		add: aggregated("sum", "shop/web") + labelled("part", "sum", "get configmaps@") + clusterRole("other", "get configmaps@") +
			roleOf("r", "", "shop/web", "escalate,patch clusterroles"+inRBAC+" other"),
		want: []string{"ClusterAdmin"},
	},
	{
		rule: "EscalateRole: not a new part by the name of a role",
		add: aggregated("sum", "shop/web") + labelled("part", "sum", "get configmaps@") +
			roleOf("r", "", "shop/web", "escalate clusterroles"+inRBAC+" part-1", "create clusterroles"+inRBAC),
	},
	{
		rule: "EscalateRole: a cluster role that a binding names and that does not exist",
		add: binding("ClusterRole", "gone", "", "b", "shop/web") +
			roleOf("r", "", "shop/web", "escalate,create clusterroles"+inRBAC),
		want: []string{"ClusterAdmin"},
	},
	{
		rule: "EscalateRole: a role that a binding names and that does not exist",
		add:  binding("Role", "gone", "shop", "b", "shop/web") + roleOf("r", "shop", "shop/web", "escalate,create roles"+inRBAC),
		want: []string{"Namespace shop", "Node pay-1", "Node web-1", "ServiceAccount shop/db", "ServiceAccount shop/default"},
	},
	{
		rule: "EscalateRole: not a role that does not exist without escalate",
		add:  binding("ClusterRole", "gone", "", "b", "shop/web") + roleOf("r", "", "shop/web", "create,patch clusterroles"+inRBAC),
	},
	{
		rule: "SecretRead: a right from an aggregated role",
		add:  opaque("shop", "key") + aggregated("sum", "shop/web") + labelled("part", "sum", "get secrets@"),
		want: []string{"Secret shop/key"}, some: true,
	},
	{
		rule: "EscalateRole: not a part of an aggregated role without escalate",
		add: aggregated("sum", "shop/web") + labelled("part", "sum", "get configmaps@") +
			roleOf("r", "", "shop/web", "create,update,patch clusterroles"+inRBAC),
	},
}

const requests = "certificatesigningrequests" + inCerts

var approval = []string{"create,get " + requests, "update certificatesigningrequests/approval" + inCerts}

var certificateCases = []testCase{
	{
		rule: "ApproveCertificate: of any user",
		add: roleOf("r", "", "shop/web", append(approval, "approve signers"+inCerts+" "+clientSigner)...) +
			roleOf("a", "shop", "user alice", "get configmaps@"),
		want: []string{"ClusterAdmin", "User alice", "User system:node:web-1", "ServiceAccount kube-system/kube-dns"}, some: true,
	},
	{
		rule: "ApproveCertificate: of any node",
		add:  roleOf("r", "", "shop/web", append(approval, "approve signers"+inCerts+" "+kubeletSigner)...),
		want: []string{"User system:node:pay-1", "User system:node:web-1"},
	},
	{
		rule: "ApproveCertificate: requests of nodes that are approved by themselves",
		add:  roleOf("r", "", "shop/web", "create,list "+requests, "create certificatesigningrequests/nodeclient"+inCerts),
		want: []string{"User system:node:pay-1", "User system:node:web-1"},
	},
	{
		rule: "ApproveCertificate: one creates and reads, another approves",
		add: roleOf("r", "", "shop/web", "create,get "+requests) + roleOf("t", "shop", "shop/web", "create serviceaccounts/token@ db") +
			roleOf("s", "", "shop/db", "update certificatesigningrequests/approval"+inCerts+" q",
				"approve signers"+inCerts+" "+kubeletSigner),
		want: []string{"ServiceAccount shop/db", "User system:node:pay-1", "User system:node:web-1"},
	},
	{
		rule: "ApproveCertificate: not without a right to the signer",
		add:  roleOf("r", "", "shop/web", append(approval, "approve signers"+inCerts+" example.com/x")...),
	},
	{
		rule: "ApproveCertificate: not without a right to approvals",
		add:  roleOf("r", "", "shop/web", "create,get "+requests, "approve signers"+inCerts+" "+clientSigner),
	},
	{
		rule: "ApproveCertificate: a second patch of the approval answers with the certificate",
		add: roleOf("r", "", "shop/web", "create "+requests, "patch certificatesigningrequests/approval"+inCerts,
			"approve signers"+inCerts+" "+kubeletSigner),
		want: []string{"User system:node:pay-1", "User system:node:web-1"},
	},
	{
		rule: "ApproveCertificate: a second update of the approval answers with the certificate",
		add: roleOf("r", "", "shop/web", "create "+requests, "update certificatesigningrequests/approval"+inCerts,
			"approve signers"+inCerts+" "+kubeletSigner),
		want: []string{"User system:node:pay-1", "User system:node:web-1"},
	},
	{
		rule: "ApproveCertificate: not one that is approved by itself without reading it",
		add: roleOf("r", "", "shop/web", "create "+requests, "create certificatesigningrequests/nodeclient"+inCerts,
			"update certificatesigningrequests/status"+inCerts),
	},
	{
		rule: "ApproveCertificate: one that is approved by itself, updated",
		add:  roleOf("r", "", "shop/web", "create,update "+requests, "create certificatesigningrequests/nodeclient"+inCerts),
		want: []string{"User system:node:pay-1", "User system:node:web-1"},
	},
	{
		rule: "ApproveCertificate: one that is approved by itself, deleted as a dry run",
		add:  roleOf("r", "", "shop/web", "create,delete "+requests, "create certificatesigningrequests/nodeclient"+inCerts),
		want: []string{"User system:node:pay-1", "User system:node:web-1"},
	},
	{
		rule: "ApproveCertificate: one that is approved by itself, deleted with all others as a dry run",
		add:  roleOf("r", "", "shop/web", "create,deletecollection "+requests, "create certificatesigningrequests/nodeclient"+inCerts),
		want: []string{"User system:node:pay-1", "User system:node:web-1"},
	},
	{
		rule: "ApproveCertificate: one that is approved by itself, read through its approval",
		add: roleOf("r", "", "shop/web", "create "+requests, "create certificatesigningrequests/nodeclient"+inCerts,
			"get certificatesigningrequests/approval"+inCerts),
		want: []string{"User system:node:pay-1", "User system:node:web-1"},
	},
	{
		rule: "ApproveCertificate: one that is approved by itself, read through its status",
		add: roleOf("r", "", "shop/web", "create "+requests, "create certificatesigningrequests/nodeclient"+inCerts,
			"get certificatesigningrequests/status"+inCerts),
		want: []string{"User system:node:pay-1", "User system:node:web-1"},
	},
	{
		rule: "ApproveCertificate: one that is approved by itself, by a patch of its status",
		add: roleOf("r", "", "shop/web", "create "+requests, "create certificatesigningrequests/nodeclient"+inCerts,
			"patch certificatesigningrequests/status"+inCerts),
		want: []string{"User system:node:pay-1", "User system:node:web-1"},
	},
	{
		rule: "ApproveCertificate: not without creating requests",
		add:  roleOf("r", "", "shop/web", "get "+requests, "update certificatesigningrequests/approval"+inCerts, "approve signers"+inCerts),
	},
	{
		rule: "SignCertificate: ends at the status of the request", add: roleOf("r", "", "shop/web", "create,get "+requests,
			"update certificatesigningrequests/status"+inCerts, "sign signers"+inCerts+" "+kubeletSigner),
		possible: []string{"User system:node:web-1"}, ends: true,
	},
}

var possibleCases = []testCase{
	{
		rule: "AdmissionControl: a mutating webhook", add: roleOf("r", "", "shop/web", "create mutatingwebhookconfigurations"+inAdmis),
		possible: []string{"ClusterAdmin"}, ends: true,
	},
	{
		rule:     "AdmissionControl: a mutating policy with its binding",
		add:      roleOf("r", "", "shop/web", "create mutatingadmissionpolicies"+inAdmis, "create mutatingadmissionpolicybindings"+inAdmis),
		possible: []string{"ClusterAdmin"}, ends: true,
	},
	{rule: "AdmissionControl: not a mutating policy alone", add: roleOf("r", "", "shop/web", "create mutatingadmissionpolicies"+inAdmis)},
	{
		rule: "AdmissionControl: not a validating webhook",
		add:  roleOf("r", "", "shop/web", "create validatingwebhookconfigurations"+inAdmis),
	},
	{
		rule: "AdmissionControl: a mutating webhook that exists", add: someWebhooks("MutatingWebhookConfiguration") +
			roleOf("r", "", "shop/web", "patch mutatingwebhookconfigurations"+inAdmis+" some"),
		possible: []string{"ClusterAdmin"}, ends: true,
	},
	{
		rule: "AdmissionControl: not one that does not exist", add: someWebhooks("MutatingWebhookConfiguration") +
			roleOf("r", "", "shop/web", "update,patch mutatingwebhookconfigurations"+inAdmis+" other"),
	},
	{
		rule:     "SecretRead: a validating webhook is told what is written",
		add:      opaque("shop", "key") + roleOf("r", "", "shop/web", "create validatingwebhookconfigurations"+inAdmis),
		possible: []string{"Secret shop/key"}, ends: true,
	},
	{
		rule: "SecretRead: a validating webhook that exists", add: opaque("shop", "key") + someWebhooks("ValidatingWebhookConfiguration") +
			roleOf("r", "", "shop/web", "update validatingwebhookconfigurations"+inAdmis),
		possible: []string{"Secret shop/key"}, ends: true,
	},
	{
		rule: "SecretRead: not a validating webhook that does not exist", add: opaque("shop", "key") +
			roleOf("r", "", "shop/web", "update,patch validatingwebhookconfigurations"+inAdmis),
	},
	{
		rule: "APIService: an API server of the attacker", add: roleOf("r", "", "shop/web", "create apiservices@apiregistration.k8s.io"),
		possible: []string{"ClusterAdmin"}, ends: true,
	},
	{rule: "APIService: not its status", add: roleOf("r", "", "shop/web", "update,patch apiservices/status@apiregistration.k8s.io")},
	{
		rule:     "NodeIdentityConfig: aws-auth of an EKS cluster",
		add:      roleOf("r", "kube-system", "shop/web", "create configmaps@"),
		eks:      true,
		possible: []string{"ClusterAdmin"}, ends: true,
	},
	{rule: "NodeIdentityConfig: not elsewhere", add: roleOf("r", "kube-system", "shop/web", "create configmaps@")},
	{
		rule: "StealPods: a pod for nodes with a label that the node gives itself", start: nodeWeb1,
		add:      podOf("shop", "db-1", "", "db", "  nodeSelector: {pool: db}"),
		possible: []string{"ServiceAccount shop/db"},
	},
	{
		rule: "StealPods: an account that may change nodes gives a node such a label", start: nodeWeb1,
		add: podOf("shop", "agent", web1, "web") + roleOf("r", "", "shop/web", "patch nodes@") +
			podOf("shop", "db-1", "", "db", "  nodeSelector: {node-restriction.kubernetes.io/nodes: db}"),
		want: []string{"Pod shop/agent", "ServiceAccount shop/web"}, possible: []string{"ServiceAccount shop/db"},
	},
	{
		rule: "StealPods: so does one that may change their status", start: nodeWeb1,
		add: podOf("shop", "agent", web1, "web") + roleOf("r", "", "shop/web", "patch nodes/status@ web-1") +
			podOf("shop", "db-1", "", "db", "  nodeSelector: {node-restriction.kubernetes.io/status: db}"),
		want: []string{"Pod shop/agent", "ServiceAccount shop/web"}, possible: []string{"ServiceAccount shop/db"},
	},
	{
		rule: "StealPods: not a label that no node gives itself", start: nodeWeb1,
		add: podOf("shop", "db-1", "", "db", "  nodeSelector: {node-restriction.kubernetes.io/pool: db}"),
	},
}
