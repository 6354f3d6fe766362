package attackpaths

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

// Code names a technique.
type Code string

// The techniques. See docs/reference/techniques.
const (
	PodOnNode                 Code = "PodOnNode"
	PodTokenOnNode            Code = "PodTokenOnNode"
	TokenOfPodOnNode          Code = "TokenOfPodOnNode"
	SecretOnNode              Code = "SecretOnNode"
	PodToken                  Code = "PodToken"
	PodSecret                 Code = "PodSecret"
	SecretRead                Code = "SecretRead"
	ServiceAccountTokenSecret Code = "ServiceAccountTokenSecret"
	BootstrapToken            Code = "BootstrapToken"
	TokenRequest              Code = "TokenRequest"
	Impersonate               Code = "Impersonate"
	PodCreate                 Code = "PodCreate"
	PodUpdate                 Code = "PodUpdate"
	PodExec                   Code = "PodExec"
	NodeProxy                 Code = "NodeProxy"
	PodEscape                 Code = "PodEscape"
	BindRole                  Code = "BindRole"
	EscalateRole              Code = "EscalateRole"
	ApproveCertificate        Code = "ApproveCertificate"
	SignCertificate           Code = "SignCertificate"
	NamespaceRelabel          Code = "NamespaceRelabel"
	AdmissionControl          Code = "AdmissionControl"
	APIService                Code = "APIService"
	VolumeControl             Code = "VolumeControl"
	NodeIdentityConfig        Code = "NodeIdentityConfig"
	StealPods                 Code = "StealPods"
	ControlPlaneNode          Code = "ControlPlaneNode"
	Masters                   Code = "Masters"
)

// Technique is a row of the table of techniques.
type Technique struct {
	Code Code
	// Summary says in one line what the technique does.
	Summary string
	// ATTACK is the id of the technique in MITRE ATT&CK.
	ATTACK string

	// needs are the rights of an identity that the technique uses: each is enough, or decides together with others
	// of the row. What only helps, as a right to create a service account does, is in helps.
	needs, helps []right
	// only is the only object that matters of rights that have a namespace; zero for all.
	only limit
	// because says why a step is possible. A technique of which each step is one right has none: the right says it.
	because reason
	// ofPod is set if edges of the technique have the place of a pod.
	ofPod bool
}

