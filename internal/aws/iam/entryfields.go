package iam

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/node-authorizer/node-authorizer/internal/finding"
)

// collect adds the fields of an object, and of the objects merged into it, under their
// names in lower case.
func (e *entry) collect(node *yaml.Node, depth int, into map[string]field) {
	for i := 0; i+1 < len(node.Content) && e.left >= 0; i += 2 {
		e.left--
		name, value := follow(node.Content[i]), node.Content[i+1]
		if name.Kind == yaml.ScalarNode && name.ShortTag() == "!!merge" {
			e.merge(value, depth, into)
			continue
		}
		if name.Kind != yaml.ScalarNode || name.ShortTag() == "!!binary" {
			e.mayBeARN(field{name: foldASCII(arnText(name)), value: value})
			e.refuse(e.placeOf(e.key, node.Content[i]), fmt.Sprintf("the name of a field is %s", describe(name)),
				"put a text that begins with a brace or bracket in quotes")
			continue
		}
		e.put(field{name: foldASCII(name.Value), written: name.Value, value: value}, node.Content[i], into)
	}
}

// maxMerges is the maximum depth of merged objects.
const maxMerges = 10

// merge collects the fields of the objects at a merge key. In a list of objects, the
// first one with a field wins.
func (e *entry) merge(node *yaml.Node, depth int, into map[string]field) {
	value := follow(node)
	objects := []*yaml.Node{value}
	if value.Kind == yaml.SequenceNode {
		objects = value.Content
	}
	if depth == maxMerges {
		e.refuse(e.place, "too many objects are merged into each other", "write the fields themselves")
		return
	}
	own := map[string]field{}
	for i, object := range slices.Backward(objects) {
		e.left--
		object = follow(object)
		if object.Kind != yaml.MappingNode {
			e.refuse(e.placeOf(e.key, node), fmt.Sprintf("the merged value is %s: want an object", describe(object)),
				"write the fields themselves")
			return
		}
		fields := map[string]field{}
		e.collect(object, depth+1, fields)
		for _, name := range sortedNames(fields) {
			f := fields[name]
			if other, ok := own[name]; ok && other.written != f.written {
				e.refuseTwoCases(e.placeOf(fmt.Sprintf("%s.<<[%d]", e.key, i), node), other, f)
			}
			own[name] = f
		}
	}
	for _, name := range sortedNames(own) {
		f := own[name]
		f.merged = true
		switch before, ok := into[name]; {
		case ok && !before.merged:
			e.mayBeARN(before)
			e.mayBeARN(f)
			e.refuse(e.placeOf(e.key+"."+name, before.value), fmt.Sprintf("%s is given here, and merged in later", name),
				"put the merge key (<<) first in the entry, or give the field in one place")
		case ok && before.written != f.written:
			e.refuseTwoCases(e.placeOf(e.key+"."+name, f.value), before, f)
		}
		into[name] = f
	}
}

func sortedNames(fields map[string]field) []string {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// put adds a field.
func (e *entry) put(f field, at *yaml.Node, into map[string]field) {
	place := e.placeOf(e.key+"."+printable(f.written), at)
	if !e.known(f.name) {
		e.unknownField(f, place)
		return
	}
	switch before, ok := into[f.name]; {
	case ok && before.written != f.written:
		e.refuseTwoCases(place, before, f)
	case ok && !before.merged:
		e.found(finding.Finding{
			Code: MappingFieldTwice, Severity: finding.Warning, Place: place,
			Message:     fmt.Sprintf("%s is given twice in one entry", f.written),
			Consequence: "the last one counts",
			Remedy:      "delete the wrong one",
		})
	}
	into[f.name] = f
}

// refuseTwoCases refuses an entry that has a field in two spellings.
// aws-iam-authenticator takes the one that sorts last, which may be a merged one that the
// author meant to replace.
func (e *entry) refuseTwoCases(place finding.Place, before, f field) {
	if !before.merged || before.written > f.written {
		e.mayBeARN(before)
	}
	e.mayBeARN(f)
	e.refuse(place, fmt.Sprintf("%s and %s are the same field", quote(before.written), quote(f.written)), "give it once")
}

// mayBeARN records the value of a field that aws-iam-authenticator may take for the ARN.
func (e *entry) mayBeARN(f field) {
	if strings.EqualFold(f.name, e.list.arn) {
		e.arns = append(e.arns, arnText(f.value))
	}
}

// arnText returns the text of a value that may be an ARN. Base64 is decoded.
func arnText(node *yaml.Node) string {
	value := follow(node)
	if value.Kind != yaml.ScalarNode {
		return ""
	}
	if value.ShortTag() == "!!binary" {
		text, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(value.Value), ""))
		if err != nil {
			return ""
		}
		return string(text)
	}
	return value.Value
}

// unusable returns a mapping for each ARN in an entry that cannot be used, so that no
// other entry for these ARNs counts. Spaces around an ARN are ignored.
func (e *entry) unusable() []Mapping {
	var hidden []Mapping
	for _, text := range e.arns {
		checked, err := checkARN(strings.TrimSpace(text))
		if err != nil || checked.kind == sessionCallers && !e.sessions {
			continue
		}
		hidden = append(hidden, Mapping{Kind: e.list.kind, ARN: checked.arn, Source: e.source, Place: e.place, Unusable: true})
	}
	return hidden
}
