package iam

import "strings"

// PathPolicy is how the path of a role in a mapping is compared. IAM has paths
// ("role/teams/a/node"), and STS omits them from the ARNs of sessions.
type PathPolicy string

// The policies.
const (
	// MatchName matches a mapping by the name of its role, with any path, unless another
	// mapping of the source has a role of that name with another path. Names of roles are
	// unique in an account, regardless of letter case and paths.
	MatchName PathPolicy = "MatchName"
	// Exact compares ARNs as they are written, so that a mapping with a path matches no
	// caller, as in aws-iam-authenticator.
	Exact PathPolicy = "Exact"
)

// index finds mappings. Its keys are folded.
type index struct {
	roles, users, accounts map[string]*Mapping
	// named has the mappings of roles with paths by their ARNs without paths. The value
	// is nil if the path is ambiguous. An unusable mapping hides the others.
	named map[string]*Mapping
}

func makeIndex(m *Mappings) *index {
	ix := &index{
		roles: byCaller(m.Roles), users: byCaller(m.Users), accounts: byCaller(m.Accounts),
		named: map[string]*Mapping{},
	}
	for i := range m.Unusable {
		switch entry := &m.Unusable[i]; entry.Kind {
		case RoleMapping:
			ix.roles[entry.caller()] = entry
		case UserMapping:
			ix.users[entry.caller()] = entry
		}
	}
	for _, list := range [][]Mapping{m.Unusable, m.Roles, m.Users} {
		for i := range list {
			pathless, ok := withoutPath(list[i].ARN)
			if !ok {
				continue
			}
			key := foldASCII(pathless)
			if other, taken := ix.named[key]; !taken {
				ix.named[key] = &list[i]
			} else if other == nil || !other.Unusable && other.caller() != list[i].caller() {
				ix.named[key] = nil
			}
		}
	}
	return ix
}

func byCaller(list []Mapping) map[string]*Mapping {
	found := make(map[string]*Mapping, len(list))
	for i := range list {
		found[list[i].caller()] = &list[i]
	}
	return found
}

// withoutPath removes the path from the ARN of a role. It returns false if there is none.
func withoutPath(arn string) (string, bool) {
	prefix, resource, _ := cutResource(arn)
	path, ok := strings.CutPrefix(foldASCII(resource), "role/")
	last := strings.LastIndexByte(path, '/')
	if !ok || last < 0 {
		return "", false
	}
	kind := len("role/")
	return prefix + resource[:kind] + resource[kind+last+1:], true
}

// cutResource splits an ARN before its last field, the resource.
func cutResource(arn string) (prefix, resource string, ok bool) {
	at := 0
	for range 5 {
		next := strings.IndexByte(arn[at:], ':')
		if next < 0 {
			return "", "", false
		}
		at += next + 1
	}
	return arn[:at], arn[at:], true
}

// Find returns the mapping of a caller. It tries its canonical ARN among the roles, then
// the users, then roles with a path under MatchName, and then its account. Letter case in
// ARNs does not matter. If the mapping is Unusable, the caller is refused, and no other
// list or source is tried.
func (m *Mappings) Find(canonical, account string, policy PathPolicy) (Mapping, bool) {
	ix := m.index
	if ix == nil {
		ix = makeIndex(m)
	}
	arn := foldASCII(canonical)
	if found, ok := ix.roles[arn]; ok {
		return *found, true
	}
	if found, ok := ix.users[arn]; ok {
		return *found, true
	}
	if policy == MatchName {
		if found := ix.named[arn]; found != nil {
			return *found, true
		}
	}
	if found, ok := ix.accounts[account]; ok {
		return *found, true
	}
	return Mapping{}, false
}
