package attackpaths_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// namedAttack is an attack or policy that another tool has a name for.
type namedAttack struct {
	name string
	// codes are the techniques that cover it, which the cluster shows; empty for one that is no step.
	codes []attackpaths.Code
	// notFollowed is a resource whose rights are not followed.
	notFollowed string
	// start is where a path begins, by default the service account shop/web.
	start attackpaths.Holding
	// objects are added to the cluster.
	objects string
}

var podWeb1 = attackpaths.Holding{Kind: attackpaths.Pod, Namespace: "shop", Name: "web-1"}

// fromHost is a pod whose container mounts a folder of the node.
func fromHost(path, access string) string {
	host := pod("shop", "web-1", "n1", "web", "  - {name: host, hostPath: {path: "+path+"}}\n")
	return strings.Replace(host, "image: i", "image: i, volumeMounts: [{name: host, mountPath: /host"+access+"}]", 1)
}

// podWithContext is a pod with rights over its node.
func podWithContext(spec, context string) string {
	return strings.Replace(strings.Replace(pod("shop", "web-1", "n1", "web"), "image: i", "image: i, securityContext: {"+context+"}", 1),
		"spec:\n", "spec:\n  "+spec+"\n", 1)
}

const (
	rbacG   = "@rbac.authorization.k8s.io"
	certs   = "@certificates.k8s.io"
	hooks   = "@admissionregistration.k8s.io"
	escaped = attackpaths.PodEscape
)

