package learn

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

const (
	// maxComment is the longest comment, in characters.
	maxComment = 400
	// columns is the width of the lines of comments.
	columns = 100
)

type manifest struct{ strings.Builder }

func (m *manifest) line(format string, args ...any) { fmt.Fprintf(m, format+"\n", args...) }

// comment writes text, which may be of an attacker. Lines after the first are indented, so that none of them
// can be taken for another comment.
func (m *manifest) comment(indent, format string, args ...any) {
	text, mark := oneLine(fmt.Sprintf(format, args...)), indent+"# "
	hang := len(text) - len(strings.TrimLeft(text, " ")) + 2
	for _, line := range render.Wrap(text, columns-len(mark), hang) {
		m.WriteString(mark + line + "\n")
	}
}

func oneLine(text string) string {
	line := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '�'
		}
		return r
	}, strings.ToValidUTF8(text, "�"))
	if runes := []rune(line); len(runes) > maxComment {
		line = string(runes[:maxComment]) + "…"
	}
	return line
}

// Manifest writes the NodeScope as YAML, with the evidence for each rule as a comment.
func (s *Suggestion) Manifest() string {
	m := &manifest{}
	s.introduction(m)
	spec := &s.Scope.Spec
	m.line("apiVersion: %s", s.Scope.APIVersion)
	m.line("kind: %s", s.Scope.Kind)
	m.line("metadata:")
	m.line("  name: %s", scalar(s.Scope.Metadata.Name))
	m.line("spec:")
	m.line("  subjects:")
	for _, subject := range spec.Subjects {
		m.line("  - {namespace: %s, name: %s}", scalar(subject.Namespace), scalar(subject.Name))
	}
	m.line("  mode: %s", spec.Mode)
	s.unscoped(m, "  ", "With tokens that name no node, which Deny refuses", &s.WithoutNode)
	m.line("  tokensWithoutNode: %s", spec.TokensWithoutNode)
	if spec.AsNode {
		s.evidence(m, "  ", "asNode")
		m.line("  asNode: true")
	}
	s.rules(m)
	m.line("  otherwise: %s", spec.Otherwise)
	s.leftOver(m)
	return m.String()
}

func (s *Suggestion) introduction(m *manifest) {
	if s.Basis == Roles {
		m.comment("", "NodeScope for the service account %s, from its roles only.", s.Account)
	} else {
		m.comment("", "NodeScope for the service account %s, from audit logs: %s of %s.", s.Account,
			render.Count(s.Requests, "request"), render.Count(s.Nodes, "node"))
		if s.First != nil {
			m.comment("", "From %s to %s. What the account does less often is not in it.",
				s.First.Format(time.RFC3339), s.Last.Format(time.RFC3339))
		}
	}
	m.comment("", "It observes. Before you set mode: Enforce, see with node-authorizer scope check what it refuses.")
	for _, why := range s.Invalid {
		m.comment("", "The API server would not accept it: %s.", why)
	}
	for _, w := range s.Warnings {
		m.comment("", "Warning: %s.", w.Message)
	}
	for _, note := range s.Notes {
		if !strings.HasSuffix(note, "?") {
			note += "."
		}
		m.comment("", "Note: %s", note)
	}
	s.outliers(m)
	s.unscoped(m, "", "Refused at the time, and in no rule", &s.Refused)
	s.unscoped(m, "", "As other users, whose scopes count", &s.Impersonating)
	if s.AsItsNode > 0 {
		m.comment("", "As its own node (impersonate:associated-node): %s, about which the Node authorizer decides.",
			render.Count(s.AsItsNode, "request"))
	}
}

func (s *Suggestion) unscoped(m *manifest, indent, what string, u *Unscoped) {
	if u.Count == 0 {
		return
	}
	m.comment(indent, "%s: %s, such as", what, render.Count(u.Count, "request"))
	for _, example := range u.Examples {
		m.comment(indent, "  %s", example)
	}
}

const maxListed = 10

// outliers writes the requests that the scope refuses because they are not about the node of their token.
func (s *Suggestion) outliers(m *manifest) {
	all := s.OutlierRequests()
	if all == 0 {
		return
	}
	m.comment("", "Outliers, which the scope refuses: %s not about the node of the token. Find out who sent this: an attacker, "+
		"or an agent that needs more than its node. --accept-outliers writes rules in anywhere for all of it.",
		render.Count(all, "request"))
	for rest := s.Outliers; len(rest) > 0; {
		alike := 1
		for alike < len(rest) && rest[alike].Request == rest[0].Request {
			alike++
		}
		besides := "never about the own node"
		if n := rest[0].OwnNode; n > 0 {
			besides = "besides " + render.Count(n, "request") + " about the own node"
		}
		if rest[0].Technique != "" {
			besides += ", and with this right the account leaves its node (" + string(rest[0].Technique) + ")"
		}
		m.comment("", "- %s, %s:", rest[0].Request, besides)
		listed := min(alike, maxListed)
		for i := range rest[:listed] {
			m.comment("", "    %s", rest[i].line())
		}
		if alike > listed {
			m.comment("", "    %s of other objects or nodes: see -o json", render.Count(requests(rest[listed:alike]), "request"))
		}
		rest = rest[alike:]
	}
	if s.MoreOutliers > 0 {
		m.comment("", "- %s that are counted only", render.Count(s.MoreOutliers, "request"))
	}
}

