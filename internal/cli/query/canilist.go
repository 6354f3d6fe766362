package query

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/resources"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/nodescope"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// CanIList has the rights of a user, as rules.
type CanIList struct {
	// Identity is the user.
	Identity command.Identity `json:"identity"`
	// Namespace is the namespace of the question; empty for all.
	Namespace string `json:"namespace,omitempty"`
	// Rules are the rules of the authorizers, in the order in which these are asked.
	Rules []listedRule `json:"rules"`
	// Scoped is true if NodeScopes are about the service account. A request must pass each of them, with one
	// of the rules in Scopes, before a rule of the authorizers counts.
	Scoped bool                `json:"scoped,omitempty"`
	Scopes []nodescope.Passing `json:"scopes,omitempty"`
	// Quarantine refuses the requests of the node, or of the token's node, but for those that it excepts.
	Quarantine string `json:"quarantine,omitempty"`
	// NotListed are authorizers that are asked too and have no list of rules, such as webhooks.
	NotListed []string `json:"notListed,omitempty"`
	// Missing is the missing state, because of which there may be more rules.
	Missing []command.Missing `json:"missing,omitempty"`
	// State is the cluster state that was asked.
	State command.StateInfo `json:"state"`
}

// listedRule is a rule in the form of a rule of RBAC, with what it depends on.
type listedRule struct {
	// Authorizer is the authorizer that has the rule. Verbs are what the rule allows; * for all.
	Authorizer string   `json:"authorizer"`
	Verbs      []string `json:"verbs"`
	// APIGroups, Resources, ResourceNames and NonResourceURLs are what it allows that with, as in a
	// rule of RBAC: the core group is empty, and without ResourceNames all names are meant.
	APIGroups       []string `json:"apiGroups,omitempty"`
	Resources       []string `json:"resources,omitempty"`
	ResourceNames   []string `json:"resourceNames,omitempty"`
	NonResourceURLs []string `json:"nonResourceURLs,omitempty"`
	// Namespace is the namespace in which the rule applies; empty for all.
	Namespace string `json:"namespace,omitempty"`
	// FieldSelector is one that a request must have.
	FieldSelector string `json:"fieldSelector,omitempty"`
	// Condition is the condition of a rule of the Node authorizer, in words.
	Condition string `json:"condition,omitempty"`
	// RelatedObjects counts the objects of a rule for objects that are related to the node. A
	// request must name one of them.
	RelatedObjects int `json:"relatedObjects,omitempty"`
	// Restrictions are the requirements of NodeRestriction for objects that the node writes.
	Restrictions []noderestriction.Condition `json:"restrictions,omitempty"`
	// Binding and Role grant a rule of RBAC to Subject.
	Binding *rbac.Ref `json:"binding,omitempty"`
	Role    *rbac.Ref `json:"role,omitempty"`
	Subject string    `json:"subject,omitempty"`
	// OwnName are the resources of a rule of RBAC of which NodeRestriction lets the node write
	// only objects with its own name.
	OwnName []string `json:"ownName,omitempty"`

	// writes is true for a rule of RBAC that allows writes of objects.
	writes bool
}

// appliesIn reports whether a rule for one namespace, or for all, applies in a namespace.
func appliesIn(namespace, of string) bool { return namespace == "" || of == "" || of == namespace }

// listArgs accepts no arguments beside --list, and no flag of a question about one request.
func listArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return command.Usagef("unexpected argument %q: --list is not about one request", args[0])
	}
	for _, flag := range []string{"subresource", "field-selector", "all-namespaces", "quiet"} {
		if cmd.Flags().Changed(flag) {
			return command.Usagef("--list and --%s exclude each other", flag)
		}
	}
	return nil
}

func listRules(a *command.App, cmd *cobra.Command, ask *askFlags, format render.Format) error {
	if err := ask.identity.Check(); err != nil {
		return err
	}
	s, err := ask.state.Load(cmd)
	if err != nil {
		return err
	}
	who, err := s.Identity(ask.identity)
	if err != nil {
		return err
	}
	result, err := rulesOf(s, who, ask.state.Namespace)
	if err != nil {
		return err
	}
	a.WarnMissing(result.Missing, command.ListIncomplete)
	return a.Write(result, format)
}

// rulesOf lists the rules of each authorizer for a user: rules that apply in a namespace and to
// objects without a namespace, or all rules.
func rulesOf(s *command.Session, who command.Identity, namespace string) (CanIList, error) {
	result := CanIList{Identity: who, Namespace: namespace, Rules: []listedRule{}, State: s.Info()}
	if err := readRules(s, who); err != nil {
		return result, err
	}
	names := s.Chain.Names()
	if s.Configured == "" && !slices.Contains(names, chain.NameRBAC) {
		names = append(slices.Clone(names), chain.NameRBAC) // the state has no roles and bindings
	}
	for _, name := range names {
		rules, listed, err := rulesBy(s, name, who, namespace)
		if err != nil {
			return result, err
		}
		result.Rules = append(result.Rules, rules...)
		if !listed {
			result.NotListed = append(result.NotListed, name)
		}
	}
	result.Scopes, result.Scoped = s.Passing(who.User, who.TokenNode)
	result.Quarantine = s.QuarantineOf(cmp.Or(who.Node, who.TokenNode))
	result.Missing = missingRules(s, who)
	return result, s.State.ReadErr()
}

