package iam

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/internal/yamltext"
)

// maxMappingFindings is the maximum number of listed findings per source.
const maxMappingFindings = 1000

// mappingList is one of the lists of a source.
type mappingList struct {
	name string
	kind MappingKind
	// arn is the field of an entry that has the ARN. It is empty for accounts, whose
	// entries have no fields.
	arn string
}

func mappingLists() []mappingList {
	return []mappingList{
		{MapRoles, RoleMapping, "rolearn"},
		{MapUsers, UserMapping, "userarn"},
		{MapAccounts, AccountMapping, ""},
	}
}

type reader struct {
	source string
	// at is the place of the source. inFile is whether lines are counted in its file.
	at     finding.Place
	inFile bool
	// sessions is whether the ARN of a session stands for its role.
	sessions bool

	yaml *yamltext.Text
	// left is the number of further nodes of the text that are visited. With aliases, a
	// small text can be a large list.
	left int

	mappings []Mapping
	findings []finding.Finding
	unlisted int
}

// text reads the YAML text of a list, and reports whether it could be read.
func (r *reader) text(text string, list mappingList, key string) bool {
	if !r.open(text, key) {
		return false
	}
	return r.list(firstOf(r.yaml), list, key)
}

// open parses a text and makes it the one that line numbers refer to.
func (r *reader) open(text, key string) bool {
	r.yaml, r.left = &yamltext.Text{}, 100_000+len(text)
	if len(text) > maxMappingText {
		r.found(r.tooLarge(r.place(key, 1), fmt.Sprintf("the text has %d bytes, the maximum is %d", len(text), maxMappingText)))
		return false
	}
	parsed, more, err := parseYAML(text)
	if err != nil {
		remedy := "fix the YAML; entries begin with \"- \" in the same column, and tabs do not indent"
		if usernameEndsInColon(text, err.Line) {
			remedy = trailingColon
		}
		r.found(finding.Finding{
			Code: MappingSyntax, Severity: finding.Error, Place: r.place(key, err.Line),
			Message:     "not valid YAML: " + printable(err.Problem),
			Consequence: r.unreadable(),
			Remedy:      remedy,
		})
		return false
	}
	r.yaml = parsed
	if more > 0 {
		r.found(finding.Finding{
			Code: MappingMoreDocuments, Severity: finding.Error, Place: r.place(key, more),
			Message:     "there is more than one YAML document",
			Consequence: "only the first document is read",
			Remedy:      "put all entries in one list, without --- between them",
		})
	}
	return true
}

// unreadable returns the consequence of a text that cannot be read.
func (r *reader) unreadable() string {
	const here = "its last valid content stays in force"
	if r.inFile {
		return here
	}
	return here + "; aws-iam-authenticator forgets every entry of it"
}

func (r *reader) tooLarge(place finding.Place, message string) finding.Finding {
	return finding.Finding{
		Code: MappingTooLarge, Severity: finding.Error, Place: place,
		Message: message, Consequence: r.unreadable(),
		Remedy: "map fewer roles and users, or write them without aliases",
	}
}

// list reads a list, and reports whether it is one. An empty text is a list too.
func (r *reader) list(node *yaml.Node, list mappingList, key string) bool {
	if node == nil {
		return true
	}
	mappings, findings, unlisted := len(r.mappings), len(r.findings), r.unlisted
	value := follow(node)
	switch {
	case isNull(value):
		return true
	case value.Kind != yaml.SequenceNode:
		r.found(finding.Finding{
			Code: MappingSyntax, Severity: finding.Error, Place: r.place(key, r.yaml.Line(node)),
			Message:     fmt.Sprintf("%s is %s: want a list", list.name, describe(value)),
			Consequence: r.unreadable(),
			Remedy:      "begin each entry with \"- \"",
		})
		return false
	}
	for i, entry := range value.Content {
		entryKey := fmt.Sprintf("%s[%d]", key, i)
		if list.kind == AccountMapping {
			r.account(entry, entryKey)
		} else {
			r.entry(entry, list, entryKey)
		}
		if r.left < 0 {
			// The rest of the list is unknown, so that the part that was read does not count.
			r.mappings, r.findings, r.unlisted = r.mappings[:mappings], r.findings[:findings], unlisted
			r.found(r.tooLarge(r.place(key, r.yaml.Line(entry)), "with its aliases, the list is too large"))
			return false
		}
	}
	return true
}