// kubeHound has the attacks of KubeHound.
// Source: https://kubehound.io/reference/attacks/
var kubeHound = []namedAttack{
	{
		name: "CE_MODULE_LOAD", codes: []attackpaths.Code{escaped}, start: podWeb1,
		objects: podWithContext("", "capabilities: {add: [SYS_MODULE]}"),
	},
	{name: "CE_NSENTER", codes: []attackpaths.Code{escaped}, start: podWeb1, objects: podWithContext("hostPID: true", "privileged: true")},
	{name: "CE_PRIV_MOUNT", codes: []attackpaths.Code{escaped}, start: podWeb1, objects: podWithContext("", "privileged: true")},
	{
		name: "CE_SYS_PTRACE", codes: []attackpaths.Code{escaped}, start: podWeb1,
		objects: podWithContext("hostPID: true", "capabilities: {add: [SYS_PTRACE]}"),
	},
	{name: "CE_UMH_CORE_PATTERN", codes: []attackpaths.Code{escaped}, start: podWeb1, objects: fromHost("/proc/sys/kernel", "")},
	{
		name: "CE_VAR_LOG_SYMLINK", codes: []attackpaths.Code{escaped}, start: podWeb1,
		objects: fromHost("/var/log", "") + role("logs", "shop", "shop/web", "get pods/log@"),
	},
	{name: "CONTAINER_ATTACH", codes: []attackpaths.Code{attackpaths.PodOnNode}, start: nodeN1, objects: pod("shop", "web-1", "n1", "web")},
	{name: "ENDPOINT_EXPLOIT"},
	{
		name: "EXPLOIT_CONTAINERD_SOCK", codes: []attackpaths.Code{escaped}, start: podWeb1,
		objects: fromHost("/run/containerd/containerd.sock", ", readOnly: true"),
	},
	{
		name: "EXPLOIT_HOST_READ", codes: []attackpaths.Code{escaped}, start: podWeb1,
		objects: fromHost("/var/lib/kubelet/pki", ", readOnly: true"),
	},
	{
		name: "EXPLOIT_HOST_TRAVERSE", codes: []attackpaths.Code{escaped}, start: podWeb1,
		objects: fromHost("/var/lib/kubelet/pods", ", readOnly: true") + pod("shop", "db-1", "n1", "db"),
	},
	{name: "EXPLOIT_HOST_WRITE", codes: []attackpaths.Code{escaped}, start: podWeb1, objects: fromHost("/etc", "")},
	{
		name: "IDENTITY_ASSUME", codes: []attackpaths.Code{attackpaths.PodTokenOnNode, attackpaths.Masters}, start: nodeN1,
		objects: pod("kube-system", "admin-1", "n1", "admin"),
	},
	{
		name: "IDENTITY_IMPERSONATE", codes: []attackpaths.Code{attackpaths.Impersonate},
		objects: role("r", "", "shop/web", "impersonate users@ alice", "impersonate groups@ system:masters"),
	},
	{name: "PERMISSION_DISCOVER"},
	{
		name: "POD_ATTACH", codes: []attackpaths.Code{attackpaths.PodOnNode}, start: nodeN1,
		objects: pod("shop", "db-1", "n1", "db"),
	},
	{
		name: "POD_CREATE", codes: []attackpaths.Code{attackpaths.PodCreate},
		objects: role("r", "", "shop/web", "create pods@"),
	},
	{
		name: "POD_EXEC", codes: []attackpaths.Code{attackpaths.PodExec},
		objects: pod("shop", "db-1", "n1", "db") + role("r", "shop", "shop/web", "create pods/exec@"),
	},
	{
		name: "POD_PATCH", codes: []attackpaths.Code{attackpaths.PodUpdate},
		objects: pod("shop", "db-1", "n1", "db") + role("r", "shop", "shop/web", "patch pods@"),
	},
	{
		name: "ROLE_BIND", codes: []attackpaths.Code{attackpaths.BindRole},
		objects: role("r", "", "shop/web", "bind clusterroles"+rbacG, "create clusterrolebindings"+rbacG),
	},
	{
		name: "SHARE_PS_NAMESPACE", codes: []attackpaths.Code{attackpaths.PodToken}, start: podWeb1,
		objects: podWithContext("shareProcessNamespace: true", ""),
	},
	{
		name: "TOKEN_BRUTEFORCE", codes: []attackpaths.Code{attackpaths.SecretRead},
		objects: secretObject("shop", "token") + role("r", "shop", "shop/web", "get secrets@"),
	},
	{
		name: "TOKEN_LIST", codes: []attackpaths.Code{attackpaths.SecretRead, attackpaths.ServiceAccountTokenSecret},
		objects: tokenSecret("shop", "token", "db") + role("r", "shop", "shop/web", "list secrets@"),
	},
	{name: "TOKEN_STEAL", codes: []attackpaths.Code{attackpaths.PodToken}, start: podWeb1, objects: pod("shop", "web-1", "n1", "web")},
	{
		name: "VOLUME_ACCESS", codes: []attackpaths.Code{attackpaths.PodTokenOnNode, attackpaths.SecretOnNode}, start: nodeN1,
		objects: secretObject("shop", "s") + pod("shop", "web-1", "n1", "web", "  - {name: s, secret: {secretName: s}}\n"),
	},
	{name: "VOLUME_DISCOVER"},
}