func readRules(s *command.Session, who command.Identity) error {
	switch {
	case !s.State.Partial():
		return nil
	case who.Node != "":
		if err := s.ReadReach(who.Node); err != nil {
			return err
		}
	}
	return s.ReadUser(who.User, who.Groups)
}

// missingRules is the state that could not be read, or that files lack, and that could give the user more rights.
func missingRules(s *command.Session, who command.Identity) []command.Missing {
	if who.Node != "" {
		return append(missingForReach(s), s.AsMissing(s.LackingForNode(who.Node))...)
	}
	all := s.MissingOf(func(m source.Missing) bool { return m.Kind&source.RBACKinds() != 0 })
	all = append(all, command.Unreadable(s.UnreadContainment(command.Question{}.Request(who)))...)
	return append(all, s.AsMissing(s.LackingForUser(who.User, who.Groups))...)
}

// rulesBy returns the rules of one authorizer. Listed is false if it has no list of rules.
func rulesBy(s *command.Session, name string, who command.Identity, namespace string) (rules []listedRule, listed bool, err error) {
	switch name {
	case chain.NameMasters:
		if slices.Contains(who.Groups, chain.NameMasters) {
			rules = everything(name)
		}
	case chain.NameAlwaysAllow:
		rules = everything(name)
	case chain.NameAlwaysDeny:
	case chain.NameQuarantine, chain.NameNodeScope:
		return nil, s.Configured == "", nil // they only refuse; a webhook may have their name
	case chain.NameNode:
		rules = nodeRules(s, who, namespace)
	case chain.NameRBAC:
		rules, err = rbacRules(s, who, namespace)
	default:
		return nil, false, nil
	}
	return rules, true, err
}

func everything(authorizer string) []listedRule {
	all := []string{"*"}
	return []listedRule{
		{Authorizer: authorizer, Verbs: all, APIGroups: all, Resources: all},
		{Authorizer: authorizer, Verbs: all, NonResourceURLs: all},
	}
}

// nodeRules are the rules of the Node authorizer that NodeRestriction lets pass: for objects that
// are related to the node, with their number, and then the others.
func nodeRules(s *command.Session, who command.Identity, namespace string) []listedRule {
	if who.Node == "" {
		return nil
	}
	said, limits := s.Node.Reach(who.Node), &writeLimits{Session: s, who: who}
	elsewhere := func(g nodeauthz.Grant) bool { return !appliesIn(namespace, g.Namespace) }
	rules := relatedRules(slices.DeleteFunc(said.Related, elsewhere), limits)
	for _, g := range slices.DeleteFunc(said.Standing, elsewhere) {
		for _, left := range limits.standing(g) {
			rule := newNodeRule(left.Grant, permission{Verbs: left.Verbs, Subresource: left.Subresource, Conditions: left.Conditions})
			if rule.Condition = left.Rule; left.OwnName {
				rule.Condition += ", its own only"
			}
			rules = append(rules, rule)
		}
	}
	return rules
}

// relatedRules joins the grants for objects of one resource that allow the same.
func relatedRules(grants []nodeauthz.Grant, limits *writeLimits) []listedRule {
	var rules []listedRule
	index := map[string]int{}
	for _, g := range grants {
		for _, p := range limits.permissions(g) {
			of := g
			of.Namespace, of.Name = "", ""
			rule := newNodeRule(of, p)
			rule.Condition = g.Rule
			key, err := json.Marshal(rule)
			if err != nil {
				key = []byte(g.Resource)
			}
			i, known := index[string(key)]
			if !known {
				i = len(rules)
				index[string(key)] = i
				rules = append(rules, rule)
			}
			rules[i].RelatedObjects++
		}
	}
	return rules
}

func newNodeRule(g nodeauthz.Grant, p permission) listedRule {
	resource := g.Resource
	if p.Subresource != "" {
		resource += "/" + p.Subresource
	}
	rule := listedRule{
		Authorizer: chain.NameNode, Verbs: p.Verbs, APIGroups: []string{g.Group}, Resources: []string{resource},
		Namespace: g.Namespace, FieldSelector: g.FieldSelector, Restrictions: p.Conditions,
	}
	if g.Name != "" {
		rule.ResourceNames = []string{g.Name}
	}
	return rule
}

func rbacRules(s *command.Session, who command.Identity, namespace string) ([]listedRule, error) {
	if !s.State.RBACLoaded() {
		return nil, nil
	}
	grants, err := rbacGrants(s, who, command.Filter{})
	if err != nil {
		return nil, err
	}
	var rules []listedRule
	for _, g := range grants {
		if !appliesIn(namespace, g.Namespace) {
			continue
		}
		rules = append(rules, listedRule{
			Authorizer: chain.NameRBAC, Verbs: g.Rule.Verbs, APIGroups: g.Rule.APIGroups, Resources: g.Rule.Resources,
			ResourceNames: g.Rule.ResourceNames, NonResourceURLs: g.Rule.NonResourceURLs, Namespace: g.Namespace,
			Binding: &g.Binding, Role: &g.Role, Subject: g.Subject, OwnName: g.OwnName, writes: g.writes(),
		})
	}
	return rules, nil
}

func (CanIList) DocumentKind() string { return "UserRules" }

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