// account reads an entry of mapAccounts. A number is taken as text: parsed as a number,
// it would lose its leading zeros.
func (r *reader) account(node *yaml.Node, key string) {
	r.left--
	value := follow(node)
	place := r.placeOf(key, node)
	if value.Kind != yaml.ScalarNode || isNull(value) {
		r.invalid(place, "", fmt.Sprintf("the entry is %s: want an account id", describe(value)), "write the 12 digits of the account")
		return
	}
	if problem := accountProblem(value.Value); problem != "" {
		r.invalid(place, value.Value, problem, "write the 12 digits of the account, in quotes")
		return
	}
	r.mappings = append(r.mappings, Mapping{Kind: AccountMapping, Account: value.Value, Source: r.source, Place: place})
}

func (r *reader) entry(node *yaml.Node, list mappingList, key string) {
	r.left--
	place := r.placeOf(key, node)
	if value := follow(node); value.Kind != yaml.MappingNode {
		r.invalid(place, "", fmt.Sprintf("the entry is %s: want the fields %s, username and groups", describe(value), list.arn),
			fmt.Sprintf("begin it with \"- %s: \"", list.arn))
		return
	}
	e := &entry{reader: r, list: list, key: key, place: place, ok: true}
	before := len(r.findings)
	e.read(node)
	for i := range r.findings[before:] {
		if f := &r.findings[before+i]; f.Subject == "" {
			f.Subject = printable(e.arn)
		}
	}
	if !e.ok {
		r.mappings = append(r.mappings, e.unusable()...)
		return
	}
	r.mappings = append(r.mappings, Mapping{
		Kind: list.kind, ARN: e.arn, Username: e.username, Groups: e.groups, Source: r.source, Place: place,
	})
}

// finish returns the mappings of the lists.
func (r *reader) finish(broken []string) (*Mappings, []finding.Finding) {
	m, findings := Collect(r.mappings)
	m.Broken = broken
	for _, f := range findings {
		r.found(f)
	}
	if r.unlisted > 0 {
		r.findings = append(r.findings, finding.Finding{
			Code: MappingMoreFindings, Severity: finding.Info, Place: r.at,
			Message:     fmt.Sprintf("%d more findings are not listed", r.unlisted),
			Consequence: "each of them has its own consequence",
			Remedy:      "fix the listed findings, and check again",
		})
	}
	finding.Sort(r.findings)
	return m, r.findings
}

func (r *reader) found(f finding.Finding) {
	if len(r.findings) == maxMappingFindings {
		r.unlisted++
		return
	}
	r.findings = append(r.findings, f)
}

// invalid reports an entry that cannot be used.
func (r *reader) invalid(place finding.Place, subject, message, remedy string) {
	r.found(finding.Finding{
		Code: MappingInvalid, Severity: finding.Error, Place: place, Subject: printable(subject),
		Message: message, Consequence: unused, Remedy: remedy,
	})
}

// unused is the consequence of an entry that cannot be used.
const unused = "the entry is ignored: it maps no caller"

// placeOf returns the place of a node.
func (r *reader) placeOf(key string, node *yaml.Node) finding.Place {
	return r.place(key, r.yaml.Line(node))
}

func (r *reader) place(key string, line int) finding.Place {
	place := r.at
	place.Key = key
	if r.inFile {
		place.Line = line
	} else {
		place.KeyLine = line
	}
	return place
}

// follow resolves an alias.
func follow(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

func isNull(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null"
}

// describe says what kind of value a node is.
func describe(node *yaml.Node) string {
	switch {
	case node.Kind == yaml.SequenceNode:
		return "a list"
	case node.Kind == yaml.MappingNode:
		return "an object"
	case isNull(node):
		return "empty"
	}
	switch tag := node.ShortTag(); {
	case tag == "!!int" || tag == "!!float":
		return "the number " + quote(node.Value)
	case tag == "!!bool" || oldBoolean(node):
		return "the boolean " + quote(node.Value)
	case tag != "!!str":
		return fmt.Sprintf("%s with the tag %s", quote(node.Value), printable(tag))
	}
	return quote(node.Value)
}

// quote returns an untrusted text for a message: in quotes, on one line, and short.
func quote(text string) string {
	const most = 200
	if len(text) > most {
		return fmt.Sprintf("%q…", strings.ToValidUTF8(text[:most], ""))
	}
	return fmt.Sprintf("%q", text)
}

// printable returns an untrusted text without quotes if it needs no escapes.
func printable(text string) string {
	quoted := quote(text)
	if inner := strings.TrimSuffix(strings.TrimPrefix(quoted, `"`), `"`); inner == text {
		return text
	}
	return quoted
}
