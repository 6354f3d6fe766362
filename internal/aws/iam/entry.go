package iam

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// entry is the parser of an entry of mapRoles or mapUsers.
type entry struct {
	*reader
	list  mappingList
	key   string
	place finding.Place

	// ok is false if the entry cannot be used.
	ok  bool
	arn string
	// other is the field of the other list that has an ARN, if the entry has it.
	other *field
	// arns are the possible ARNs of an entry that cannot be used.
	arns     []string
	username string
	groups   []string
}

type field struct {
	// name is in lower case: as in aws-iam-authenticator, letter case does not matter.
	name string
	// written is the name in the text.
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
	if f, ok := fields[e.list.arn]; ok {
		e.mayBeARN(f)
		if e.other != nil {
			e.unknown(e.other.written, e.placeOf(e.key+"."+printable(e.other.written), e.other.value),
				"delete it, or add an entry for it to the other list")
		}
	}
	e.readARN(fields)
	e.readUsername(fields)
	e.readGroups(fields)
}

func (e *entry) known(name string) bool {
	return name == e.list.arn || name == "username" || name == "groups"
}

func (e *entry) unknownField(f field, place finding.Place) {
	known := []string{e.list.arn, "username", "groups"}
	if i := slices.IndexFunc(known, func(name string) bool { return strings.EqualFold(name, f.name) }); i >= 0 {
		// aws-iam-authenticator folds letters such as the long s to ASCII letters.
		e.mayBeARN(f)
		e.refuse(place, fmt.Sprintf("the name of the field %s has letters of another alphabet", quote(f.written)), "write "+known[i])
		return
	}
	if f.name == "rolearn" || f.name == "userarn" {
		e.other = &f
		return
	}
	remedy := fmt.Sprintf("delete it; the fields are %s, username and groups", e.list.arn)
	if name := meant(f.name, known); name != "" {
		remedy = "write " + name
	}
	e.unknown(f.written, place, remedy)
}

func (e *entry) unknown(name string, place finding.Place, remedy string) {
	message := fmt.Sprintf("the field %s is ignored", quote(name))
	if foldASCII(name) == "userid" {
		message = "userid is ignored: callers are not matched by their unique id"
		remedy = "delete it"
	}
	e.found(finding.Finding{
		Code: MappingUnknownField, Severity: finding.Warning, Place: place,
		Message: message, Consequence: "the entry is used without it", Remedy: remedy,
	})
}

// refuse reports a reason why the entry cannot be used.
func (e *entry) refuse(place finding.Place, message, remedy string) {
	e.refuseWith(place, message, unusedEntry, remedy)
}

// unusedEntry is the consequence of an entry about a role or user that cannot be used.
const unusedEntry = "the entry maps no caller, and no other entry for the same ARN counts"

func (e *entry) refuseWith(place finding.Place, message, consequence, remedy string) {
	e.ok = false
	e.found(finding.Finding{
		Code: MappingInvalid, Severity: finding.Error, Place: place, Subject: printable(e.arn),
		Message: message, Consequence: consequence, Remedy: remedy,
	})
}

func (e *entry) readARN(fields map[string]field) {
	name := e.list.arn
	if _, ok := fields[name]; !ok && e.other != nil {
		e.otherARN(e.other)
		return
	}
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
		e.refuseWith(place, err.Error(), unused, "write it like "+exampleARN(e.list.kind))
		return
	}
	if checked.kind == sessionCallers && !e.sessions {
		e.refuseWith(place, fmt.Sprintf("%s is a session, not a role", quote(text)), unused, "write "+checked.arn)
		return
	}
	e.arn = checked.arn
	for _, f := range checked.findings(e.list.kind, text, place) {
		e.found(f)
	}
}

