package doctor

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/internal/finding"
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
	// who describes it; everyone is true if it is more than nodes.
	who      string
	everyone bool
	// joining is true for machines that have yet to become a node.
	joining bool
	// node is the name of the node, if it is a single node.
	node string
}

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
			a := audience{kind: s.Kind, name: s.Name}
			switch node, ofNode := strings.CutPrefix(s.Name, nodeidentity.UserPrefix); {
			case ofNode && node != "" && s.Kind == rbacv1.UserKind:
				a.who, a.node = "node "+node, node
			case strings.HasPrefix(s.Name, groupBootstrappers+":") && s.Kind == rbacv1.GroupKind:
				a.who, a.joining = "every machine of group "+s.Name, true
			}
			if a.who != "" && !slices.Contains(list, a) {
				list = append(list, a)
			}
		}
	}
	return list
}

// String returns its name in findings: "group system:nodes".
func (a audience) String() string { return strings.ToLower(a.kind) + " " + a.name }

// leftovers checks what bindings grant to nodes in addition to the Node authorizer, and to
// everyone. It evaluates rules; the names of roles and bindings do not matter.
func leftovers(e *examination) {
	for _, x := range e.excesses() {
		e.found(x.finding)
	}
}

// excess is a right that an audience should not have from a binding.
type excess struct {
	finding finding.Finding
	*holding
}

// excesses returns the excesses of all audiences, in the order of audiences, bindings and rights.
func (e *examination) excesses() []excess {
	var list []excess
	for _, a := range e.cluster.audiences() {
		for _, h := range e.holdings(a) {
			for _, f := range e.judge(h) {
				list = append(list, excess{f, h})
			}
		}
	}
	return list
}

// holding has the rights that one binding grants to one audience.
type holding struct {
	audience audience
	binding  *Binding
	// subject is the index of the audience among the binding's subjects.
	subject int
	role    rbac.Ref
	rules   []heldRule
}

// heldRule is a rule with its index in its role and, for an aggregated role, the role that it
// comes from. The index is -1 if the role was not given.
type heldRule struct {
	*rbacv1.PolicyRule
	index int
	from  string
}

// holdings returns what each binding grants to an audience itself, in the order of the bindings.
// For a role that was not given, it uses the default role, or reports the role as missing.
func (e *examination) holdings(a audience) []*holding {
	user, groups := a.name, []string(nil)
	if a.kind == rbacv1.GroupKind {
		user, groups = "", []string{a.name}
	}
	grants, err := e.cluster.RBAC.Grants(user, groups)
	held := map[rbac.Ref]*holding{}
	var list []*holding
	add := func(binding, role rbac.Ref, rule heldRule) {
		h := held[binding]
		if h == nil {
			h = &holding{audience: a, role: role}
			h.binding, h.subject = e.cluster.binding(binding, a)
			held[binding], list = h, append(list, h)
		}
		h.rules = append(h.rules, rule)
	}
	for _, g := range grants {
		add(g.Binding, g.Role, heldRule{g.Rule, g.RuleIndex, g.AggregatedFrom})
	}
	for _, u := range unresolved(err) {
		rules, known := rbac.DefaultRules(u.Role)
		switch {
		case e.cluster.whole() && e.cluster.RBACKnown && errors.Is(u.Err, rbac.ErrRoleNotFound): // it grants nothing
		case known:
			for i := range rules {
				add(u.Binding, u.Role, heldRule{&rules[i], -1, ""})
			}
		default:
			e.met[CheckBindings] = append(e.met[CheckBindings], Missing{
				resourceRoles, fmt.Sprintf("%s, which %s gives to %s, was not read: %v", u.Role, u.Binding, a, u.Err),
				"give the role too, or let it be read",
			})
		}
	}
	return list
}

// unresolved returns the bindings without a role from the error of [rbac.Policy.Grants].
func unresolved(err error) []rbac.Unresolved {
	var list []rbac.Unresolved
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		for _, one := range joined.Unwrap() {
			if u, ok := errors.AsType[rbac.Unresolved](one); ok {
				list = append(list, u)
			}
		}
	}
	return list
}

