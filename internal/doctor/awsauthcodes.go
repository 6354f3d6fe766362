package doctor

import "github.com/node-authorizer/node-authorizer/finding"

// Codes of findings about the mappings of AWS roles. Package iam has the codes for syntax errors
// in entries.
const (
	NodeRoleUsername             finding.Code = "NodeRoleUsername"
	NodeRoleUsernameFixed        finding.Code = "NodeRoleUsernameFixed"
	NodeRoleUsernameIsInstanceID finding.Code = "NodeRoleUsernameIsInstanceID"
	NodeRoleUsernameOfOtherNode  finding.Code = "NodeRoleUsernameOfOtherNode"
	NodeRoleWithoutNodesGroup    finding.Code = "NodeRoleWithoutNodesGroup"
	NodeRoleIsAdministrator      finding.Code = "NodeRoleIsAdministrator"
	NodeRoleWithoutRequests      finding.Code = "NodeRoleWithoutRequests"
	NodeRoleMissing              finding.Code = "NodeRoleMissing"
	NoNodeRole                   finding.Code = "NoNodeRole"
	RoleAccount                  finding.Code = "RoleAccount"
	FargateProfileARN            finding.Code = "FargateProfileARN"
	FargateUsername              finding.Code = "FargateUsername"
	FargateWithoutNodeProxier    finding.Code = "FargateWithoutNodeProxier"
	HybridUsername               finding.Code = "HybridUsername"
	HybridSessionName            finding.Code = "HybridSessionName"
	WindowsWithoutKubeProxy      finding.Code = "WindowsWithoutKubeProxy"
	AccessEntryFirst             finding.Code = "AccessEntryFirst"
	AccountWithoutGroups         finding.Code = "AccountWithoutGroups"
	AWSAuthNotRead               finding.Code = "AWSAuthNotRead"
	ClusterIDMismatch            finding.Code = "ClusterIDMismatch"
	STSHostMismatch              finding.Code = "STSHostMismatch"
)
