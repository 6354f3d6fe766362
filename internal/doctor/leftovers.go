package doctor

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/finding"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/rbac"
)

const (
	groupAuthenticated   = "system:authenticated"
	groupUnauthenticated = "system:unauthenticated"
	groupServiceAccounts = "system:serviceaccounts"
	groupBootstrappers   = "system:bootstrappers"
	groupMasters         = "system:masters"
	userAnonymous        = "system:anonymous"

	resourceRoles = "clusterroles.rbac.authorization.k8s.io"
)

// audience is a subject of bindings that stands for nodes, or for everyone.
type audience struct {
	kind, name string
	// who is what people call it, everyone whether it is more than nodes.
	who      string
	everyone bool
	// joining is true for machines that have yet to become a node.
	joining bool
	// node is the name of the one node that it stands for.
	node string
}

// audiences are those of every cluster, and the nodes and bootstrap groups that the
// cluster's bindings name.
func (c *Cluster) audiences() []audience {
	list := []audience{
		{kind: rbacv1.GroupKind, name: nodeidentity.Group, who: "every node"},
		{kind: rbacv1.GroupKind, name: groupBootstrappers, who: "every machine with a bootstrap token", joining: true},
		{kind: rbacv1.GroupKind, name: groupAuthenticated, who: "every authenticated user", everyone: true},
		{kind: rbacv1.GroupKind, name: groupUnauthenticated, who: "whoever reaches the API server, without any credential", everyone: true},
		{kind: rbacv1.UserKind, name: userAnonymous, who: "whoever reaches the API server, without any credential", everyone: true},
		{kind: rbacv1.GroupKind, name: groupServiceAccounts, who: "every pod's service account", everyone: true},
	}
	for _, b := range c.Bindings {
		for _, s := range b.Subjects {
			if a, ok := namedAudience(s); ok && !slices.Contains(list, a) {
				list = append(list, a)
			}
		}
	}
	return list
}

func namedAudience(s rbacv1.Subject) (audience, bool) {
	if node, ok := strings.CutPrefix(s.Name, nodeidentity.UserPrefix); ok && node != "" && s.Kind == rbacv1.UserKind {
		return audience{kind: s.Kind, name: s.Name, who: "node " + node, node: node}, true
	}
	if strings.HasPrefix(s.Name, groupBootstrappers+":") && s.Kind == rbacv1.GroupKind {
		return audience{kind: s.Kind, name: s.Name, who: "every machine of group " + s.Name, joining: true}, true
	}
	return audience{}, false
}

// String is how findings call it: "group system:nodes".
func (a audience) String() string { return strings.ToLower(a.kind) + " " + a.name }

// leftovers checks what bindings give to nodes beside the Node authorizer, and to
// everyone. What counts is what the rules allow, not what roles and bindings are called.
func leftovers(e *examination) {
	for _, x := range e.excesses() {
		e.found(x.finding)
	}
}

// excess is what an audience should not have of a binding.
type excess struct {
	finding  finding.Finding
	audience audience
	binding  *Binding
	subject  int
}

// excesses are those of all audiences, in the order of these, of bindings and of rights.
func (e *examination) excesses() []excess {
	var list []excess
	for _, a := range e.cluster.audiences() {
		for _, h := range e.holdings(a) {
			for _, f := range e.judge(a, h) {
				list = append(list, excess{f, a, h.binding, h.subject})
			}
		}
	}
	return list
}

// holding is what one binding gives to one audience.
type holding struct {
	binding *Binding
	// subject is the index of the audience among the binding's subjects.
	subject int
	role    rbac.Ref
	rules   []heldRule
}

// heldRule is a rule with its index in its role, which is -1 in a role that was not
// given, and the role that an aggregated one has it from.
type heldRule struct {
	*rbacv1.PolicyRule
	index int
	from  string
}

