package attackpaths

var podCases = []testCase{
	{
		rule: "PodCreate: accounts and secrets of the namespace",
		add:  opaque("shop", "key") + roleOf("r", "shop", "shop/web", "create pods@"),
		want: []string{"Namespace shop", "Secret shop/key", "ServiceAccount shop/db", "ServiceAccount shop/default"},
	},
	{
		rule: "PodCreate: an account that only bindings name, by a right to create accounts",
		add: roleOf("r", "shop", "shop/web", "create pods@", "create serviceaccounts@") +
			roleOf("g", "shop", "shop/ghost", "get configmaps@"),
		want: []string{"Namespace shop", "ServiceAccount shop/db", "ServiceAccount shop/default", "ServiceAccount shop/ghost"},
	},
	{
		rule: "PodCreate: an account that only bindings name, by a job", add: roleOf("g", "shop", "shop/ghost", "get configmaps@") +
			roleOf("r", "shop", "shop/web", "create jobs@batch", "create serviceaccounts@"),
		want: []string{"Namespace shop", "ServiceAccount shop/db", "ServiceAccount shop/default", "ServiceAccount shop/ghost"},
	},
	{rule: "PodCreate: not by a right to create one of some name", add: roleOf("r", "shop", "shop/web", "create pods@ p")},
	{
		rule: "PodCreate: every node where Pod Security is privileged",
		add:  namespace("tools", "") + nodeOf("n1") + roleOf("r", "tools", "shop/web", "create pods@"),
		want: []string{"Namespace tools", "Node n1", "Node pay-1", "Node web-1", "ServiceAccount tools/default"},
	},
	{
		rule: "PodCreate: no node where Pod Security is baseline",
		add:  namespace("tools", enforceLabel+": baseline") + roleOf("r", "tools", "shop/web", "create pods@"),
		want: []string{"Namespace tools", "ServiceAccount tools/default"},
	},
	{
		rule: "PodUpdate: the image of a pod", add: podDB + roleOf("r", "shop", "shop/web", "patch pods@"),
		want: []string{"Pod shop/db-1", "ServiceAccount shop/db"},
	},
	{
		rule: "PodUpdate: by update and by name", add: podDB + roleOf("r", "shop", "shop/web", "update pods@ db-1"),
		want: []string{"Pod shop/db-1", "ServiceAccount shop/db"},
	},
	{rule: "PodUpdate: not another pod", add: podDB + roleOf("r", "shop", "shop/web", "patch pods@ db-2")},
	{rule: "PodUpdate: not its status", add: podDB + roleOf("r", "shop", "shop/web", "patch pods/status@")},
	{
		rule: "PodExec: exec by name", add: podDB + roleOf("r", "shop", "shop/web", "create pods/exec@ db-1"),
		want: []string{"Pod shop/db-1", "ServiceAccount shop/db"},
	},
	{rule: "PodExec: not another pod", add: podDB + roleOf("r", "shop", "shop/web", "create pods/exec@ db-2")},
	{rule: "PodExec: not by get alone", add: podDB + roleOf("r", "shop", "shop/web", "get pods/exec@")},
	{
		rule: "PodExec: attach is possible", add: podDB + roleOf("r", "shop", "shop/web", "create pods/attach@"),
		possible: []string{"Pod shop/db-1", "ServiceAccount shop/db"},
	},
	{
		rule: "PodExec: a container that is added", add: podDB + roleOf("r", "shop", "shop/web", "patch pods/ephemeralcontainers@"),
		want: []string{"Pod shop/db-1", "ServiceAccount shop/db"},
	},
	{
		rule: "PodExec: a privileged container that is added",
		add: namespace("tools", "") + podOf("tools", "t", pay1, "default") +
			roleOf("r", "tools", "shop/web", "update pods/ephemeralcontainers@ t"),
		want: []string{"Node pay-1", "Pod tools/t", "ServiceAccount tools/default"},
	},
	{
		rule: "NodeProxy: each pod of the node",
		add:  podDB + podOf("shop", "db-2", pay1, "db") + roleOf("r", "", "shop/web", "create nodes/proxy@ web-1"),
		want: []string{"Pod shop/db-1", "ServiceAccount shop/db"},
	},
	{
		rule: "NodeProxy: get is enough", add: podDB + roleOf("r", "", "shop/web", "get nodes/proxy@"),
		want: []string{"Pod shop/db-1", "ServiceAccount shop/db"},
	},
	{rule: "NodeProxy: not another node", add: podDB + roleOf("r", "", "shop/web", "create nodes/proxy@ pay-1")},
	{
		rule: "NodeProxy: not the finer subresources",
		add:  podDB + roleOf("r", "", "shop/web", "get nodes/stats@", "get nodes/metrics@", "get nodes/pods@"),
	},
}

