package iam

import (
	"fmt"
	"strings"

	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/internal/yamltext"
)

// ParseIdentityMapping reads an IAMIdentityMapping of iamauthenticator.k8s.aws/v1alpha1
// from its name and the fields of its spec. The result is false if it cannot be used;
// then the mapping is Unusable if its ARN can be read. Use [Collect] to make [Mappings]
// of the usable and the Unusable ones, in the order of their names.
func ParseIdentityMapping(name, arn, username string, groups []string) (Mapping, []finding.Finding, bool) {
	object := "IAMIdentityMapping " + printable(name)
	r := &reader{source: object, at: finding.Place{Object: object}, sessions: true, yaml: &yamltext.Text{}}
	checked, err := checkARN(arn)
	kind := checked.kind.list()
	if trimmed, err := checkARN(strings.TrimSpace(arn)); err == nil {
		kind = trimmed.kind.list() // also if it cannot be used
	}
	e := &entry{reader: r, list: mappingList{kind: kind, arn: "arn"}, key: "spec", ok: true, arn: arn}
	place := func(key string) finding.Place { return finding.Place{Object: object, Key: key} }
	switch {
	case arn == "":
		e.refuse(place("spec.arn"), "arn is empty: the ARN of a role or user", "add it")
	case err != nil:
		e.refuse(place("spec.arn"), err.Error(), "write it like "+exampleARN(RoleMapping))
	default:
		e.arn = checked.arn
		for _, f := range checked.findings(kind, arn, place("spec.arn")) {
			e.found(f)
		}
	}
	if username == "" {
		e.refuse(place("spec.username"), "username is empty: the user that the caller is in Kubernetes", "add it")
	} else {
		e.name(username, "username", place("spec.username"))
	}
	for i, group := range groups {
		e.addGroup(group, place(fmt.Sprintf("spec.groups[%d]", i)))
	}
	finding.Sort(r.findings)
	if !e.ok {
		e.place, e.arns = place("spec"), []string{arn}
		if hidden := e.unusable(); len(hidden) > 0 {
			return hidden[0], r.findings, false
		}
		return Mapping{}, r.findings, false
	}
	return Mapping{
		Kind: kind, ARN: e.arn, Username: username, Groups: e.groups,
		Source: object, Place: place("spec"),
	}, r.findings, true
}
