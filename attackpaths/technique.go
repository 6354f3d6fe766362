package attackpaths

import "slices"

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
}

// techniques is a table and never changes.
var techniques = []Technique{
	{PodOnNode, "root on a node controls the processes of the pods on it", "T1611"},
	{PodTokenOnNode, "a node holds the service account tokens that are mounted into its pods", "T1528"},
	{TokenOfPodOnNode, "a node's credential mints tokens for the service accounts of its pods", "T1528"},
	{SecretOnNode, "a node's credential reads the secrets that its pods refer to", "T1552.007"},
	{PodToken, "the processes of a pod read the service account token that is mounted into it", "T1528"},
	{PodSecret, "the processes of a pod read the secrets that are mounted into it", "T1552.007"},
	{SecretRead, "each right to secrets but to create or update them gives their content", "T1552.007"},
	{ServiceAccountTokenSecret, "a secret of type service-account-token holds a token of the account", "T1528"},
	{BootstrapToken, "a bootstrap token authenticates as a bootstrap user", "T1078.004"},
	{TokenRequest, "a right to create serviceaccounts/token gives the account", "T1528"},
	{Impersonate, "a right to impersonate gives the identity", "T1134.001"},
	{PodCreate, "who creates pods in a namespace uses its service accounts, secrets and, unless Pod Security forbids it, nodes", "T1610"},
	{PodUpdate, "a right to change a pod or a pod template runs other code in its place", "T1610"},
	{PodExec, "a right to exec into a pod, or to add a container to it, controls its processes", "T1609"},
	{NodeProxy, "a right to a node's proxy runs commands in each pod of the node", "T1609"},
	{PodEscape, "a pod with rights over its host controls its node", "T1611"},
	{BindRole, "a right to bind a role gives what the role grants", "T1098.006"},
	{EscalateRole, "a right to escalate gives any right through a role that is bound already", "T1098.006"},
	{ApproveCertificate, "a right to approve client certificates gives the identities that they name", "T1649"},
	{SignCertificate, "a right to sign client certificates may give the identities that they name", "T1649"},
	{NamespaceRelabel, "a right to label a namespace turns its Pod Security off", "T1562.001"},
	{AdmissionControl, "a right to configure mutating admission rewrites what others create", "T1546"},
	{APIService, "a right to register an API server receives the requests of others", "T1557"},
	{VolumeControl, "a persistent volume that is a folder of the host gives the node", "T1611"},
	{NodeIdentityConfig, "a right to change how identities are mapped gives any identity", "T1098"},
	{StealPods, "a node may attract the pods that the scheduler may bind to it", "T1610"},
	{ControlPlaneNode, "a node that runs the control plane holds its credentials", "T1552.004"},
	{Masters, "the group system:masters, or a rule for everything, is cluster-admin", "T1078.004"},
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
