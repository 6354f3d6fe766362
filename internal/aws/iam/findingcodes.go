package iam

import "github.com/node-authorizer/node-authorizer/internal/finding"

// The codes of findings about mappings, documented in docs/reference/findings.
const (
	// MappingSyntax: a text cannot be read, so that its last valid content stays in force.
	MappingSyntax finding.Code = "MappingSyntax"
	// MappingTooLarge: a text is too large, itself or with its aliases.
	MappingTooLarge finding.Code = "MappingTooLarge"
	// MappingMoreDocuments: there is more than one YAML document. The first one is read.
	MappingMoreDocuments finding.Code = "MappingMoreDocuments"
	// MappingUnknownKey: a key of the ConfigMap or file is ignored.
	MappingUnknownKey finding.Code = "MappingUnknownKey"
	// MappingUnknownField: a field of an entry is ignored.
	MappingUnknownField finding.Code = "MappingUnknownField"
	// MappingFieldTwice: a field is given twice in an entry. The last one counts.
	MappingFieldTwice finding.Code = "MappingFieldTwice"
	// MappingInvalid: an entry cannot be used.
	MappingInvalid finding.Code = "MappingInvalid"
	// MappingDuplicate: another entry for the same caller takes precedence.
	MappingDuplicate finding.Code = "MappingDuplicate"
	// MappingTemplateUnknown: a name between braces is not a placeholder.
	MappingTemplateUnknown finding.Code = "MappingTemplateUnknown"
	// MappingTemplateSpaced: a placeholder with spaces between its braces.
	MappingTemplateSpaced finding.Code = "MappingTemplateSpaced"
	// MappingGroupFolded: wrong indentation has joined several groups to one.
	MappingGroupFolded finding.Code = "MappingGroupFolded"
	// MappingGroupEmpty: an empty entry in a list of groups.
	MappingGroupEmpty finding.Code = "MappingGroupEmpty"
	// MappingOtherKind: a role is mapped as a user, or a user as a role.
	MappingOtherKind finding.Code = "MappingOtherKind"
	// MappingSession: the ARN of a session stands for all sessions of its role.
	MappingSession finding.Code = "MappingSession"
	// MappingRolePath: the ARN of a role has a path, which STS omits.
	MappingRolePath finding.Code = "MappingRolePath"
	// MappingRolePathAmbiguous: roles differ only in their paths.
	MappingRolePathAmbiguous finding.Code = "MappingRolePathAmbiguous"
	// MappingReserved: a username or group is reserved.
	MappingReserved finding.Code = "MappingReserved"
	// MappingPartition: the ARN is in a partition whose callers cannot authenticate.
	MappingPartition finding.Code = "MappingPartition"
	// MappingMoreFindings: there are more findings than the listed ones.
	MappingMoreFindings finding.Code = "MappingMoreFindings"
)
