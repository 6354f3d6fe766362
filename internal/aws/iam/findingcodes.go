package iam

import "github.com/node-authorizer/node-authorizer/internal/finding"

// The codes of findings about mappings, documented in docs/reference/findings.
const (
	MappingSyntax            finding.Code = "MappingSyntax"
	MappingTooLarge          finding.Code = "MappingTooLarge"
	MappingMoreDocuments     finding.Code = "MappingMoreDocuments"
	MappingUnknownKey        finding.Code = "MappingUnknownKey"
	MappingUnknownField      finding.Code = "MappingUnknownField"
	MappingFieldTwice        finding.Code = "MappingFieldTwice"
	MappingInvalid           finding.Code = "MappingInvalid"
	MappingDuplicate         finding.Code = "MappingDuplicate"
	MappingTemplateUnknown   finding.Code = "MappingTemplateUnknown"
	MappingTemplateSpaced    finding.Code = "MappingTemplateSpaced"
	MappingGroupFolded       finding.Code = "MappingGroupFolded"
	MappingGroupEmpty        finding.Code = "MappingGroupEmpty"
	MappingOtherKind         finding.Code = "MappingOtherKind"
	MappingSession           finding.Code = "MappingSession"
	MappingRolePath          finding.Code = "MappingRolePath"
	MappingRolePathAmbiguous finding.Code = "MappingRolePathAmbiguous"
	MappingReserved          finding.Code = "MappingReserved"
	MappingPartition         finding.Code = "MappingPartition"
	MappingMoreFindings      finding.Code = "MappingMoreFindings"
)
