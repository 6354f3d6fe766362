package attackpaths

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodescope"
)

// The codes of warnings that are no techniques.
const (
	// ContainmentControl: the account may change what contains accounts and nodes.
	ContainmentControl Code = "ContainmentControl"
	// OtherwiseAllowed: what no rule of the NodeScope names passes.
	OtherwiseAllowed Code = "OtherwiseAllowed"
	// AggregatedAPI: another API server serves what a rule names, so that less passes than the rule says.
	AggregatedAPI = Code(nodescope.ScopeAggregatedAPI)
)

// ScopeWarning is about a rule of a valid NodeScope that lets pass a right with which accounts leave their node, or that
// lets pass less than it says.
type ScopeWarning struct {
	// Code is the technique of attack paths for which the right is enough or a part, ContainmentControl for what
	// changes NodeScopes, Quarantines and what asks about them, OtherwiseAllowed, or AggregatedAPI.
	Code Code `json:"code"`
	// Rule is the rule: "anywhere[0]", or "otherwise".
	Rule string `json:"rule"`
	// Message says what passes.
	Message string `json:"message"`

	passes []leavingRight
}

// leavingRight is a kind of request with which an account leaves its node, perhaps about one object only.
type leavingRight struct {
	code    Code
	summary string
	requestKind
}

var (
	change = []string{"update", "patch", "delete", "deletecollection"}
	define = append([]string{"create"}, change...)
	remove = []string{"delete", "deletecollection"}
)

const (
	steals = "who changes other nodes, or moves pods, may bring the pods of others to its node"
	lifts  = "who changes NodeScopes, Quarantines, or what asks about them can lift them, and cut off others"
)

// leavingUnfollowed are rights that no path follows: with the rights of StealPods, an account does what the technique does with a
// node's rights.
var leavingUnfollowed = map[Code][]requestKind{
	StealPods: {
		{verbs: remove, resource: "nodes"},
		{verbs: remove, resource: "pods", namespaced: true},
		{verbs: create, resource: "pods", subresource: "eviction", namespaced: true},
		{verbs: create, resource: "pods", subresource: "binding", namespaced: true},
		{verbs: create, resource: "bindings", namespaced: true, unnamed: true},
	},
	ContainmentControl: {
		{verbs: define, group: v1alpha1.Group, resource: "nodescopes"},
		{verbs: define, group: v1alpha1.Group, resource: "quarantines"},
		{verbs: write, group: v1alpha1.Group, resource: "quarantines", subresource: "status"},
		{verbs: change, group: admis, resource: "mutatingwebhookconfigurations"},
		{verbs: change, group: admis, resource: "validatingwebhookconfigurations"},
		{verbs: change, group: admis, resource: "validatingadmissionpolicies"},
		{verbs: change, group: admis, resource: "validatingadmissionpolicybindings"},
		{verbs: change, group: extns, resource: "customresourcedefinitions", name: "nodescopes." + v1alpha1.Group},
		{verbs: change, group: extns, resource: "customresourcedefinitions", name: "quarantines." + v1alpha1.Group},
	},
}

// leavingRights is a table and never changes: the rights of the techniques in their order, and those that no path follows.
var leavingRights = listLeavingRights()

func listLeavingRights() []leavingRight {
	var all []leavingRight
	kinds := kindsFor(&Cluster{Features: kubeversion.For(kubeversion.Oldest)})
	for _, t := range append(Techniques(), Technique{Code: ContainmentControl, Summary: lifts}) {
		if t.Code == StealPods {
			t.Summary = steals
		}
		for _, r := range t.needs {
			kind := kinds[r]
			if kind.namespaced {
				kind.namespace, kind.name = t.only.namespace, t.only.name
			}
			all = append(all, leavingRight{t.Code, t.Summary, kind})
		}
		for _, kind := range leavingUnfollowed[t.Code] {
			all = append(all, leavingRight{t.Code, t.Summary, kind})
		}
	}
	return all
}

// ScopeWarnings returns the rules of a valid NodeScope that let pass a right with which its accounts leave their node,
// whatever its mode and whatever RBAC grants: by rule, then by technique. Rules about versions that other API servers
// serve come last; served is nil if these are not known.
func ScopeWarnings(spec *v1alpha1.NodeScopeSpec, served *nodescope.Aggregation) []ScopeWarning {
	rules := newScopeRules("", nodescope.PassingOf(spec, "n"))
	var all, aggregated []ScopeWarning
	for i := range rules.rules {
		r := &rules.rules[i]
		aggregated = append(aggregated, r.aggregated(served)...)
		if r.kind == ruleAnywhere && grantsEverything(&r.PolicyRule) && len(r.namespaces) == 0 {
			message := r.name + " lets the account do everything, whatever node it concerns"
			all = append(all, ScopeWarning{Masters, r.name, message, passed(leavingRights, r.leaves)})
			continue
		}
		all = append(all, ruleWarnings(spec, r)...)
	}
	if rules.otherwise {
		all = append(all, ScopeWarning{
			OtherwiseAllowed, ruleOtherwise, "what no rule names is not held to the node", rules.notNamed(),
		})
	}
	return append(all, aggregated...)
}

