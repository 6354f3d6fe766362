package iam

import (
	"fmt"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/internal/finding"
)

// The names of the lists of a source, as the ConfigMap aws-auth has them.
const (
	MapRoles    = "mapRoles"
	MapUsers    = "mapUsers"
	MapAccounts = "mapAccounts"
)

// Mappings are the mappings of one source: a file, a ConfigMap, or all
// IAMIdentityMappings. They are immutable and safe for concurrent use. The lists have
// usable entries only, and each caller once.
type Mappings struct {
	Roles, Users, Accounts []Mapping
	// Unusable are the entries for roles and users that cannot be used, each caller once
	// per kind. Find returns them, so that their callers are refused and no other entry
	// applies.
	Unusable []Mapping
	// Broken are the lists (mapRoles, mapUsers, mapAccounts) that could not be read. They
	// are empty, or have the previous mappings: see Keep.
	Broken []string

	index *index
}

// Collect sorts mappings into their lists. If two in one list are for the same caller,
// the last one wins, as in aws-iam-authenticator, and a finding reports it. An unusable
// one always wins: rights that an edit removed must not come back from another entry.
func Collect(list []Mapping) (*Mappings, []finding.Finding) {
	m := &Mappings{}
	var findings []finding.Finding
	stays := map[string]int{}
	for i, mapping := range list {
		key := string(mapping.Kind) + " " + mapping.caller()
		if before, ok := stays[key]; ok && list[before].Unusable && !mapping.Unusable {
			continue
		}
		stays[key] = i
	}
	for i, mapping := range list {
		winner := stays[string(mapping.Kind)+" "+mapping.caller()]
		switch {
		case winner != i && mapping.Unusable:
			// It was already reported when it was parsed.
		case winner != i:
			findings = append(findings, duplicate(mapping, list[winner]))
		case mapping.Unusable:
			m.Unusable = append(m.Unusable, mapping)
		default:
			into := m.list(mapping.Kind)
			*into = append(*into, mapping)
		}
	}
	findings = append(findings, shadowed(m)...)
	m.index = makeIndex(m)
	return m, findings
}

// list returns the list for a kind of mappings.
func (m *Mappings) list(kind MappingKind) *[]Mapping {
	switch kind {
	case RoleMapping:
		return &m.Roles
	case UserMapping:
		return &m.Users
	default:
		return &m.Accounts
	}
}

// All returns the mappings in the order in which they are tried.
func (m *Mappings) All() []Mapping { return slices.Concat(m.Roles, m.Users, m.Accounts) }

// caller returns the key of the caller that a mapping applies to.
func (m Mapping) caller() string {
	if m.Kind == AccountMapping {
		return m.Account
	}
	return foldASCII(m.ARN)
}

// about returns the caller as it is written.
func (m Mapping) about() string {
	if m.Kind == AccountMapping {
		return m.Account
	}
	return m.ARN
}

func duplicate(m, winner Mapping) finding.Finding {
	if winner.Unusable {
		return hidden(m, winner, "the caller is refused: an entry that cannot be used takes precedence")
	}
	f := finding.Finding{
		Code: MappingDuplicate, Severity: finding.Warning, Place: m.Place, Subject: m.about(),
		Message:     fmt.Sprintf("%s is mapped again at %s", quote(m.about()), winner.Place),
		Consequence: "the last entry counts, this one has no effect",
		Remedy:      "delete the wrong entry",
	}
	if m.Kind == AccountMapping || m.Username == winner.Username && slices.Equal(m.Groups, winner.Groups) {
		f.Severity = finding.Info
		f.Consequence = "none: both are the same"
		f.Remedy = "delete one of them"
	}
	return f
}

// hidden returns the finding for an entry that has no effect because of one that cannot
// be used.
func hidden(m, unusable Mapping, consequence string) finding.Finding {
	return finding.Finding{
		Code: MappingDuplicate, Severity: finding.Error, Place: m.Place, Subject: m.about(),
		Message:     fmt.Sprintf("%s is mapped again at %s, by an entry that cannot be used", quote(m.about()), unusable.Place),
		Consequence: consequence,
		Remedy:      "fix or delete the entry that cannot be used",
	}
}

// shadowed finds entries of users that an entry of a role takes precedence over.
func shadowed(m *Mappings) []finding.Finding {
	roles, unusable := map[string]Mapping{}, map[string]Mapping{}
	for _, role := range m.Roles {
		roles[role.caller()] = role
	}
	for _, entry := range m.Unusable {
		if entry.Kind == RoleMapping {
			unusable[entry.caller()] = entry
		}
	}
	var findings []finding.Finding
	for _, user := range m.Users {
		if entry, ok := unusable[user.caller()]; ok {
			findings = append(findings, hidden(user, entry, "the caller is refused: roles are tried first, and that entry hides this one"))
			continue
		}
		if role, ok := roles[user.caller()]; ok {
			findings = append(findings, finding.Finding{
				Code: MappingDuplicate, Severity: finding.Warning, Place: user.Place, Subject: user.ARN,
				Message:     fmt.Sprintf("%s is also mapped as a role, at %s", quote(user.ARN), role.Place),
				Consequence: "roles are tried first, this entry has no effect",
				Remedy:      "delete the wrong entry",
			})
		}
	}
	return findings
}

// Keep returns the mappings with previous lists in place of those that could not be read.
// Without previous mappings, these lists stay empty.
func (m *Mappings) Keep(previous *Mappings) *Mappings {
	if previous == nil || len(m.Broken) == 0 {
		return m
	}
	kept := &Mappings{Roles: m.Roles, Users: m.Users, Accounts: m.Accounts, Broken: m.Broken}
	for _, list := range mappingLists() {
		from := m
		if slices.Contains(m.Broken, list.name) {
			from = previous
			*kept.list(list.kind) = *previous.list(list.kind)
		}
		for _, entry := range from.Unusable {
			if entry.Kind == list.kind {
				kept.Unusable = append(kept.Unusable, entry)
			}
		}
	}
	kept.index = makeIndex(kept)
	return kept
}

// foldASCII lowers the case of ASCII letters.
func foldASCII(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}