func (o *Outlier) line() string {
	text := fmt.Sprintf("%s: %s", render.Count(o.Count, "request"), o.text)
	if o.OtherNode != "" && o.OtherNode != o.Name {
		text += ", about " + o.OtherNode
	}
	if o.First == nil {
		return text
	}
	text += ", " + o.First.Format(time.RFC3339)
	if !o.Last.Equal(*o.First) {
		text += " to " + o.Last.Format(time.RFC3339)
	}
	return text
}

// OutlierRequests returns the number of requests that are outliers.
func (s *Suggestion) OutlierRequests() int { return requests(s.Outliers) + s.MoreOutliers }

func requests(all []Outlier) int {
	n := 0
	for i := range all {
		n += all[i].Count
	}
	return n
}

func (s *Suggestion) evidence(m *manifest, indent, rule string) {
	for i, e := range s.Evidence {
		switch {
		case e.Rule != rule:
			continue
		case s.Basis == Roles:
			m.comment(indent, "%s", e.Guess)
		case strings.HasPrefix(rule, "anywhere"):
			m.comment(indent, "not about the own node: %s from %s of %s, such as: %s", render.Count(e.Count, "request"),
				render.Thousands(e.Nodes), render.Count(s.Nodes, "node"), e.Example)
		default:
			m.comment(indent, "%s from %s, such as: %s", render.Count(e.Count, "request"), render.Count(e.Nodes, "node"), e.Example)
		}
		if next := i + 1; next < len(s.Evidence) && s.Evidence[next].Rule == rule && slices.Equal(e.GrantedBy, s.Evidence[next].GrantedBy) {
			continue
		}
		if len(e.GrantedBy) > 0 {
			m.comment(indent, "granted by %s", strings.Join(e.GrantedBy, ", "))
		} else {
			m.comment(indent, "no role grants it now")
		}
	}
}

func (s *Suggestion) rules(m *manifest) {
	section(s, m, "namedAsNode", s.Scope.Spec.NamedAsNode)
	section(s, m, "selectsNode", s.Scope.Spec.SelectsNode)
	section(s, m, "podsOnNode", s.Scope.Spec.PodsOnNode)
	section(s, m, "anywhere", s.Scope.Spec.Anywhere)
}

func section[T any](s *Suggestion, m *manifest, name string, rules []T) {
	if len(rules) > 0 {
		m.line("  %s:", name)
	}
	for i := range rules {
		s.evidence(m, "  ", fmt.Sprintf("%s[%d]", name, i))
		m.line("  - %s", flow(&rules[i]))
	}
}

func (s *Suggestion) leftOver(m *manifest) {
	if s.Basis == Roles {
		return
	}
	if len(s.NeverUsed) > 0 {
		m.comment("", "Rights that the logs do not show. The scope refuses them; better, remove them from the roles:")
	}
	for _, r := range s.NeverUsed {
		m.comment("", "- %s: granted by %s, never used", r.text(), r.GrantedBy)
	}
	if len(s.Wildcards) > 0 {
		m.comment("", "Rights with a star, and what the logs show of them:")
	}
	for _, w := range s.Wildcards {
		used := w.Used
		more := ""
		if len(used) > maxUses {
			used, more = used[:maxUses], fmt.Sprintf(" and %d more", len(w.Used)-maxUses)
		}
		m.comment("", "- %s: granted by %s, used for %s%s", w.text(), w.GrantedBy, strings.Join(used, ", "), more)
	}
}

// maxUses is how many uses of a right with a star a manifest lists.
const maxUses = 8

func (r *Right) text() string {
	text := strings.Join(r.Verbs, ", ") + " " + r.Resource + r.NonResourceURL
	if len(r.ResourceNames) > 0 {
		text += " named " + strings.Join(r.ResourceNames, ", ")
	}
	if r.Namespace != "" {
		text += " in " + r.Namespace
	}
	return text
}

// flow writes a rule as one line of YAML.
func flow(rule any) string {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(rule)
	if err != nil {
		return "{}" // rules have strings and lists of strings only
	}
	var all []string
	for _, name := range []string{"apiGroups", "resources", "nonResourceURLs", "resourceNames", "verbs", "namespaces", "field"} {
		switch value := fields[name].(type) {
		case string:
			all = append(all, name+": "+scalar(value))
		case []any:
			var values []string
			for _, v := range value {
				values = append(values, scalar(fmt.Sprint(v)))
			}
			all = append(all, name+": ["+strings.Join(values, ", ")+"]")
		}
	}
	return "{" + strings.Join(all, ", ") + "}"
}

// scalar writes a string of YAML: plain if nothing else can be meant.
func scalar(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || strings.ContainsRune("./-", r) || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z'
	}
	_, notNumber := strconv.ParseFloat(text, 64)
	words := []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 && text[0] >= 'a' && text[0] <= 'z' &&
		notNumber != nil && !slices.Contains(words, strings.ToLower(text)) {
		return text
	}
	return strconv.QuoteToASCII(text) // all its escapes are YAML's too
}