// binding returns a binding by reference, and the index of the subject that is the audience.
func (c *Cluster) binding(ref rbac.Ref, a audience) (*Binding, int) {
	for i := range c.Bindings {
		if b := &c.Bindings[i]; b.Name == ref.Name && b.Namespace == ref.Namespace {
			return b, max(0, slices.IndexFunc(b.Subjects, func(s rbacv1.Subject) bool { return s.Kind == a.kind && s.Name == a.name }))
		}
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

// judge returns findings about what an audience should not hold. A role that grants everything, or
// all former rights of nodes, is one finding; any other role has one finding for each right.
func (e *examination) judge(h *holding) []finding.Finding {
	a, scope, whole := h.audience, "", "the whole cluster"
	if h.binding.Namespace != "" {
		scope, whole = " in namespace "+h.binding.Namespace, "namespace "+h.binding.Namespace
	}
	if i := slices.IndexFunc(h.rules, func(r heldRule) bool { return everything(r.PolicyRule) }); i >= 0 {
		return []finding.Finding{h.finding(NodesMasters, EveryoneMasters, finding.Error,
			fmt.Sprintf("%s may do everything%s: %s", a, scope, h.because(h.rules[i])),
			fmt.Sprintf("%s has %s; what the Node authorizer refuses, this allows", a.who, whole))}
	}
	if h.binding.Namespace == "" && allowsAll(h.rules, nodesOwn()) {
		f := h.finding(SystemNodeBinding, SystemNodeBinding, finding.Error,
			fmt.Sprintf("%s has by %s all that nodes had before there was a Node authorizer", a, h.role),
			a.who+" reads every secret and pod, and changes every node: what the Node authorizer refuses, this allows")
		if setups := e.cluster.setups(); len(setups) == 0 || slices.ContainsFunc(setups, func(s setup) bool { return !s.asks(modeNode) }) {
			f.Remedy = "not yet: first let the Node authorizer decide, " +
				"and bring kubelets' identities into form (node-authorizer doctor --plan); then " + f.Remedy
		}
		return []finding.Finding{f}
	}
	var list []finding.Finding
	if i := slices.IndexFunc(h.rules, func(r heldRule) bool { return wildcard(r.PolicyRule) }); i >= 0 {
		verbs := strings.Join(h.rules[i].Verbs, ", ")
		list = append(list, h.finding(NodesWildcard, EveryoneWildcard, finding.Warning,
			fmt.Sprintf("%s may %s every resource, also what is added later: %s", a, verbs, h.because(h.rules[i])),
			a.who+" has rights that nobody meant to give, those to secrets among them"))
	}
	for _, right := range rights() {
		if f, found := h.excess(&right, scope); found {
			list = append(list, f)
		}
	}
	return list
}

// excess returns a finding for a right that the audience has from the binding. It prefers a rule
// that grants it for all names.
func (h *holding) excess(r *right, scope string) (finding.Finding, bool) {
	a, by, only := h.audience, -1, true
	for i, rule := range h.rules {
		if allowed, named := r.allowedBy(rule.PolicyRule, a, h.binding.Namespace); allowed && (by < 0 || only && !named) {
			by, only = i, named
		}
	}
	if by < 0 {
		return finding.Finding{}, false
	}
	severity, consequence := finding.Error, a.who+" "+r.forNodes
	if a.everyone {
		consequence = a.who + " " + r.forEveryone
	} else if r.mild {
		severity = finding.Warning
		consequence += "; NodeRestriction, where it is on, keeps a node to its own Node"
	}
	if only || h.binding.Namespace != "" && h.binding.Namespace != kubeSystem {
		severity = finding.Warning
	}
	if only && scope == "" {
		scope = " of certain names"
	}
	message := fmt.Sprintf("%s may %s%s: %s", a, r.phrase, scope, h.because(h.rules[by]))
	return h.finding(r.nodes, r.everyone, severity, message, consequence), true
}

const kubeSystem = "kube-system"

func (h *holding) finding(nodes, everyone finding.Code, severity finding.Severity, message, consequence string) finding.Finding {
	f := finding.Finding{
		Code: nodes, Severity: severity, Place: h.binding.Place, Subject: h.audience.String(), Message: message, Consequence: consequence,
		Remedy: "take " + h.audience.String() + " out of the binding: " + withdrawal(h.binding, h.subject),
	}
	if h.audience.everyone {
		f.Code = everyone
	}
	if len(h.binding.Subjects) > 0 {
		f.Place.Key = fmt.Sprintf("subjects[%d]", h.subject)
	}
	return f
}

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

// withdrawal returns the command that removes a subject from a binding, or deletes the binding if it
// has no other subject.
func withdrawal(b *Binding, subject int) string {
	if len(b.Subjects) < 2 {
		return shell(b.kubectl("delete")...)
	}
	name, _ := json.Marshal(b.Subjects[subject].Name) // a string
	patch := fmt.Sprintf(
		`[{"op":"test","path":"/subjects/%[1]d/name","value":%[2]s},{"op":"remove","path":"/subjects/%[1]d"}]`, subject, name,
	)
	return shell(append(b.kubectl("patch"), "--type=json", "-p", patch)...)
}

// administrator reports whether a user may do everything, and why. It ignores bindings to all nodes
// or all users.
func (c *Cluster) administrator(user string, groups []string) (string, bool) {
	if slices.Contains(groups, groupMasters) {
		return "it is in group " + groupMasters, true
	}
	grants, _ := c.RBAC.Grants(user, groups)
	for _, g := range grants {
		common := func(a audience) bool { return a.kind == g.Subject.Kind && a.name == g.Subject.Name && a.node == "" }
		if g.Binding.Namespace == "" && everything(g.Rule) && !slices.ContainsFunc(c.audiences(), common) {
			return g.String(), true
		}
	}
	return "", false
}