// techniques is a table and never changes.
var techniques = []Technique{
	{
		Code: PodOnNode, Summary: "root on a node controls the processes of the pods on it", ATTACK: "T1611",
		ofPod: true, because: ofPod(func(p *inventory.Pod) string { return "the pod runs on " + p.Node }),
	},
	{
		Code: PodTokenOnNode, Summary: "a node holds the service account tokens that are mounted into its pods", ATTACK: "T1528",
		ofPod: true, because: ofPod(func(p *inventory.Pod) string {
			return "pod " + p.Name.String() + " runs on " + p.Node + " and mounts a token"
		}),
	},
	{
		Code: TokenOfPodOnNode, Summary: "a node's credential mints tokens for the service accounts of its pods", ATTACK: "T1528",
		ofPod: true, helps: []right{requestAudience, requestOtherAudience}, because: becauseOfTokenOfPod,
	},
	{
		Code: SecretOnNode, Summary: "a node's credential reads the secrets that its pods refer to", ATTACK: "T1552.007",
		because: always("a pod on the node or a volume attached to it refers to the secret"),
	},
	{
		Code: PodToken, Summary: "the processes of a pod read the service account token that is mounted into it", ATTACK: "T1528",
		ofPod: true, because: always("the pod mounts a token of the service account"),
	},
	{
		Code: PodSecret, Summary: "the processes of a pod read the secrets that are mounted into it", ATTACK: "T1552.007",
		ofPod: true, because: always("the pod's containers see the secret"),
	},
	{
		Code: SecretRead, Summary: "every verb on secrets except create and update gives their content", ATTACK: "T1552.007",
		needs: []right{readSecrets, patchSecrets, deleteSecrets, createValidatingWebhooks, changeValidatingWebhooks},
	},
	{
		Code: ServiceAccountTokenSecret, Summary: "a secret of type service-account-token holds a token of the account", ATTACK: "T1528",
		needs: []right{createSecrets}, helps: []right{readSecrets, patchSecrets, deleteSecrets},
		because: becauseOfTokenSecret,
	},
	{
		Code: BootstrapToken, Summary: "a bootstrap token authenticates as a bootstrap user", ATTACK: "T1078.004",
		needs: []right{createSecrets}, only: limit{namespace: metav1.NamespaceSystem},
		because: always("the secret is a bootstrap token"),
	},
	{
		Code: TokenRequest, Summary: "a right to create serviceaccounts/token gives the account", ATTACK: "T1528",
		needs: []right{createToken}, helps: []right{createAccounts},
		because: always("may create the service account, and a token of it"),
	},
	{
		Code: Impersonate, Summary: "a right to impersonate gives the identity", ATTACK: "T1134.001",
		needs: []right{
			impersonateServiceAccounts, impersonateUsers, impersonateGroups, impersonateArbitraryNodes, impersonateAccountsOnly,
			impersonateUserInfo, impersonateGroupInfo,
		},
		helps:   []right{impersonateNodeNames, impersonateAssociatedNode},
		because: always("may impersonate users or service accounts, and groups"),
	},
	{
		Code: PodCreate, ATTACK: "T1610",
		Summary: "who creates pods in a namespace uses its service accounts, secrets and, unless Pod Security forbids it, nodes",
		needs: []right{
			createPods, createDeployments, createDaemonSets, createStatefulSets, createReplicaSets, createReplicationControllers,
			createJobs, createCronJobs,
		},
		helps:   []right{createAccounts, createNamespaces, deletePods},
		because: becauseOfNamespace,
	},
	{
		Code: PodUpdate, Summary: "a right to change a pod or a pod template runs other code in its place", ATTACK: "T1610",
		needs: []right{
			patchPods, patchDeployments, patchDaemonSets, patchStatefulSets, patchReplicaSets, patchReplicationControllers,
			patchCronJobs,
		},
		because: becauseOfPodUpdate,
	},
	{
		Code: PodExec, Summary: "a right to exec into a pod, or to add a container to it, controls its processes", ATTACK: "T1609",
		needs:   []right{execPods, attachPods, addContainers},
		because: becauseOfExec,
	},
	{
		Code: NodeProxy, Summary: "a right to a node's proxy runs commands in each pod of the node", ATTACK: "T1609",
		needs: []right{proxyNodes},
	},
	{
		Code: PodEscape, Summary: "a pod with rights over its host controls its node", ATTACK: "T1611",
		ofPod: true, helps: []right{readPodLogs, readNodeLogs}, because: becauseOfEscape,
	},
	{
		Code: BindRole, Summary: "a right to bind a role gives what the role grants", ATTACK: "T1098.006",
		needs: []right{
			bindClusterRoles, bindRoles, createClusterRoleBindings, updateClusterRoleBindings, createRoleBindings,
			updateRoleBindings,
		},
		helps:   []right{deleteClusterRoleBindings, deleteRoleBindings},
		because: becauseOfBinding,
	},
	{
		Code: EscalateRole, Summary: "a right to escalate gives any right through a role that is bound already", ATTACK: "T1098.006",
		needs:   []right{escalateClusterRoles, escalateRoles, createClusterRoles, createRoles, updateClusterRoles, updateRoles},
		helps:   []right{deleteClusterRoles, deleteRoles},
		because: becauseOfEscalation,
	},
	{
		Code: ApproveCertificate, Summary: "a right to approve client certificates gives the identities that they name", ATTACK: "T1649",
		needs: []right{approveSigners, updateApprovals, autoApprove},
		helps: []right{
			createSigningRequests, readSigningRequests, writeSigningRequests, deleteSigningRequests, getApprovals, getSigningStatus,
			patchSigningStatus,
		},
		because: always("may create a request for a client certificate, and have it approved"),
	},
	{
		Code: SignCertificate, Summary: "a right to sign client certificates may give the identities that they name", ATTACK: "T1649",
		needs:   []right{signSigners, updateSigningStatus, patchSigningStatus},
		helps:   []right{createSigningRequests},
		because: always("may create and sign a request for a client certificate"),
	},
	{
		Code: NamespaceRelabel, Summary: "a right to label a namespace turns its Pod Security off", ATTACK: "T1562.001",
		needs: []right{labelNamespaces, labelByStatus, finalizeNamespaces},
	},
	{
		Code: AdmissionControl, Summary: "a right to configure mutating admission rewrites what others create", ATTACK: "T1546",
		needs: []right{
			createMutatingWebhooks, changeMutatingWebhooks, createMutatingPolicies, changeMutatingPolicies,
			createMutatingPolicyBindings, changeMutatingPolicyBindings,
		},
		because: becauseOfPolicy,
	},
	{
		Code: APIService, Summary: "a right to register an API server receives the requests of others", ATTACK: "T1557",
		needs: []right{writeAPIServices},
	},
	{
		Code: VolumeControl, Summary: "a persistent volume that is a folder of the host gives the node", ATTACK: "T1611",
		needs: []right{createVolumes}, helps: []right{createPods, createClaims, deleteVolumes},
		because: becauseOfVolume,
	},
	{
		Code: NodeIdentityConfig, Summary: "a right to change how identities are mapped gives any identity", ATTACK: "T1098",
		needs: []right{createConfigMaps, patchConfigMaps, writeIdentityMappings}, only: limit{metav1.NamespaceSystem, awsAuth},
	},
	{
		Code: StealPods, Summary: "a node may attract the pods that the scheduler may bind to it", ATTACK: "T1610",
		needs: []right{changeNodes, changeNodeStatus},
		ofPod: true, because: becauseOfSteal,
	},
	{
		Code: ControlPlaneNode, Summary: "a node that runs the control plane holds its credentials", ATTACK: "T1552.004",
		ofPod: true, because: becauseOfControlPlane,
	},
	{
		Code: Masters, Summary: "the group system:masters, or a rule for everything, is cluster-admin", ATTACK: "T1078.004",
		because: always("may do everything"),
	},
}

// Techniques returns the table of techniques.
func Techniques() []Technique { return slices.Clone(techniques) }

// rowOf is the place of a technique in the table, from one; zero stands for what is part of
// another step: a right that an identity has, a group that it is in.
func rowOf(code Code) row {
	for i := range techniques {
		if techniques[i].Code == code {
			return row(i + 1)
		}
	}
	return 0
}

// codeOf is the code of a technique of the table; empty for a custom one, see Graph.codeOf.
func codeOf(r row) Code {
	if isCustomRow(r) {
		return ""
	}
	return techniques[r-1].Code
}
