package iam

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/node-authorizer/node-authorizer/finding"
)

// entry is an entry of mapRoles or mapUsers while it is read.
type entry struct {
	*reader
	list  mappingList
	key   string
	place finding.Place

	// ok is false once something was found for which the entry cannot be used.
	ok       bool
	arn      string
	username string
	groups   []string
}

// field is a field of an entry.
type field struct {
	// name is in lower case: as in aws-iam-authenticator, the case does not matter.
	name string
	// written is the name as it is written.
	written string
	value   *yaml.Node
	// merged is true for a field that comes from a merge key (<<).
	merged bool
}

func (e *entry) read(node *yaml.Node) {
	fields := map[string]field{}
	e.collect(follow(node), 0, fields)
	if e.left < 0 {
		return
	}
	e.readARN(fields)
	e.readUsername(fields)
	e.readGroups(fields)
}

// collect puts the fields of an object, and of those merged into it, under their
// names in lower case.
func (e *entry) collect(node *yaml.Node, depth int, into map[string]field) {
	for i := 0; i+1 < len(node.Content) && e.left >= 0; i += 2 {
		e.left--
		name, value := follow(node.Content[i]), node.Content[i+1]
		if name.Kind == yaml.ScalarNode && name.ShortTag() == "!!merge" {
			e.merge(value, depth, into)
			continue
		}
		if name.Kind != yaml.ScalarNode {
			e.refuse(e.placeOf(e.key, node.Content[i]), fmt.Sprintf("the name of a field is %s", describe(name)), "put what begins with a brace or bracket in quotes")
			continue
		}
		e.put(field{name: foldASCII(name.Value), written: name.Value, value: value}, node.Content[i], into)
	}
}

// maxMerges is how deep objects are merged into each other.
const maxMerges = 10