// rbacPolice has the policies of rbac-police.
// Source: https://github.com/PaloAltoNetworks/rbac-police/blob/main/docs/policies.md
var rbacPolice = []namedAttack{
	{
		name: "approve_csrs", codes: []attackpaths.Code{attackpaths.ApproveCertificate},
		objects: role("r", "", "shop/web", "create certificatesigningrequests"+certs, "update certificatesigningrequests/approval"+certs,
			"approve signers"+certs+" kubernetes.io/kube-apiserver-client"),
	},
	{
		name: "assign_sa", codes: []attackpaths.Code{attackpaths.PodCreate, attackpaths.Masters},
		objects: role("r", "kube-system", "shop/web", "create daemonsets@apps"),
	},
	{
		name: "bind_roles", codes: []attackpaths.Code{attackpaths.BindRole},
		objects: role("r", "", "shop/web", "bind clusterroles"+rbacG, "create rolebindings"+rbacG),
	},
	{name: "cluster_admin", codes: []attackpaths.Code{attackpaths.Masters}, objects: role("r", "", "shop/web", "* *@*")},
	{
		name: "control_webhooks", codes: []attackpaths.Code{attackpaths.SecretRead, attackpaths.AdmissionControl},
		objects: secretObject("shop", "s") + role("r", "", "shop/web", "create validatingwebhookconfigurations"+hooks,
			"create mutatingwebhookconfigurations"+hooks),
	},
	{
		name: "eks_modify_aws_auth", codes: []attackpaths.Code{attackpaths.NodeIdentityConfig},
		objects: "\napiVersion: v1\nkind: Node\nmetadata: {name: eks-1}\nstatus: {nodeInfo: {kubeletVersion: v1.33.1-eks-1234567}}\n---" +
			role("r", "kube-system", "shop/web", "update configmaps@"),
	},
	{
		name: "escalate_roles", codes: []attackpaths.Code{attackpaths.EscalateRole},
		objects: role("r", "", "shop/web", "escalate,update clusterroles"+rbacG),
	},
	{
		name: "impersonate", codes: []attackpaths.Code{attackpaths.Impersonate},
		objects: role("r", "", "shop/web", "impersonate serviceaccounts@"),
	},
	{
		name: "issue_token_secrets", codes: []attackpaths.Code{attackpaths.ServiceAccountTokenSecret},
		objects: role("r", "kube-system", "shop/web", "create,get secrets@"),
	},
	{
		name: "modify_node_status", codes: []attackpaths.Code{attackpaths.StealPods}, start: nodeN1,
		objects: pod("shop", "web-1", "n1", "web") + inPool + role("r", "", "shop/web", "patch nodes/status@"),
	},
	{name: "modify_pod_status", notFollowed: "pods/status", objects: role("r", "", "shop/web", "patch pods/status@")},
	{
		name: "modify_pods", codes: []attackpaths.Code{attackpaths.PodUpdate},
		objects: pod("kube-system", "admin-1", "n1", "admin") + role("r", "kube-system", "shop/web", "patch pods@"),
	},
	{
		name: "modify_service_status_cve_2020_8554", notFollowed: "services/status",
		objects: role("r", "", "shop/web", "patch services/status@"),
	},
	{
		name: "nodes_proxy", codes: []attackpaths.Code{attackpaths.NodeProxy},
		objects: pod("shop", "db-1", "n1", "db") + role("r", "", "shop/web", "create nodes/proxy@"),
	},
	{
		name: "obtain_token_weak_ns", codes: []attackpaths.Code{attackpaths.TokenRequest},
		objects: role("r", "shop", "shop/web", "create serviceaccounts/token@"),
	},
	{
		name: "pods_ephemeral_ctrs", codes: []attackpaths.Code{attackpaths.PodExec},
		objects: pod("shop", "db-1", "n1", "db") + role("r", "shop", "shop/web", "patch pods/ephemeralcontainers@"),
	},
	{
		name: "pods_exec", codes: []attackpaths.Code{attackpaths.PodExec},
		objects: pod("kube-system", "admin-1", "n1", "admin") + role("r", "kube-system", "shop/web", "create pods/exec@"),
	},
	{name: "providerIAM"},
	{
		name: "rce_weak_ns", codes: []attackpaths.Code{attackpaths.PodExec},
		objects: pod("shop", "db-1", "n1", "db") + role("r", "shop", "shop/web", "create pods/exec@"),
	},
	{
		name: "retrieve_secrets", codes: []attackpaths.Code{attackpaths.SecretRead},
		objects: secretObject("kube-system", "s") + role("r", "kube-system", "shop/web", "get secrets@"),
	},
	{
		name: "steal_pods", codes: []attackpaths.Code{attackpaths.StealPods}, start: nodeN1, objects: placedElsewhere,
	},
	{
		name: "token_request", codes: []attackpaths.Code{attackpaths.TokenRequest, attackpaths.Masters},
		objects: role("r", "kube-system", "shop/web", "create serviceaccounts/token@"),
	},
}

