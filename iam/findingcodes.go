package iam

import "github.com/node-authorizer/node-authorizer/finding"

// The codes of what is wrong with mappings, documented in docs/findings.md.
const (
	// MappingSyntax: a text cannot be read, so that what it last said stays in force.
	MappingSyntax finding.Code = "MappingSyntax"
	// MappingTooLarge: a text, or what its aliases make of it, is larger than is read.
	MappingTooLarge finding.Code = "MappingTooLarge"
	// MappingMoreDocuments: something follows the YAML document that is read.
	MappingMoreDocuments finding.Code = "MappingMoreDocuments"
	// MappingUnknownKey: a key of the ConfigMap or file that is not looked at.
	MappingUnknownKey finding.Code = "MappingUnknownKey"
	// MappingUnknownField: a field of an entry that is not looked at.
	MappingUnknownField finding.Code = "MappingUnknownField"
	// MappingFieldTwice: a field is given twice in an entry, and the last one counts.
	MappingFieldTwice finding.Code = "MappingFieldTwice"
	// MappingInvalid: an entry cannot be used.
	MappingInvalid finding.Code = "MappingInvalid"
	// MappingDuplicate: another entry about the same caller takes precedence.
	MappingDuplicate finding.Code = "MappingDuplicate"
	// MappingTemplateUnknown: two braces that are no placeholder.
	MappingTemplateUnknown finding.Code = "MappingTemplateUnknown"
	// MappingTemplateSpaced: a placeholder with spaces between its braces.
	MappingTemplateSpaced finding.Code = "MappingTemplateSpaced"
	// MappingGroupFolded: several groups have become one through an indentation.
	MappingGroupFolded finding.Code = "MappingGroupFolded"
	// MappingGroupEmpty: an empty entry in a list of groups.
	MappingGroupEmpty finding.Code = "MappingGroupEmpty"
	// MappingOtherKind: a role is mapped as a user, or the other way round.
	MappingOtherKind finding.Code = "MappingOtherKind"
	// MappingSession: the ARN of a session stands for all sessions of its role.
	MappingSession finding.Code = "MappingSession"
	// MappingRolePath: the ARN of a role has a path, which STS leaves out.
	MappingRolePath finding.Code = "MappingRolePath"
	// MappingRolePathAmbiguous: roles that differ only in their paths.
	MappingRolePathAmbiguous finding.Code = "MappingRolePathAmbiguous"
	// MappingReserved: a username or group that no mapping may give.
	MappingReserved finding.Code = "MappingReserved"
	// MappingPartition: an ARN of a partition whose tokens are not taken.
	MappingPartition finding.Code = "MappingPartition"
	// MappingMoreFindings: there are more findings than are listed.
	MappingMoreFindings finding.Code = "MappingMoreFindings"
)