// merge collects the fields of the objects at a merge key: of a list, the first one
// that has a field gives it.
func (e *entry) merge(node *yaml.Node, depth int, into map[string]field) {
	value := follow(node)
	objects := []*yaml.Node{value}
	if value.Kind == yaml.SequenceNode {
		objects = value.Content
	}
	if depth == maxMerges {
		e.refuse(e.place, "more objects are merged into each other than is reasonable", "write the fields themselves")
		return
	}
	own := map[string]field{}
	for _, object := range slices.Backward(objects) {
		e.left--
		object = follow(object)
		if object.Kind != yaml.MappingNode {
			e.refuse(e.placeOf(e.key, node), fmt.Sprintf("what is merged is %s: an object is wanted", describe(object)), "write the fields themselves")
			return
		}
		fields := map[string]field{}
		e.collect(object, depth+1, fields)
		for name, f := range fields {
			own[name] = f
		}
	}
	for _, name := range sortedNames(own) {
		f := own[name]
		f.merged = true
		if before, ok := into[name]; ok && !before.merged {
			e.refuse(e.placeOf(e.key+"."+name, before.value), fmt.Sprintf("%s is given here, and merged in later", name), "put the merge key (<<) first in the entry, or give the field in one place")
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

// put adds a field to those that are there.
func (e *entry) put(f field, at *yaml.Node, into map[string]field) {
	place := e.placeOf(e.key+"."+printable(f.written), at)
	if !e.known(f.name) {
		e.unknownField(f, place)
		return
	}
	if before, ok := into[f.name]; ok && !before.merged {
		if before.written != f.written {
			e.refuse(place, fmt.Sprintf("%s and %s are the same field", quote(before.written), quote(f.written)), "give it once")
		} else {
			e.found(finding.Finding{
				Code: MappingFieldTwice, Severity: finding.Warning, Place: place,
				Message:     fmt.Sprintf("%s is given twice in one entry", f.written),
				Consequence: "the last one counts",
				Remedy:      "delete the one that is not meant",
			})
		}
	}
	into[f.name] = f
}

func (e *entry) known(name string) bool {
	return name == e.list.arn || name == "username" || name == "groups"
}

func (e *entry) unknownField(f field, place finding.Place) {
	message := fmt.Sprintf("the field %s is not looked at", quote(f.written))
	remedy := fmt.Sprintf("delete it; the fields are %s, username and groups", e.list.arn)
	severity := finding.Warning
	if name := meant(f.name, []string{e.list.arn, "username", "groups"}); name != "" {
		remedy = "write " + name
	}
	if f.name == "userid" {
		message = "callers are not found by their unique id: userid is not looked at"
		remedy = "delete it"
	}
	e.found(finding.Finding{
		Code: MappingUnknownField, Severity: severity, Place: place,
		Message: message, Consequence: "the entry is used without it", Remedy: remedy,
	})
}

// refuse reports a reason for which the entry cannot be used.
func (e *entry) refuse(place finding.Place, message, remedy string) {
	e.ok = false
	e.invalid(place, e.arn, message, remedy)
}

func (e *entry) readARN(fields map[string]field) {
	name := e.list.arn
	f, place, ok := e.wanted(fields, name, "the ARN of a "+string(e.list.kind))
	if !ok {
		return
	}
	text, ok := e.string(f.value, e.key+"."+name, name)
	if !ok {
		return
	}
	e.arn = text
	checked, err := checkARN(text)
	if err != nil {
		e.refuse(place, err.Error(), "write it like "+exampleARN(e.list.kind))
		return
	}
	if checked.kind == sessionCallers && !e.sessions {
		e.refuse(place, fmt.Sprintf("%s is a session, not a role", quote(text)), "write "+checked.arn)
		return
	}
	e.arn = checked.arn
	for _, f := range checked.findings(e.list.kind, text, place) {
		e.found(f)
	}
}

func (e *entry) readUsername(fields map[string]field) {
	f, place, ok := e.wanted(fields, "username", "the user that the caller is in Kubernetes")
	if !ok {
		return
	}
	if text, ok := e.string(f.value, e.key+".username", "username"); ok && e.name(text, "username", place) {
		e.username = text
	}
}

// wanted finds a field that every entry has.
func (e *entry) wanted(fields map[string]field, name, what string) (field, finding.Place, bool) {
	f, ok := fields[name]
	if !ok {
		e.refuse(e.place, fmt.Sprintf("%s is missing: %s", name, what), "add "+name)
		return f, finding.Place{}, false
	}
	place := e.placeOf(e.key+"."+name, f.value)
	if value := follow(f.value); isNull(value) || value.Kind == yaml.ScalarNode && value.Value == "" {
		e.refuse(place, fmt.Sprintf("%s is empty: %s", name, what), "add it")
		return f, place, false
	}
	return f, place, true
}

func (e *entry) readGroups(fields map[string]field) {
	f, ok := fields["groups"]
	if !ok {
		return
	}
	key := e.key + ".groups"
	value := follow(f.value)
	switch {
	case isNull(value):
		return
	case value.Kind != yaml.SequenceNode:
		e.refuse(e.placeOf(key, f.value), fmt.Sprintf("groups is %s: a list is wanted", describe(value)), "write each group on its own line, after \"- \"")
		return
	}
	e.left -= len(value.Content)
	if e.left < 0 {
		return
	}
	for i, item := range value.Content {
		e.group(item, fmt.Sprintf("%s[%d]", key, i))
	}
}

func (e *entry) group(item *yaml.Node, key string) {
	if isNull(follow(item)) {
		e.addGroup("", e.placeOf(key, item))
	} else if text, ok := e.string(item, key, "a group"); ok {
		e.addGroup(text, e.placeOf(key, item))
	}
}

func (e *entry) addGroup(text string, place finding.Place) {
	if text == "" {
		e.found(finding.Finding{
			Code: MappingGroupEmpty, Severity: finding.Warning, Place: place, Subject: e.arn,
			Message: "an empty group", Consequence: "it is left out", Remedy: "delete it",
		})
		return
	}
	if !e.name(text, "group", place) {
		return
	}
	if strings.Contains(text, " - ") {
		e.found(finding.Finding{
			Code: MappingGroupFolded, Severity: finding.Error, Place: place, Subject: e.arn,
			Message:     fmt.Sprintf("one group named %s: a line that is indented further continues the line before", quote(text)),
			Consequence: "the caller is in none of the groups that were meant",
			Remedy:      "begin each group in the same column",
		})
	}
	e.groups = append(e.groups, text)
}

// string reads a text. What YAML takes for something else has to be in quotes:
// aws-iam-authenticator leaves it out.
func (e *entry) string(node *yaml.Node, key, what string) (string, bool) {
	value := follow(node)
	if value.Kind == yaml.ScalarNode && (value.ShortTag() == "!!str" || value.ShortTag() == "!!timestamp") && !oldBoolean(value) {
		return value.Value, true
	}
	remedy := "write a text"
	switch {
	case value.Kind == yaml.ScalarNode:
		remedy = "put it in quotes"
	case value.Kind == yaml.MappingNode && value.Style&yaml.FlowStyle != 0:
		remedy = "put it in quotes: a brace at its beginning makes an object of it"
	}
	e.refuse(e.placeOf(key, node), fmt.Sprintf("%s is %s: a text is wanted", what, describe(value)), remedy)
	return "", false
}

// oldBoolean reports whether a text without quotes is a truth value in YAML 1.1, which
// Kubernetes reads, and is none in YAML 1.2.
func oldBoolean(node *yaml.Node) bool {
	if node.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle|yaml.TaggedStyle) != 0 {
		return false
	}
	switch node.Value {
	case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "n", "N", "no", "No", "NO", "off", "Off", "OFF":
		return true
	}
	return false
}

// name checks a username or a group as far as that can be before its placeholders
// have values.
func (e *entry) name(text, what string, place finding.Place) bool {
	if problem := nameProblem(text); problem != "" {
		e.refuse(place, fmt.Sprintf("the %s %s %s", what, quote(text), problem), "write it without")
		return false
	}
	_, err := ParseTemplate(text)
	if err == nil {
		return true
	}
	e.ok = false
	e.found(templateFinding(err, what, text, e.arn, place))
	return false
}

// nameProblem says what in a name cannot be meant; it is empty if nothing is.
func nameProblem(name string) string {
	switch {
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "has line breaks or other characters that are not printed"
	case strings.TrimSpace(name) != name:
		return "begins or ends with a space"
	}
	return ""
}

func templateFinding(err error, what, text, arn string, place finding.Place) finding.Finding {
	f := finding.Finding{
		Code: MappingTemplateUnknown, Severity: finding.Error, Place: place, Subject: arn,
		Message:     fmt.Sprintf("the %s %s: %v", what, quote(text), err),
		Consequence: unused + "; aws-iam-authenticator takes the braces as they are, so that all callers are one user",
		Remedy:      "delete the braces, or write a placeholder that there is",
	}
	var template *TemplateError
	if errors.As(err, &template) && template.Instead != "" {
		f.Remedy = fmt.Sprintf("write {{%s}}", template.Instead)
		if template.Spaced {
			f.Code = MappingTemplateSpaced
		}
	}
	return f
}
