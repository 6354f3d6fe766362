package iam

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/internal/finding"
)

// ParseConfigMap reads the mappings of a ConfigMap like kube-system/aws-auth. Its keys
// mapRoles, mapUsers and mapAccounts each hold a YAML list. Source is its name in
// messages. At is its place: findings and mappings have that place with Key and KeyLine.
//
// Unusable entries are left out and reported, the others are kept. A key that is not
// valid YAML is in Broken. A missing or empty key has no mappings, which is not an error.
func ParseConfigMap(data map[string]string, source string, at finding.Place) (*Mappings, []finding.Finding) {
	r := &reader{source: source, at: at}
	var broken []string
	for _, list := range mappingLists() {
		text, ok := data[list.name]
		if !ok || meansNothing(text) {
			continue
		}
		if !r.text(text, list, "data."+list.name) {
			broken = append(broken, list.name)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		r.unknownKey(key, data)
	}
	return r.finish(broken)
}

// unknownKey reports a key of a ConfigMap that is ignored.
func (r *reader) unknownKey(name string, data map[string]string) {
	f := finding.Finding{
		Code: MappingUnknownKey, Severity: finding.Warning, Place: r.place("data."+name, 0),
		Message:     fmt.Sprintf("the key %s is ignored", quote(name)),
		Consequence: "its content maps no caller",
		Remedy:      "delete it; the keys are mapRoles, mapUsers and mapAccounts",
	}
	for _, list := range mappingLists() {
		if name == list.name {
			return
		}
		if meant(name, []string{list.name}) != "" {
			f.Severity = finding.Error
			f.Remedy = "name it " + list.name + ": the keys of a ConfigMap are case-sensitive"
			if _, both := data[list.name]; both {
				f.Remedy = "move its content to " + list.name + ": the keys of a ConfigMap are case-sensitive"
			}
		}
	}
	r.found(f)
}

// meansNothing reports whether a text is one of those that people write for an empty
// value.
func meansNothing(text string) bool {
	switch strings.TrimSpace(text) {
	case "", "``", `""`, "''":
		return true
	}
	return false
}

// meant returns the known name that another one probably stands for: it differs only in
// letter case, dashes, underscores and a plural.
func meant(name string, names []string) string {
	bare := func(s string) string {
		s = strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(s))
		return strings.TrimSuffix(s, "s")
	}
	for _, known := range names {
		if bare(name) == bare(known) {
			return known
		}
	}
	return ""
}