// otherARN refuses an entry that has its ARN in the field of the other list. The entry
// still counts for that ARN, so that no other entry maps its caller.
func (e *entry) otherARN(f *field) {
	in, other := listOf(e.list.kind), MapUsers
	if e.list.kind == UserMapping {
		other = MapRoles
	}
	remedy := fmt.Sprintf("rename %s to %s", f.written, e.list.arn)
	consequence, text := unused, arnText(f.value)
	if checked, err := checkARN(text); err == nil {
		consequence, e.arn = unusedEntry+"; aws-iam-authenticator and EKS ignore it, and an older entry still counts", checked.arn
		e.arns = append(e.arns, text)
		if checked.kind.list() != e.list.kind {
			remedy = "move the entry to " + other
		}
	}
	e.refuseWith(e.placeOf(e.key+"."+printable(f.written), f.value),
		fmt.Sprintf("%s is a field of %s and ignored in %s: %s is missing", f.written, other, in, e.list.arn), consequence, remedy)
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

// wanted returns a required field.
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
		e.refuseWith(e.placeOf(key, f.value), fmt.Sprintf("groups is %s: want a list", describe(value)),
			unusedEntry+"; aws-iam-authenticator and EKS let the caller in without groups, so that its requests are Forbidden (403)",
			"write each group on its own line, after \"- \"")
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
			Message: "an empty group", Consequence: "it is ignored", Remedy: "delete it",
		})
		return
	}
	if !e.name(text, "group", place) {
		return
	}
	if strings.Contains(text, " - ") {
		e.found(finding.Finding{
			Code: MappingGroupFolded, Severity: finding.Error, Place: place, Subject: e.arn,
			Message:     fmt.Sprintf("one group named %s: a line with more indentation continues the previous line", quote(text)),
			Consequence: "the caller is in none of the intended groups",
			Remedy:      "begin each group in the same column",
		})
	}
	e.groups = append(e.groups, text)
}

// string returns the text of a node. Values that YAML does not take as text must be in
// quotes: aws-iam-authenticator ignores them.
func (e *entry) string(node *yaml.Node, key, what string) (string, bool) {
	value := follow(node)
	if value.Kind == yaml.ScalarNode && (value.ShortTag() == "!!str" || value.ShortTag() == "!!timestamp") && !oldBoolean(value) {
		return value.Value, true
	}
	remedy := "write a text"
	switch {
	case endsInColon(value):
		remedy = trailingColon
	case value.Kind == yaml.ScalarNode:
		remedy = "put it in quotes"
	case value.Kind == yaml.MappingNode && value.Style&yaml.FlowStyle != 0:
		remedy = "put it in quotes: a leading brace makes it an object"
	}
	e.refuse(e.placeOf(key, node), fmt.Sprintf("%s is %s: want a text", what, describe(value)), remedy)
	return "", false
}

// endsInColon reports whether a value is an object only because a text in braces ends in
// a colon: {username: system:node:}.
func endsInColon(value *yaml.Node) bool {
	return value.Kind == yaml.MappingNode && len(value.Content) == 2 && isNull(value.Content[1]) &&
		foldASCII(value.Content[0].Value)+":" == nodeidentity.UserPrefix
}

// trailingColon is the remedy for a username that lost its placeholder. Many
// documentation pages are made by programs that expand double braces.
const trailingColon = `write username: "` + nodeidentity.UserPrefix + `{{` + PlaceholderPrivateDNSName + `}}"; ` +
	`to YAML a colon at the end of a text begins a field without a value, and web pages often lose what is in double braces`

// oldBoolean reports whether a text without quotes is a boolean in YAML 1.1, which
// Kubernetes reads, and a text in YAML 1.2.
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

// name checks a username or a group before its placeholders are resolved.
func (e *entry) name(text, what string, place finding.Place) bool {
	if problem := nameProblem(text); problem != "" {
		e.refuse(place, fmt.Sprintf("the %s %s %s", what, quote(text), problem), "write it without")
		return false
	}
	if text == nodeidentity.UserPrefix && what == "username" {
		e.refuse(place, fmt.Sprintf("the username %s has no node name after its colon", quote(text)), trailingColon)
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

// nameProblem returns what is wrong with a name, or an empty text.
func nameProblem(name string) string {
	switch {
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "has line breaks or other characters that are not printable"
	case strings.TrimSpace(name) != name:
		return "begins or ends with a space"
	}
	return ""
}

func templateFinding(err error, what, text, arn string, place finding.Place) finding.Finding {
	f := finding.Finding{
		Code: MappingTemplateUnknown, Severity: finding.Error, Place: place, Subject: arn,
		Message:     fmt.Sprintf("the %s %s: %v", what, quote(text), err),
		Consequence: unusedEntry + "; aws-iam-authenticator keeps the braces, so that all callers are one user",
		Remedy:      "delete the braces, or write a valid placeholder",
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