// placedElsewhere is the pod of a workload on another node.
var placedElsewhere = strings.Replace(pod("shop", "db-1", "n2", "db"), "metadata: {",
	"metadata: {ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: db, uid: u, controller: true}], ", 1)

// inPool is one that selects nodes by a label that no node may set on itself.
var inPool = strings.Replace(placedElsewhere, "spec:\n", "spec:\n  nodeSelector: {node-restriction.kubernetes.io/pool: pay}\n", 1)

func secretObject(namespace, name string) string {
	return "\napiVersion: v1\nkind: Secret\nmetadata: {namespace: " + namespace + ", name: " + name + "}\ntype: Opaque\n---"
}

func tokenSecret(namespace, name, account string) string {
	return "\napiVersion: v1\nkind: Secret\nmetadata: {namespace: " + namespace + ", name: " + name +
		", annotations: {kubernetes.io/service-account.name: " + account + "}}\ntype: kubernetes.io/service-account-token\n---"
}

func TestAttacksThatOtherToolsName(t *testing.T) {
	text, err := os.ReadFile("../docs/reference/techniques/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## Attacks that other tools name\n")
	if !found {
		t.Fatal("docs/reference/techniques/README.md has no section about attacks that other tools name")
	}
	var documented, names []string
	for _, line := range strings.Split(section, "\n") {
		if name, _, ok := strings.Cut(strings.TrimPrefix(line, "| `"), "` | "); ok && strings.HasPrefix(line, "| `") {
			documented = append(documented, name)
		}
	}
	for _, a := range slices.Concat(kubeHound, rbacPolice) {
		names = append(names, a.name)
		t.Run(a.name, func(t *testing.T) { a.check(t, section) })
	}
	if !slices.Equal(documented, names) {
		t.Errorf("documented are\n%q\nwant\n%q", documented, names)
	}
}

// check finds the codes in a path from the start, and in the row of the documentation.
func (a *namedAttack) check(t *testing.T, section string) {
	_, row, _ := strings.Cut(section, "| `"+a.name+"` | ")
	row, _, _ = strings.Cut(row, "\n")
	if codes := strings.Count(row, ".md#"); codes != len(a.codes) {
		t.Errorf("the documentation has %d techniques, want %d", codes, len(a.codes))
	}
	c := newCluster()
	parse(t, c, node("n1")+node("n2")+namespace("shop", "")+namespace("kube-system", "")+
		account("shop", "web")+account("shop", "db")+account("kube-system", "admin")+
		role("everything", "", "kube-system/admin", "* *@*")+a.objects)
	c.EKS = c.Inventory.EKS()
	start := a.start
	if start == (attackpaths.Holding{}) {
		start = accountWeb
	}
	if len(a.codes)+len(a.notFollowed) == 0 {
		return
	}
	r, err := graphOf(t, c).From(start)
	if err != nil {
		t.Fatal(err)
	}
	used := map[attackpaths.Code]bool{}
	for _, reached := range r.Reached {
		for _, s := range reached.Path {
			used[s.Technique] = true
		}
	}
	for _, code := range a.codes {
		if !used[code] {
			t.Errorf("no path from %s uses %s: %v", start, code, r.Reached)
		}
		if !strings.Contains(row, "["+string(code)+"]("+strings.TrimPrefix(techniquePage(code), "techniques/")+")") {
			t.Errorf("the documentation does not name %s: %s", code, row)
		}
	}
	isOpen := func(n attackpaths.NotFollowed) bool { return n.Resource+"/"+n.Subresource == a.notFollowed }
	if a.notFollowed != "" && (!slices.ContainsFunc(r.NotFollowed, isOpen) || !strings.Contains(row, "rights.md")) {
		t.Errorf("%s is not among the rights that are not followed: %v; documented: %s", a.notFollowed, r.NotFollowed, row)
	}
}
