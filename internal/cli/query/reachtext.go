package query

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/resources"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Maximum number of rows of each group in the table; wide shows all.
const (
	reachRows      = 10
	namespaceRows  = 15
	clusterWideRow = "(cluster)"
)

func (r ReachResult) Text(p *render.Page) {
	p.Section("Node %s", r.Node)
	fields := []render.Field{
		{Name: "state", Value: r.State.Origin},
		{Name: "rules of", Value: "Kubernetes " + r.State.KubernetesVersion},
	}
	switch {
	case r.AttackPaths != nil:
		fields = append(fields, render.Field{Name: "in total", Value: r.AttackPaths.text(r.Node)})
	case r.inParts && !r.narrowed:
		fields = append(fields, render.Field{Name: "in total", Value: render.Faint.In("use --in-total, which reads the whole cluster")})
	case r.isLarge && !r.narrowed:
		fields = append(fields, render.Field{Name: "in total", Value: render.Faint.In("use --in-total, which takes some seconds")})
	}
	p.Fields(fields...)
	if r.Quarantine != "" {
		p.Line("  %s", render.Unsure.In(quarantinedText(r.Quarantine)))
	}
	r.totalsText(p)
	for _, group := range r.byKind() {
		group.text(p)
	}
	r.standingText(p)
	r.rbacText(p)
	if len(r.Missing) > 0 {
		p.Section("%s", render.Unsure.In("Incomplete"))
	}
	command.MissingText(p, r.Missing)
	if r.AttackPaths == nil {
		return
	}
	if len(r.AttackPaths.Missing) > 0 {
		p.Section("%s", render.Unsure.In("Incomplete in total"))
	}
	command.MissingText(p, r.AttackPaths.Missing)
}

// totalsText writes a matrix of namespaces and kinds.
func (r ReachResult) totalsText(p *render.Page) {
	p.Section("Reaches %s", render.Count(len(r.Objects), "object"))
	if len(r.Objects) == 0 {
		where := ""
		if r.narrowed {
			where = ", or nothing that matches --kind and -n"
		}
		if len(r.Missing) > 0 {
			where += ", as far as known from " + r.State.Origin
		}
		p.Line("  nothing is bound or attached to the node%s", where)
		return
	}
	kinds, namespaces := r.axes()
	counts, sums := map[string]map[string]int{}, map[string]int{}
	for _, t := range r.Totals {
		if counts[t.Namespace] == nil {
			counts[t.Namespace] = map[string]int{}
		}
		counts[t.Namespace][t.Kind] = t.Objects
		sums[t.Kind] += t.Objects
	}
	headers := append([]string{"NAMESPACE"}, kinds...)
	rows := [][]string{totalsRow("all", kinds, sums)}
	shown := render.Shown(p, namespaceRows, namespaces)
	for _, namespace := range shown {
		rows = append(rows, totalsRow(cmp.Or(namespace, clusterWideRow), kinds, counts[namespace]))
	}
	p.Table(2, headers, rows)
	more(p, len(namespaces)-len(shown), "namespace")
}

// axes returns the kinds, in the order of the objects, and the namespaces, those with the most
// objects first.
func (r ReachResult) axes() (kinds, namespaces []string) {
	objects := map[string]int{}
	for _, o := range r.Objects {
		if !slices.Contains(kinds, o.Kind) {
			kinds = append(kinds, o.Kind)
		}
		objects[o.Namespace]++
	}
	for namespace := range objects {
		namespaces = append(namespaces, namespace)
	}
	slices.SortFunc(namespaces, func(a, b string) int {
		return cmp.Or(objects[b]-objects[a], strings.Compare(a, b))
	})
	return kinds, namespaces
}

func totalsRow(name string, kinds []string, counts map[string]int) []string {
	row := []string{name}
	for _, kind := range kinds {
		if n := counts[kind]; n > 0 {
			row = append(row, render.Thousands(n))
		} else {
			row = append(row, render.Faint.In("-"))
		}
	}
	return row
}

// kindGroup are the objects of one kind.
type kindGroup []reachedObject

func (r ReachResult) byKind() []kindGroup {
	var groups []kindGroup
	for _, o := range r.Objects {
		if last := len(groups) - 1; last >= 0 && groups[last][0].Kind == o.Kind {
			groups[last] = append(groups[last], o)
		} else {
			groups = append(groups, kindGroup{o})
		}
	}
	return groups
}

func (g kindGroup) text(p *render.Page) {
	may := make([]string, len(g[0].May))
	for i, m := range g[0].May {
		may[i] = m.String()
	}
	p.Section("%s: may %s", render.Count(len(g), g[0].Kind), strings.Join(may, "; "))
	headers := []string{"NAME", "THROUGH"}
	if g[0].hasAudiences() {
		headers = []string{"NAME", "TOKEN AUDIENCES", "THROUGH"}
	}
	left := render.TableOf(p, 2, reachRows, headers, g, func(o reachedObject) []string { return o.row(p.Wide()) })
	more(p, left, "")
}

// hasAudiences reports whether tokens can be requested for the object.
func (o reachedObject) hasAudiences() bool { return o.Kind == graph.ServiceAccount.String() }

