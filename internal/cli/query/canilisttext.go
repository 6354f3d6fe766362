package query

import (
	"fmt"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/resources"
)

var ruleColumns = []string{"RESOURCE OR URL", "VERBS", "NAMES", "BECAUSE"}

func (r CanIList) rows() (rows [][]string) {
	for _, rule := range r.Rules {
		rows = append(rows, []string{rule.target(), strings.Join(rule.Verbs, ","), rule.names(), render.Faint.In(rule.because())})
	}
	return rows
}

// Text writes a table with a row for each rule, then what limits them.
func (r CanIList) Text(p *render.Page) {
	if len(r.Rules) == 0 {
		p.Line("no rule for %s%s", r.Identity.Kind(), r.where())
	} else {
		p.Table(0, ruleColumns, r.rows())
	}
	r.scopesText(p)
	if notes := r.notes(); len(notes) > 0 {
		p.Line("")
		for _, note := range notes {
			p.Line("%s", note)
		}
	}
	if len(r.Missing) > 0 {
		p.Section("%s", render.Unsure.In("Incomplete"))
		command.MissingText(p, r.Missing)
	}
}

// notes say what the table cannot.
func (r CanIList) notes() []string {
	var notes []string
	if slices.ContainsFunc(r.Rules, func(rule listedRule) bool { return rule.RelatedObjects > 0 }) {
		notes = append(notes, "Requests for related objects must name one: node-authorizer reach "+r.Identity.Node+" lists them.")
	}
	if r.Identity.Node != "" && slices.ContainsFunc(r.Rules, func(rule listedRule) bool { return rule.writes }) {
		notes = append(notes, "What rules of RBAC let the node write has to pass "+nameRestriction+" too: ask can-i about the request.")
	}
	if r.Quarantine != "" {
		notes = append(notes, render.Unsure.In(quarantinedText(r.Quarantine)))
	}
	for _, name := range r.NotListed {
		notes = append(notes, render.Unsure.In(
			"The authorizer "+name+" is asked too, and has no list of rules: ask can-i about the request."))
	}
	return notes
}

func (r CanIList) where() string {
	if r.Namespace == "" {
		return ""
	}
	return " in namespace " + r.Namespace
}

// target is the resource that the rule is about, as kubectl names it.
func (r listedRule) target() string {
	var all []string
	for _, group := range r.APIGroups {
		for _, name := range r.Resources {
			base, subresource, _ := strings.Cut(name, "/")
			text := resources.Resource{Group: group, Name: base}.String()
			if subresource != "" {
				text += "/" + subresource
			}
			all = append(all, text)
		}
	}
	return strings.Join(append(all, r.NonResourceURLs...), ",")
}

// names says to which objects the rule is limited.
func (r listedRule) names() string {
	switch {
	case r.RelatedObjects > 0:
		return fmt.Sprintf("(%s related)", render.Thousands(r.RelatedObjects))
	case len(r.ResourceNames) > 0:
		return strings.Join(r.ResourceNames, ",")
	}
	return render.Faint.In("(all)")
}

// because says which authorizer has the rule, and on what it depends.
func (r listedRule) because() string {
	text := r.Authorizer
	switch {
	case r.Binding != nil:
		text += fmt.Sprintf(": %s to %s", r.Binding, r.Subject)
	case r.Condition != "":
		text += ": " + r.Condition
	}
	if r.Binding != nil && r.Namespace != "" {
		text += ", in namespace " + r.Namespace
	}
	if len(r.OwnName) > 0 {
		text += ", of " + render.Join(r.OwnName, "and") + " only its own"
	}
	if len(r.Restrictions) > 0 {
		text += ", if it passes " + nameRestriction
	}
	return text
}