// holdings evaluates what every binding gives to an audience itself, in order of the
// bindings. A role that was not given is taken as every cluster has it, or reported.
func (e *examination) holdings(a audience) []holding {
	user, groups := a.name, []string(nil)
	if a.kind == rbacv1.GroupKind {
		user, groups = "", []string{a.name}
	}
	grants, err := e.cluster.RBAC.Grants(user, groups)
	held := map[rbac.Ref]*holding{}
	var order []rbac.Ref
	add := func(binding, role rbac.Ref) *holding {
		h := held[binding]
		if h == nil {
			h = &holding{role: role}
			h.binding, h.subject = e.cluster.binding(binding, a)
			held[binding], order = h, append(order, binding)
		}
		return h
	}
	for _, g := range grants {
		h := add(g.Binding, g.Role)
		h.rules = append(h.rules, heldRule{g.Rule, g.RuleIndex, g.AggregatedFrom})
	}
	for _, u := range unresolved(err) {
		rules, known := assumedRules(u.Role)
		if e.cluster.whole() && e.cluster.RBACKnown && errors.Is(u.Err, rbac.ErrRoleNotFound) {
			continue // it grants nothing
		}
		if !known {
			e.missing(CheckBindings, Missing{
				resourceRoles, fmt.Sprintf("%s, which %s gives to %s, was not read: %v", u.Role, u.Binding, a, u.Err),
				"give the role too, or let it be read",
			})
			continue
		}
		h := add(u.Binding, u.Role)
		for i := range rules {
			h.rules = append(h.rules, heldRule{&rules[i], -1, ""})
		}
	}
	list := make([]holding, len(order))
	for i, ref := range order {
		list[i] = *held[ref]
	}
	return list
}

// unresolved takes the bindings without a role out of the error of [rbac.Policy.Grants].
func unresolved(err error) []rbac.Unresolved {
	var list []rbac.Unresolved
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		for _, one := range joined.Unwrap() {
			var u rbac.Unresolved
			if errors.As(one, &u) {
				list = append(list, u)
			}
		}
	}
	return list
}

// binding finds a binding that the policy names, and its subject that is the audience.
func (c *Cluster) binding(ref rbac.Ref, a audience) (*Binding, int) {
	for i := range c.Bindings {
		b := &c.Bindings[i]
		if b.Name != ref.Name || b.Namespace != ref.Namespace {
			continue
		}
		at := slices.IndexFunc(b.Subjects, func(s rbacv1.Subject) bool { return s.Kind == a.kind && s.Name == a.name })
		return b, max(at, 0)
	}
	return &Binding{
		Namespace: ref.Namespace, Name: ref.Name, Place: finding.Place{Object: ref.Kind + " " + qualified(ref.Namespace, ref.Name)},
	}, 0
}

