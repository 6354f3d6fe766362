package attackpaths

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Code names a technique.
type Code string

// The techniques. See docs/techniques.md.
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
	// of the row. What only helps, as a right to create a service account does, is not among them.
	needs []need
}

// need is a right for some object.
type need struct {
	right
	// namespace and name are the only object that matters; empty for all.
	namespace, name string
}

// each needs rights for any object.
func each(rights ...right) []need {
	all := make([]need, len(rights))
	for i, r := range rights {
		all[i].right = r
	}
	return all
}

// techniques is a table and never changes.
var techniques = []Technique{
	{PodOnNode, "root on a node controls the processes of the pods on it", "T1611", nil},
	{PodTokenOnNode, "a node holds the service account tokens that are mounted into its pods", "T1528", nil},
	{TokenOfPodOnNode, "a node's credential mints tokens for the service accounts of its pods", "T1528", nil},
	{SecretOnNode, "a node's credential reads the secrets that its pods refer to", "T1552.007", nil},
	{PodToken, "the processes of a pod read the service account token that is mounted into it", "T1528", nil},
	{PodSecret, "the processes of a pod read the secrets that are mounted into it", "T1552.007", nil},
	{
		SecretRead, "every verb on secrets except create and update gives their content", "T1552.007",
		each(readSecrets, patchSecrets, deleteSecrets, createValidatingWebhooks, changeValidatingWebhooks),
	},
	{ServiceAccountTokenSecret, "a secret of type service-account-token holds a token of the account", "T1528", each(createSecrets)},
	{
		BootstrapToken, "a bootstrap token authenticates as a bootstrap user", "T1078.004",
		[]need{{right: createSecrets, namespace: metav1.NamespaceSystem}},
	},
	{TokenRequest, "a right to create serviceaccounts/token gives the account", "T1528", each(createToken)},
	{Impersonate, "a right to impersonate gives the identity", "T1134.001", each(
		impersonateServiceAccounts, impersonateUsers, impersonateGroups, impersonateArbitraryNodes, impersonateAccountsOnly,
		impersonateUserInfo, impersonateGroupInfo,
	)},
	{
		PodCreate, "who creates pods in a namespace uses its service accounts, secrets and, unless Pod Security forbids it, nodes", "T1610",
		each(
			createPods, createDeployments, createDaemonSets, createStatefulSets, createReplicaSets, createReplicationControllers,
			createJobs, createCronJobs,
		),
	},
	{PodUpdate, "a right to change a pod or a pod template runs other code in its place", "T1610", each(
		patchPods, patchDeployments, patchDaemonSets, patchStatefulSets, patchReplicaSets, patchReplicationControllers,
		patchCronJobs,
	)},
	{
		PodExec, "a right to exec into a pod, or to add a container to it, controls its processes", "T1609",
		each(execPods, attachPods, addContainers),
	},
	{NodeProxy, "a right to a node's proxy runs commands in each pod of the node", "T1609", each(proxyNodes)},
	{PodEscape, "a pod with rights over its host controls its node", "T1611", nil},
	{BindRole, "a right to bind a role gives what the role grants", "T1098.006", each(
		bindClusterRoles, bindRoles, createClusterRoleBindings, updateClusterRoleBindings, createRoleBindings, updateRoleBindings,
	)},
	{
		EscalateRole, "a right to escalate gives any right through a role that is bound already", "T1098.006",
		each(escalateClusterRoles, escalateRoles, createClusterRoles, createRoles, updateClusterRoles, updateRoles),
	},
	{
		ApproveCertificate, "a right to approve client certificates gives the identities that they name", "T1649",
		each(approveSigners, updateApprovals, autoApprove),
	},
	{
		SignCertificate, "a right to sign client certificates may give the identities that they name", "T1649",
		each(signSigners, updateSigningStatus, patchSigningStatus),
	},
	{
		NamespaceRelabel, "a right to label a namespace turns its Pod Security off", "T1562.001",
		each(labelNamespaces, labelByStatus, finalizeNamespaces),
	},
	{
		AdmissionControl, "a right to configure mutating admission rewrites what others create", "T1546",
		each(createMutatingWebhooks, changeMutatingWebhooks, writeMutatingPolicies, writeMutatingPolicyBindings),
	},
	{APIService, "a right to register an API server receives the requests of others", "T1557", each(writeAPIServices)},
	{VolumeControl, "a persistent volume that is a folder of the host gives the node", "T1611", each(createVolumes)},
	{NodeIdentityConfig, "a right to change how identities are mapped gives any identity", "T1098", []need{
		{createConfigMaps, metav1.NamespaceSystem, awsAuth},
		{patchConfigMaps, metav1.NamespaceSystem, awsAuth},
		{right: writeIdentityMappings},
	}},
	{
		StealPods, "a node may attract the pods that the scheduler may bind to it", "T1610",
		each(changeNodes, changeNodeStatus),
	},
	{ControlPlaneNode, "a node that runs the control plane holds its credentials", "T1552.004", nil},
	{Masters, "the group system:masters, or a rule for everything, is cluster-admin", "T1078.004", nil},
}

// Techniques returns the table of techniques.
func Techniques() []Technique { return slices.Clone(techniques) }

// row is the place of a technique in the table, from one; zero stands for what is part of
// another step: a right that an identity has, a group that it is in.
type row uint8

// rowOf finds the row of a code.
func rowOf(code Code) row {
	return row(slices.IndexFunc(techniques, func(t Technique) bool { return t.Code == code }) + 1)
}

// code is that of a technique of the table; empty for a custom one, see Graph.codeOf.
func (r row) code() Code {
	if r.isCustom() {
		return ""
	}
	return techniques[r-1].Code
}