var workloadCases = []testCase{
	makesPods("deployments@apps"), makesPods("daemonsets@apps"), makesPods("statefulsets@apps"), makesPods("replicasets@apps"),
	makesPods("replicationcontrollers@"), makesPods("jobs@batch"), makesPods("cronjobs@batch"),
	{
		rule: "PodUpdate: the template of a deployment",
		add:  workloadOf("apps/v1", "Deployment", "shop", "web", 1) + roleOf("r", "shop", "shop/web", "patch deployments@apps web"),
		want: []string{"Namespace shop", "ServiceAccount shop/db", "ServiceAccount shop/default"},
	},
	{
		rule: "PodUpdate: the template of a stateful set",
		add:  workloadOf("apps/v1", "StatefulSet", "shop", "web", 1) + roleOf("r", "shop", "shop/web", "update statefulsets@apps"),
		want: []string{"Namespace shop", "ServiceAccount shop/db", "ServiceAccount shop/default"},
	},
	{
		rule: "PodUpdate: the template of a daemon set",
		add:  workloadOf("apps/v1", "DaemonSet", "shop", "web", 1) + roleOf("r", "shop", "shop/web", "patch daemonsets@apps"),
		want: []string{"Namespace shop", "ServiceAccount shop/db", "ServiceAccount shop/default"},
	},
	{
		rule: "PodUpdate: not the template of another deployment",
		add:  workloadOf("apps/v1", "Deployment", "shop", "web", 1) + roleOf("r", "shop", "shop/web", "patch deployments@apps other"),
	},
	{
		rule: "PodUpdate: not by the scale of a deployment",
		add:  workloadOf("apps/v1", "Deployment", "shop", "web", 1) + roleOf("r", "shop", "shop/web", "patch deployments/scale@apps"),
	},
}

// makesPods is the case of a workload.
func makesPods(resource string) testCase {
	return testCase{
		rule: "PodCreate: through " + resource, add: roleOf("r", "shop", "shop/web", "create "+resource),
		want: []string{"Namespace shop", "ServiceAccount shop/db", "ServiceAccount shop/default"},
	}
}