// aggregated warns about a rule that relies on admission or on selectors where another API server serves what it names.
func (r *scopeRule) aggregated(served *nodescope.Aggregation) []ScopeWarning {
	relies := slices.ContainsFunc(r.Verbs, func(verb string) bool {
		return slices.Contains([]string{"create", "list", "watch", "deletecollection", "*"}, verb)
	})
	versions := served.Among(r.APIGroups)
	if r.kind == ruleAnywhere || !relies || len(versions) == 0 {
		return nil
	}
	texts := make([]string, len(versions))
	for i, v := range versions {
		texts[i] = v.String()
	}
	return []ScopeWarning{{Code: AggregatedAPI, Rule: r.name, Message: r.name + " names what another API server serves (" +
		strings.Join(texts, ", ") + "): there it lets no create, list, watch or deletion of a collection pass"}}
}

// passed lists the rights that something lets pass, with those verbs.
func passed(rights []leavingRight, passes func(l *leavingRight, verb string) bool) (all []leavingRight) {
	for _, l := range rights {
		l.verbs = slices.DeleteFunc(slices.Clone(l.verbs), func(verb string) bool { return !passes(&l, verb) })
		if len(l.verbs) > 0 {
			all = append(all, l)
		}
	}
	return all
}

// leaves reports whether the rule lets a right pass. Where the rule limits objects by their names, it does so if the name
// of the object does not limit the effect, as for objects that are created, and for tokens.
func (r *scopeRule) leaves(l *leavingRight, verb string) bool {
	switch {
	case !l.coveredBy(&r.PolicyRule, r.namespaces, verb):
		return false
	case r.kind == ruleAnywhere:
		return true
	case r.kind == ruleSelectsNode, r.kind == rulePodsOnNode && l.group == "" && l.resource == "pods":
		return false // only what is on the node
	}
	return verb == "create" && l.name == "" && (l.subresource == "" || l.code == TokenRequest)
}

// coveredBy reports whether a rule covers a verb for the object that matters.
func (l *leavingRight) coveredBy(rule *rbacv1.PolicyRule, namespaces []string, verb string) bool {
	kind := l.requestKind
	kind.unnamed, kind.hasName = kind.unnamed && verb != "create", kind.unnamed // who may patch creates one by its name
	return (len(namespaces) == 0 || slices.ContainsFunc(namespaces, kind.holdsIn)) && len(kind.namesIn(rule, verb)) > 0
}

// notNamed returns what passes because no rule names it. What a rule names is refused, or has warnings of its own.
func (s *scopeRules) notNamed() []leavingRight {
	nodes := &Cluster{Relations: graph.New(), Features: kubeversion.For(kubeversion.Oldest)}
	return passed(leavingRights, func(l *leavingRight, verb string) bool {
		q := asked{kind: &l.requestKind, verb: verb}
		return !(s.asNode && nodes.namedByNodeAuthorizer(q)) && !slices.ContainsFunc(s.rules, func(r scopeRule) bool {
			return r.kind != ruleAnywhere && len(r.namespaces) == 0 && r.names(q)
		})
	})
}

// ruleWarnings returns one warning for each technique of which a rule lets pass a right.
func ruleWarnings(spec *v1alpha1.NodeScopeSpec, r *scopeRule) (all []ScopeWarning) {
	for _, p := range passed(leavingRights, r.leaves) {
		if last := len(all) - 1; last < 0 || all[last].Code != p.code {
			all = append(all, ScopeWarning{Code: p.code, Rule: r.name})
		}
		last := &all[len(all)-1]
		last.passes = append(last.passes, p)
	}
	for i := range all {
		w := &all[i]
		w.Message = fmt.Sprintf("%s lets the account %s: %s", r.name, strings.Join(texts(w.passes), ", "), w.passes[0].summary)
		if w.Code == TokenRequest {
			w.Message += "; such a token can name another node"
			if spec.TokensWithoutNode == v1alpha1.Allow {
				w.Message += ", or none, which tokensWithoutNode lets pass"
			}
		}
	}
	return all
}

// texts names rights. Of several with the same verbs, only the first has them.
func texts(rights []leavingRight) []string {
	var all []string
	last := ""
	for _, p := range rights {
		verbs := strings.Join(p.verbs, " or ") + " "
		object := objectText(p.group, p.resource, p.subresource)
		if p.name != "" {
			object += " " + p.name
		}
		if text := strings.TrimPrefix(verbs, last) + object; !slices.Contains(all, text) {
			all = append(all, text)
		}
		last = verbs
	}
	return all
}

// AboutRights reports whether a warning is about certain rights, which roles may or may not grant.
func (w *ScopeWarning) AboutRights() bool {
	return w.Code != OtherwiseAllowed && w.Code != AggregatedAPI
}

// Granted lists what the rules of roles grant of the rights that a warning is about: "create pods". It is empty if they
// grant none, so that the account cannot use what the NodeScope lets pass.
func (w *ScopeWarning) Granted(rules []*rbacv1.PolicyRule) []string {
	return texts(passed(w.passes, func(l *leavingRight, verb string) bool {
		return slices.ContainsFunc(rules, func(r *rbacv1.PolicyRule) bool { return l.coveredBy(r, nil, verb) })
	}))
}