func (o reachedObject) row(wide bool) []string {
	row := []string{render.ObjectName(o.Object)}
	if o.hasAudiences() {
		row = append(row, o.audiencesText())
	}
	return append(row, o.through(wide))
}

func (o reachedObject) audiencesText() string {
	switch {
	case o.AnyAudience:
		return "any"
	case len(o.Audiences) == 0:
		return "none"
	}
	words := make([]string, len(o.Audiences))
	for i, audience := range o.Audiences {
		if words[i] = audience; audience == "" {
			words[i] = "(API server)"
		}
	}
	return strings.Join(words, ", ")
}

// through returns the shortest path without its ends, which are the object and the node. Wide
// output has all paths.
func (o reachedObject) through(wide bool) string {
	if len(o.Paths) == 0 {
		return ""
	}
	if wide {
		all := make([]string, len(o.Paths))
		for i, path := range o.Paths {
			all[i] = between(path)
		}
		return strings.Join(all, "; ")
	}
	text := between(o.Paths[0])
	if n := len(o.Paths) - 1; n > 0 {
		text += fmt.Sprintf(" and %s", render.Count(n, "other path"))
	}
	return text
}

func between(path verdict.Path) string {
	if len(path) == 1 {
		return path[0].Field
	}
	steps := make([]string, 0, len(path))
	for _, e := range path[:len(path)-1] {
		steps = append(steps, e.To.String())
	}
	steps[0] += render.Faint.In(" (" + path[0].Field + ")")
	return strings.Join(steps, " ← ")
}

func (r ReachResult) standingText(p *render.Page) {
	if len(r.Standing) == 0 {
		return
	}
	p.Section("Independent of its pods")
	var rows [][]string
	for _, g := range r.Standing {
		rows = append(rows, []string{strings.Join(g.Verbs, ","), grantTarget(g.Grant), render.Faint.In(g.condition(p.Wide()))})
	}
	p.Table(2, []string{"VERBS", "RESOURCE", "CONDITION"}, rows)
}

// condition returns the rule of a grant, and whether NodeRestriction has conditions. With all
// it returns the conditions too.
func (g standingGrant) condition(all bool) string {
	rule := g.Rule
	if g.OwnName {
		rule += ", its own only"
	}
	switch {
	case len(g.Conditions) == 0:
		return rule
	case !all:
		return rule + ", if it passes " + nameRestriction
	}
	return rule + ", if " + nameRestriction + " finds: " + strings.Join(requirements(g.Conditions), "; ")
}

// grantTarget returns the target as text: "nodes/status", "leases.coordination.k8s.io
// worker-1".
func grantTarget(g nodeauthz.Grant) string {
	target := resources.Resource{Group: g.Group, Name: g.Resource}.String()
	if g.Subresource != "" {
		target += ", subresource " + g.Subresource
	}
	if g.Name != "" {
		target += " " + g.Name
	}
	return target
}

func (r ReachResult) rbacText(p *render.Page) {
	switch {
	case r.RBAC == nil:
		p.Section("RBAC")
		p.Line("  the state has no roles and bindings")
		return
	case len(r.RBAC) == 0 && r.narrowed:
		return
	case len(r.RBAC) == 0:
		p.Section("RBAC adds nothing")
		return
	}
	p.Section("RBAC adds %s", render.Count(len(r.RBAC), "rule"))
	left := render.TableOf(p, 2, reachRows, []string{"NAMESPACE", "VERBS", "RESOURCE", "GRANTED BY"}, r.RBAC, func(g rbacGrant) []string {
		return []string{
			cmp.Or(g.Namespace, clusterWideRow), strings.Join(g.Rule.Verbs, ","), ruleTargets(g),
			render.Faint.In(fmt.Sprintf("%s to %s", g.Binding, g.Subject)),
		}
	})
	more(p, left, "")
	if slices.ContainsFunc(r.RBAC, rbacGrant.writes) {
		p.Line("  what these rules let the node write has to pass %s too%s: ask can-i", nameRestriction, r.ownNameText())
	}
}

// ownNameText names the resources of RBAC rules of which the node may write only objects with
// its own name.
func (r ReachResult) ownNameText() string {
	var names []string
	for _, g := range r.RBAC {
		for _, name := range g.OwnName {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return ""
	}
	return ", of " + render.Join(names, "and") + " only its own"
}

func ruleTargets(g rbacGrant) string {
	var all []string
	for _, group := range g.Rule.APIGroups {
		for _, name := range g.Rule.Resources {
			all = append(all, resources.Resource{Group: group, Name: name}.String())
		}
	}
	all = append(all, g.Rule.NonResourceURLs...)
	text := strings.Join(all, ",")
	if len(g.Rule.ResourceNames) > 0 {
		text += " " + strings.Join(g.Rule.ResourceNames, ",")
	}
	return text
}

// more writes how many rows the table omits.
func more(p *render.Page, n int, noun string) {
	if n <= 0 {
		return
	}
	what := render.Thousands(n) + " more"
	if noun != "" {
		what = "another " + render.Count(n, noun)
		if n == 1 {
			what = "another " + noun
		}
	}
	p.Line("  … and %s %s", what, render.Faint.In("(-o wide or -o json shows all; --kind and -n narrow)"))
}