var hostCases = []testCase{
	{
		rule: "PodEscape: a privileged pod", start: podDB1, add: privilegedPod("shop", "db-1", pay1),
		want: []string{"Node pay-1"},
	},
	{
		rule: "PodEscape: a folder of the host", start: podDB1,
		add:  hostPathPod("/etc/kubernetes"),
		want: []string{"Node pay-1"},
	},
	{
		rule: "PodEscape: the kubelet's key, read only", start: podDB1,
		add:  replaced(hostPathPod("/var/lib/kubelet/pki"), "mountPath: /host", "mountPath: /host, readOnly: true"),
		want: []string{"User system:node:pay-1"},
	},
	{
		rule: "PodEscape: what is mounted into other pods, read only", start: podDB1,
		add: podOf("shop", "db-2", pay1, "db") +
			replaced(hostPathPod("/var/lib/kubelet/pods"), "mountPath: /host", "mountPath: /host, readOnly: true"),
		want: []string{"ServiceAccount shop/db"},
	},
	{
		rule: "VolumeControl: a claim that is a folder of the host, where Pod Security is baseline",
		add:  namespace("tools", enforceLabel+": baseline") + folderVolume("/etc") + roleOf("r", "tools", "shop/web", "create pods@"),
		want: []string{"Namespace tools", "Node pay-1", "Node web-1", "ServiceAccount tools/default"},
	},
	{
		rule: "VolumeControl: not a claim that is data of the host",
		add: namespace("tools", enforceLabel+": baseline") + folderVolume("/usr/share/zoneinfo") +
			roleOf("r", "tools", "shop/web", "create pods@"),
		want: []string{"Namespace tools", "ServiceAccount tools/default"},
	},
	{rule: "PodEscape: not a harmless folder of the host", start: podDB1, add: hostPathPod("/var/log/app")},
	{
		rule: "PodEscape: links in the folder of logs, by a right to logs", start: podLogs, add: mountedLogs +
			roleOf("r", "shop", "shop/web", "get pods/log@ logs"),
		want: []string{"ServiceAccount shop/web"}, possible: []string{nodeUser},
	},
	{
		rule: "PodEscape: not by a right to the logs of another pod", start: podLogs, add: mountedLogs +
			roleOf("r", "shop", "shop/web", "get pods/log@ db-1"),
		want: []string{"ServiceAccount shop/web"},
	},
	{
		rule: "PodEscape: not with a folder of logs that is read only", start: podLogs,
		add: replaced(mountedLogs, "mountPath: /host", "mountPath: /host, readOnly: true") +
			roleOf("r", "", "shop/web", "get pods/log@", "get nodes/log@"),
		want: []string{"ServiceAccount shop/web"},
	},
	{
		rule: "NamespaceRelabel: Pod Security is turned off",
		add:  roleOf("r", "shop", "shop/web", "create pods@", "patch namespaces@ shop"),
		want: []string{"Namespace shop", "Node pay-1", "Node web-1", "ServiceAccount shop/db", "ServiceAccount shop/default"},
	},
	{
		rule: "NamespaceRelabel: by update", add: roleOf("r", "shop", "shop/web", "create pods@", "update namespaces@"),
		want: []string{"Namespace shop", "Node pay-1", "Node web-1", "ServiceAccount shop/db", "ServiceAccount shop/default"},
	},
	{
		rule: "NamespaceRelabel: by a patch of the status",
		add:  roleOf("r", "shop", "shop/web", "create pods@", "patch namespaces/status@"),
		want: []string{"Namespace shop", "Node pay-1", "Node web-1", "ServiceAccount shop/db", "ServiceAccount shop/default"},
	},
	{
		rule: "NamespaceRelabel: by an update of the finalizers",
		add:  roleOf("r", "shop", "shop/web", "create pods@", "update namespaces/finalize@"),
		want: []string{"Namespace shop", "Node pay-1", "Node web-1", "ServiceAccount shop/db", "ServiceAccount shop/default"},
	},
	{rule: "NamespaceRelabel: nothing without pods", add: roleOf("r", "shop", "shop/web", "patch namespaces@ shop")},
	{
		rule: "NamespaceRelabel: not another namespace",
		add: namespace("store", enforceLabel+": restricted") + roleOf("r", "shop", "shop/web", "create pods@") +
			roleOf("relabel", "", "shop/web", "patch namespaces@ store"),
		want: []string{"Namespace shop", "ServiceAccount shop/db", "ServiceAccount shop/default"},
	},
	{
		rule: "PodCreate: a privileged pod in a namespace that the attacker makes", some: true,
		add:  roleOf("r", "", "shop/web", "create namespaces@", "create pods@"),
		want: []string{"Node pay-1", "Node web-1"},
	},
	{
		rule: "PodCreate: a workload in a namespace that the attacker makes", some: true,
		add:  roleOf("r", "", "shop/web", "create namespaces@", "create daemonsets@apps"),
		want: []string{"Node pay-1", "Node web-1"},
	},
	{
		rule: "PodCreate: not in a new namespace by a right in another one",
		add:  roleOf("r", "", "shop/web", "create namespaces@") + roleOf("p", "shop", "shop/web", "create pods@"),
		want: []string{"Namespace shop", "ServiceAccount shop/db", "ServiceAccount shop/default"},
	},
	{
		rule: "VolumeControl: a folder of the host where Pod Security is baseline",
		add: namespace("tools", enforceLabel+": baseline") + roleOf("v", "", "shop/web", "create persistentvolumes@") +
			roleOf("r", "tools", "shop/web", "create pods@", "create persistentvolumeclaims@"),
		want: []string{"Namespace tools", "Node pay-1", "Node web-1", "ServiceAccount tools/default"},
	},
	{
		rule: "VolumeControl: a controller makes the claim of an ephemeral volume",
		add: namespace("tools", enforceLabel+": baseline") + roleOf("v", "", "shop/web", "create persistentvolumes@") +
			roleOf("r", "tools", "shop/web", "create pods@"),
		want: []string{"Namespace tools", "Node pay-1", "Node web-1", "ServiceAccount tools/default"},
	},
	{
		rule: "VolumeControl: an ephemeral volume in a template",
		add: namespace("tools", enforceLabel+": baseline") + roleOf("v", "", "shop/web", "create persistentvolumes@") +
			roleOf("r", "tools", "shop/web", "create statefulsets@apps"),
		want: []string{"Namespace tools", "Node pay-1", "Node web-1", "ServiceAccount tools/default"},
	},
	{
		rule: "VolumeControl: not without a right to volumes",
		add: namespace("tools", enforceLabel+": baseline") +
			roleOf("r", "tools", "shop/web", "create pods@", "create persistentvolumeclaims@"),
		want: []string{"Namespace tools", "ServiceAccount tools/default"},
	},
}
