package iam

import (
	"fmt"

	"github.com/node-authorizer/node-authorizer/internal/finding"
)

// Rules are the settings of an authenticator that concern mappings.
type Rules struct {
	// Partition is the partition of all callers. It is empty if it is not known.
	Partition string
	// RolePaths is how paths of roles are compared.
	RolePaths PathPolicy
	Reserved  Reserved
}

// Check returns the findings about usable mappings that no caller gets under these rules,
// sorted. Findings of the parser are not repeated.
func (m *Mappings) Check(rules Rules) []finding.Finding {
	c := &checks{rules: rules, index: m.index}
	if c.index == nil {
		c.index = makeIndex(m)
	}
	for _, mapping := range m.All() {
		if mapping.Kind == AccountMapping {
			continue
		}
		c.partition(mapping)
		c.path(mapping)
		c.reserved(mapping)
	}
	finding.Sort(c.findings)
	return c.findings
}

type checks struct {
	rules    Rules
	index    *index
	findings []finding.Finding
}

func (c *checks) found(m Mapping, f finding.Finding) {
	f.Place, f.Subject = m.Place, m.ARN
	c.findings = append(c.findings, f)
}

func (c *checks) partition(m Mapping) {
	arn, err := ParseARN(foldASCII(m.ARN))
	if err != nil || c.rules.Partition == "" || arn.Partition == c.rules.Partition {
		return
	}
	c.found(m, finding.Finding{
		Code: MappingPartition, Severity: finding.Error,
		Message:     fmt.Sprintf("%s is in the partition %s, and callers are in %s", quote(m.ARN), arn.Partition, c.rules.Partition),
		Consequence: "the entry maps no caller",
		Remedy:      fmt.Sprintf("write arn:%s:…, or set iam.partition", c.rules.Partition),
	})
}

func (c *checks) path(m Mapping) {
	pathless, ok := withoutPath(m.ARN)
	if !ok {
		return
	}
	f := finding.Finding{
		Code: MappingRolePath, Severity: finding.Error,
		Message:     fmt.Sprintf("%s has a path, which STS omits", quote(m.ARN)),
		Consequence: "the entry maps no caller",
		Remedy:      "write " + pathless,
	}
	other := c.exactly(pathless)
	switch named := c.index.named[foldASCII(pathless)]; {
	case c.rules.RolePaths != MatchName:
	case other != nil:
		f.Message = fmt.Sprintf("%s has a path, and the same role is mapped without it at %s", quote(m.ARN), other.Place)
		f.Consequence = "the entry without the path counts, this one maps no caller"
		f.Remedy = "delete the wrong entry"
	case named == nil:
		f.Code = MappingRolePathAmbiguous
		f.Message = fmt.Sprintf("%s differs from another entry only in its path, which STS omits", quote(m.ARN))
		f.Consequence = "none of these entries maps a caller"
		f.Remedy = "keep one of them, and write " + pathless
	default:
		f.Severity = finding.Warning
		f.Consequence = "the role is matched by its name; aws-iam-authenticator and EKS do not match it"
	}
	c.found(m, f)
}

// exactly returns the mapping with an ARN.
func (c *checks) exactly(arn string) *Mapping {
	if m, ok := c.index.roles[foldASCII(arn)]; ok {
		return m
	}
	return c.index.users[foldASCII(arn)]
}

func (c *checks) reserved(m Mapping) {
	refusals := []error{c.rules.Reserved.always("username", m.Username, c.rules.Reserved.GrantedUsernames)}
	for _, group := range m.Groups {
		refusals = append(refusals, c.rules.Reserved.always("group", group, c.rules.Reserved.GrantedGroups))
	}
	for _, err := range refusals {
		if err != nil {
			c.found(m, finding.Finding{
				Code: MappingReserved, Severity: finding.Error,
				Message:     err.Error(),
				Consequence: "every caller with this mapping is refused",
				Remedy:      "choose another name, or grant this one with iam.reserved in the server's config file",
			})
		}
	}
}
