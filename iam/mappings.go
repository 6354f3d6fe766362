package iam

import (
	"fmt"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/finding"
)

// The names of the lists of a source, as the ConfigMap aws-auth has them.
const (
	MapRoles    = "mapRoles"
	MapUsers    = "mapUsers"
	MapAccounts = "mapAccounts"
)

// Mappings are those of one source: of a file, a ConfigMap, or all
// IAMIdentityMappings. They do not change once they are made, and may be used
// concurrently. Only entries that can be used are in the lists, each caller once in
// each list.
type Mappings struct {
	Roles, Users, Accounts []Mapping
	// Unusable are the entries about roles and users that cannot be used, each caller
	// once of each kind. Find returns them, so that their callers are refused and get
	// nothing from another entry.
	Unusable []Mapping
	// Broken are the lists (mapRoles, mapUsers, mapAccounts) that could not be read.
	// They are empty here, or what they were before: see Keep.
	Broken []string

	index *index
}

// Collect puts mappings in their lists. Where two of one list are about the same
// caller, the last one stays, as in aws-iam-authenticator, and a finding says so. An
// unusable one stays whatever its position: what an entry gave before it was edited
// must not come back from another entry.
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
			// What is wrong with it was found when it was read.
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

// list is where the mappings of a kind are.
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

// caller is what mappings about the same caller have in common.
func (m Mapping) caller() string {
	if m.Kind == AccountMapping {
		return m.Account
	}
	return foldASCII(m.ARN)
}

// about is the caller as it is written.
func (m Mapping) about() string {
	if m.Kind == AccountMapping {
		return m.Account
	}
	return m.ARN
}

func duplicate(m, winner Mapping) finding.Finding {
	if winner.Unusable {
		return hidden(m, winner, "the caller is refused: no other entry counts beside one that cannot be used")
	}
	f := finding.Finding{
		Code: MappingDuplicate, Severity: finding.Warning, Place: m.Place, Subject: m.about(),
		Message:     fmt.Sprintf("%s is mapped once more at %s", quote(m.about()), winner.Place),
		Consequence: "the last entry counts, this one has no effect",
		Remedy:      "delete the entry that is not meant",
	}
	if m.Kind == AccountMapping || m.Username == winner.Username && slices.Equal(m.Groups, winner.Groups) {
		f.Severity = finding.Info
		f.Consequence = "none: both say the same"
		f.Remedy = "delete one of them"
	}
	return f
}

// hidden is the finding about an entry that has no effect because of one that cannot be
// used.
func hidden(m, unusable Mapping, consequence string) finding.Finding {
	return finding.Finding{
		Code: MappingDuplicate, Severity: finding.Error, Place: m.Place, Subject: m.about(),
		Message:     fmt.Sprintf("%s is mapped once more at %s, by an entry that cannot be used", quote(m.about()), unusable.Place),
		Consequence: consequence,
		Remedy:      "fix or delete the entry that cannot be used",
	}
}

// shadowed finds users' entries that a role's entry takes precedence over.
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
				Message:     fmt.Sprintf("%s is mapped as a role too, at %s", quote(user.ARN), role.Place),
				Consequence: "roles are tried first, this entry has no effect",
				Remedy:      "delete the entry that is not meant",
			})
		}
	}
	return findings
}

// Keep returns the mappings with the lists that could not be read as they were
// before. Without mappings from before, these lists stay empty.
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

// foldASCII makes texts alike that differ in the case of ASCII letters only.
func foldASCII(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}
