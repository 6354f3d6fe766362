package learn

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

const maxOutliers = 10_000

// kind is a kind of rules, the tightest first.
type kind int

const (
	named kind = iota
	selected
	onNode
	asNode
	anywhere
)

// ruled is requests of a group with the rule that they get.
type ruled struct {
	kind
	group
	field      string
	namespaces []string
	names      []string
	count      int
	nodes      map[string]bool
	example    string
	grants     map[int]bool
	// guess says why the rule was chosen without a log.
	guess string
}

// choice is a group with its requests that are not about the own node, and the node that each is about.
type choice struct {
	*evidence
	notOwn []object
	about  []string
	ofOwn  int
}

// choose returns the rules of all groups, and adds the outliers to the suggestion.
func (c *Collector) choose(s *Suggestion, acceptOutliers bool) []ruled {
	c.located = map[PodOnNode]string{}
	for pod := range c.pods {
		anyNode := PodOnNode{Namespace: pod.Namespace, Name: pod.Name}
		c.located[anyNode] = max(c.located[anyNode], pod.Node)
	}
	var all []ruled
	choices, showsNode := make([]choice, 0, len(c.groups)), map[group]bool{}
	for _, e := range c.groups {
		own, notOwn := c.resolve(e)
		rules, ofOwn := e.tightest(own)
		all = append(all, rules...)
		of := choice{e, notOwn, make([]string, len(notOwn)), ofOwn}
		shows := ofOwn > 0 || e.otherNode
		for i := range notOwn {
			of.about[i] = c.otherNode(e.group, &notOwn[i])
			shows = shows || of.about[i] != ""
		}
		choices = append(choices, of)
		showsNode[e.alike()] = showsNode[e.alike()] || shows
	}
	accepted := 0
	for _, of := range choices {
		wide := c.wide(of.evidence, of.notOwn)
		technique := leavesNode(wide)
		outliers := technique != "" || showsNode[of.alike()]
		if outliers && !acceptOutliers {
			for i := range of.notOwn {
				o := of.outlier(&of.notOwn[i], of.about[i], of.ofOwn)
				o.Technique = technique
				s.Outliers = append(s.Outliers, o)
			}
			s.MoreOutliers += of.beyond.Requests()
			continue
		}
		for _, r := range wide {
			all = append(all, r)
			if outliers {
				accepted += r.count
			}
		}
	}
	s.sortOutliers()
	if accepted > 0 {
		s.Notes = append(s.Notes, render.Count(accepted, "request")+
			" not about the node of the token: outliers that were accepted, and have rules in anywhere")
	}
	return all
}

// alike is the group that stands for all groups with the same resource whose verbs do the same to it: a list and a
// watch show the same objects.
func (g group) alike() group {
	switch g.verb {
	case "watch":
		g.verb = "list"
	case "deletecollection":
		g.verb = "delete"
	}
	return g
}

// leavesNode returns the technique with which the account leaves its node by a rule in anywhere; empty if there is none.
func leavesNode(wide []ruled) attackpaths.Code {
	if len(wide) == 0 || wide[0].path != "" {
		return ""
	}
	j := joined{ruled: wide[0], verbs: []string{wide[0].verb}}
	rule := j.anywhere([]string{j.resource})
	for _, w := range attackpaths.ScopeWarnings(&v1alpha1.NodeScopeSpec{Anywhere: []v1alpha1.AnywhereRule{rule}}, nil) {
		return w.Code
	}
	return ""
}

// resolve divides the requests of a group with what the whole log shows into those about the own node and
// the others.
func (c *Collector) resolve(e *evidence) (own map[forms]*sum, notOwn []object) {
	own = map[forms]*sum{}
	into := func(f forms) *sum {
		if own[f] == nil {
			own[f] = &sum{}
		}
		return own[f]
	}
	for f, s := range e.own {
		into(f).merge(s)
	}
	for o, t := range e.notOwn {
		f := o.forms
		f.onNode = o.isPod && c.pods[PodOnNode{Namespace: o.namespace, Name: o.name, Node: o.node}]
		if f == (forms{}) {
			notOwn = append(notOwn, o)
			continue
		}
		into(f).add(&o, t)
	}
	return own, notOwn
}

// tightest returns rules for the requests about the own node, and their number. It takes the rule that fits
// most of them, the tightest of several, then the one that fits most of the rest, until each has a rule.
func (e *evidence) tightest(left map[forms]*sum) (rules []ruled, ofOwn int) {
	for len(left) > 0 {
		var best ruled
		most := 0
		for _, r := range fittingRules(left) {
			n := 0
			for f, s := range left {
				if r.fits(f) {
					n += s.Requests()
				}
			}
			if n > most {
				best, most = r, n
			}
		}
		covered := &sum{}
		for f, s := range left {
			if best.fits(f) {
				covered.merge(s)
				delete(left, f)
			}
		}
		if best.kind == named || best.kind == selected {
			best.namespaces = covered.inNamespaces(1)
		}
		rules = append(rules, e.rule(best, covered))
		ofOwn += covered.Requests()
	}
	return rules, ofOwn
}