func qualified(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// judge says what an audience should not hold. A role that gives everything, or all
// that nodes once had, is one finding; any other is one for each right.
func (e *examination) judge(a audience, h holding) []finding.Finding {
	wide := h.binding.Namespace == ""
	if i := slices.IndexFunc(h.rules, func(r heldRule) bool { return everything(r.PolicyRule) }); i >= 0 {
		return []finding.Finding{h.masters(a, h.rules[i])}
	}
	if wide && allowsAll(h.plain(), nodesOwn()) {
		return []finding.Finding{e.systemNode(a, h)}
	}
	var list []finding.Finding
	if i := slices.IndexFunc(h.rules, func(r heldRule) bool { return wildcard(r.PolicyRule) }); i >= 0 {
		list = append(list, h.wildcard(a, h.rules[i]))
	}
	for _, right := range rights() {
		if f, found := h.excess(a, &right); found {
			list = append(list, f)
		}
	}
	return list
}

func (h *holding) plain() []rbacv1.PolicyRule {
	rules := make([]rbacv1.PolicyRule, len(h.rules))
	for i, r := range h.rules {
		rules[i] = *r.PolicyRule
	}
	return rules
}

// excess reports a right that the audience has of the binding: the rule that gives it
// for all names, if there is one.
func (h *holding) excess(a audience, r *right) (finding.Finding, bool) {
	by, only := -1, true
	for i, rule := range h.rules {
		if allowed, named := r.allowedBy(rule.PolicyRule, a, h.binding.Namespace); allowed && (by < 0 || only && !named) {
			by, only = i, named
		}
	}
	if by < 0 {
		return finding.Finding{}, false
	}
	severity, scope := finding.Error, ""
	switch {
	case h.binding.Namespace != "":
		scope = " in namespace " + h.binding.Namespace
		if h.binding.Namespace != kubeSystem {
			severity = finding.Warning
		}
	case only:
		scope = " of certain names"
	}
	if only || r.mild && !a.everyone {
		severity = finding.Warning
	}
	f := h.finding(a, r.nodes, r.everyone, severity)
	f.Message = fmt.Sprintf("%s may %s%s: %s", a, r.phrase, scope, h.because(h.rules[by]))
	f.Consequence = a.who + " " + r.forNodes
	if a.everyone {
		f.Consequence = a.who + " " + r.forEveryone
	}
	if r.mild && !a.everyone {
		f.Consequence += "; NodeRestriction, where it is on, keeps a node to its own Node"
	}
	return f, true
}

const kubeSystem = "kube-system"

func (h *holding) masters(a audience, rule heldRule) finding.Finding {
	f := h.finding(a, NodesMasters, EveryoneMasters, finding.Error)
	scope, whole := "", "the whole cluster"
	if h.binding.Namespace != "" {
		scope, whole = " in namespace "+h.binding.Namespace, "namespace "+h.binding.Namespace
	}
	f.Message = fmt.Sprintf("%s may do everything%s: %s", a, scope, h.because(rule))
	f.Consequence = fmt.Sprintf("%s has %s; what the Node authorizer refuses, this allows", a.who, whole)
	return f
}

func (h *holding) wildcard(a audience, rule heldRule) finding.Finding {
	f := h.finding(a, NodesWildcard, EveryoneWildcard, finding.Warning)
	f.Message = fmt.Sprintf("%s may %s every resource, also what is added later: %s", a, strings.Join(rule.Verbs, ", "), h.because(rule))
	f.Consequence = a.who + " has rights that nobody meant to give, those to secrets among them"
	return f
}

func (e *examination) systemNode(a audience, h holding) finding.Finding {
	f := h.finding(a, SystemNodeBinding, SystemNodeBinding, finding.Error)
	f.Message = fmt.Sprintf("%s has by %s all that nodes had before there was a Node authorizer", a, h.role)
	f.Consequence = a.who + " reads every secret and pod, and changes every node: what the Node authorizer refuses, this allows"
	if !e.cluster.asksNode() {
		f.Remedy = "not yet: first let the Node authorizer decide, " +
			"and bring kubelets' identities into form (node-authorizer doctor --plan); then " + f.Remedy
	}
	return f
}

func (h *holding) finding(a audience, nodes, everyone finding.Code, severity finding.Severity) finding.Finding {
	f := finding.Finding{
		Code: nodes, Severity: severity, Place: h.binding.Place, Subject: a.String(),
		Remedy: "take " + a.String() + " out of the binding: " + withdrawal(h.binding, h.subject),
	}
	if a.everyone {
		f.Code = everyone
	}
	if len(h.binding.Subjects) > 0 {
		f.Place.Key = fmt.Sprintf("subjects[%d]", h.subject)
	}
	return f
}

// because names the rule and how it came.
func (h *holding) because(rule heldRule) string {
	from := ""
	if rule.from != "" {
		from = fmt.Sprintf(" (from ClusterRole %q)", rule.from)
	}
	what := strings.Join(rule.Resources, ", ")
	if len(rule.ResourceNames) > 0 {
		what += " " + some(rule.ResourceNames)
	}
	where := fmt.Sprintf("rule %d of %s%s", rule.index, h.role, from)
	if rule.index < 0 {
		where = fmt.Sprintf("%s, as every cluster has it", h.role)
	}
	return fmt.Sprintf("%s: %s %s", where, strings.Join(rule.Verbs, ", "), what)
}

// withdrawal is the command that takes a subject out of a binding, or deletes the
// binding if it is for no other.
func withdrawal(b *Binding, subject int) string {
	if len(b.Subjects) < 2 {
		return shell(b.kubectl("delete")...)
	}
	name, err := json.Marshal(b.Subjects[subject].Name)
	if err != nil {
		return shell(b.kubectl("edit")...)
	}
	patch := fmt.Sprintf(
		`[{"op":"test","path":"/subjects/%[1]d/name","value":%[2]s},{"op":"remove","path":"/subjects/%[1]d"}]`, subject, name,
	)
	return shell(append(b.kubectl("patch"), "--type=json", "-p", patch)...)
}

// administrator reports whether a user may do everything, and how it comes to that. What
// all nodes, or all users, have by a binding is not the user's own.
func (c *Cluster) administrator(user string, groups []string) (string, bool) {
	if slices.Contains(groups, groupMasters) {
		return "it is in group " + groupMasters, true
	}
	grants, _ := c.RBAC.Grants(user, groups)
	for _, g := range grants {
		if g.Binding.Namespace == "" && everything(g.Rule) && !c.isCommon(g.Subject) {
			return g.String(), true
		}
	}
	return "", false
}

// isCommon reports whether a subject stands for all nodes, or all users.
func (c *Cluster) isCommon(s rbacv1.Subject) bool {
	return slices.ContainsFunc(c.audiences(), func(a audience) bool { return a.kind == s.Kind && a.name == s.Name && a.node == "" })
}