// fittingRules returns rules of which each request fits one, the tightest first.
func fittingRules(left map[forms]*sum) []ruled {
	rules := []ruled{{kind: named}, {kind: selected, field: "spec.nodeName"}}
	for _, f := range fieldsOf(left) {
		rules = append(rules, ruled{kind: selected, field: f})
	}
	return append(rules, ruled{kind: onNode}, ruled{kind: asNode})
}

func fieldsOf(left map[forms]*sum) (all []string) {
	for f := range left {
		all = append(all, strings.Split(f.fields, ",")...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// fits reports whether a rule that holds the account to its node fits requests.
func (r *ruled) fits(f forms) bool {
	switch r.kind {
	case named:
		return f.named
	case selected:
		return r.field != "" && slices.Contains(strings.Split(f.fields, ","), r.field)
	case onNode:
		return f.onNode
	default:
		return f.asNode
	}
}

func (e *evidence) rule(r ruled, of *sum) ruled {
	r.group, r.grants, r.count, r.nodes = e.group, e.grants, of.Requests(), of.nodes
	r.example = e.describe(&of.example) + " from " + of.example.node
	return r
}

// wide returns the rule in anywhere for requests that are not about the own node, with the requests for each
// of its names.
func (c *Collector) wide(e *evidence, objects []object) []ruled {
	all, byName := &sum{}, map[string]*sum{}
	for _, o := range objects {
		all.add(&o, e.notOwn[o])
		if byName[o.name] == nil {
			byName[o.name] = &sum{}
		}
		byName[o.name].add(&o, e.notOwn[o])
	}
	all.merge(&e.beyond)
	if all.Requests() == 0 {
		return nil
	}
	r := ruled{kind: anywhere}
	if e.path == "" {
		r.namespaces, r.names = all.inNamespaces(maxSpaces), c.fixedNames(e, all)
	}
	if len(r.names) == 0 || e.beyond.Requests() > 0 {
		return []ruled{e.rule(r, all)}
	}
	var rules []ruled
	for _, name := range r.names {
		rules = append(rules, e.rule(r, byName[name]))
	}
	return rules
}

// fixedNames are the names of all requests, if they are few and may stay: names of nodes and pods do not.
func (c *Collector) fixedNames(e *evidence, all *sum) []string {
	resource, _, _ := strings.Cut(e.resource, "/")
	if all.unnamed || all.named.more || e.apiGroup == "" && (resource == "pods" || resource == "nodes") ||
		slices.ContainsFunc(all.named.all, c.isNode) {
		return nil
	}
	return slices.Sorted(slices.Values(all.named.all))
}

// inNamespaces are the namespaces of all requests; nil if there are more, and if some had none.
func (s *sum) inNamespaces(most int) []string {
	if s.namespaces.more || len(s.namespaces.all) > most || slices.Contains(s.namespaces.all, "") {
		return nil
	}
	return slices.Sorted(slices.Values(s.namespaces.all))
}

func (c *Collector) isNode(name string) bool {
	return c.nodes[name] || name != "" && c.node.IsNode(name)
}

// otherNode returns the node other than the own one that requests are about, if anything shows one: they name
// it, or select it, or are about a pod on it or an object that is named like one.
func (c *Collector) otherNode(g group, o *object) string {
	resource, _, _ := strings.Cut(g.resource, "/")
	isNode := g.apiGroup == "" && resource == "nodes" && o.name != ""
	if g.path == "" && o.name != o.node && (isNode || c.isNode(o.name)) {
		return o.name
	}
	if selector, err := fields.ParseSelector(o.selector); err == nil {
		for _, f := range selector.Requirements() {
			if f.Operator != selection.NotEquals && f.Value != o.node && c.isNode(f.Value) {
				return f.Value
			}
		}
	}
	if !o.isPod {
		return ""
	}
	return cmp.Or(c.node.NodeOf(o.namespace, o.name), c.located[PodOnNode{Namespace: o.namespace, Name: o.name}])
}

func (e *evidence) outlier(o *object, other string, ofOwn int) Outlier {
	t := e.notOwn[*o]
	found := Outlier{
		Request: words(e.group), Namespace: o.namespace, Name: o.name, FieldSelector: o.selector, Node: o.node, OtherNode: other,
		Count: t.Requests(), OwnNode: ofOwn, text: e.describe(o) + " from " + o.node,
	}
	found.First, found.Last = t.utc()
	return found
}

func (s *Suggestion) sortOutliers() {
	slices.SortFunc(s.Outliers, func(a, b Outlier) int {
		return cmp.Or(strings.Compare(a.Request, b.Request), cmp.Compare(a.Count, b.Count), strings.Compare(a.text, b.text))
	})
	for len(s.Outliers) > maxOutliers {
		last := len(s.Outliers) - 1
		s.MoreOutliers += s.Outliers[last].Count
		s.Outliers = s.Outliers[:last]
	}
}
