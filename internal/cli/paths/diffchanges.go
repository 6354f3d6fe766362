package paths

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// diffChanges are the objects that differ, as far as they are known one by one.
type diffChanges struct {
	applied []source.Applied
	index   map[verdict.Object]int
	// state has the places of the objects of --to.
	state *source.State
}

// of is the change of an object: its own, or the change of the object that it is removed with.
func (c *diffChanges) of(h attackpaths.Holding) *source.Applied {
	if i, ok := c.index[h]; ok {
		return &c.applied[i]
	}
	if i, ok := c.index[verdict.Object{Kind: attackpaths.Namespace, Name: h.Namespace}]; ok && h.Namespace != "" {
		if a := &c.applied[i]; a.Action == source.Removed {
			return a
		}
	}
	if h.Kind == "Job" {
		if at := strings.LastIndex(h.Name, "-"); at > 0 {
			if i, ok := c.index[verdict.Object{Kind: "CronJob", Namespace: h.Namespace, Name: h.Name[:at]}]; ok {
				return &c.applied[i]
			}
		}
	}
	return nil
}

func (c *diffChanges) list() []diffChange {
	var all []diffChange
	for _, a := range c.applied {
		change := diffChange{
			Action: a.Action, File: a.File, Line: a.Line, Because: strings.TrimPrefix(a.Because, ", "), Object: changedObject{
				Kind: a.Kind, Group: a.Group, Namespace: a.Namespace, Name: a.Name,
			},
		}
		if a.Objects > 1 {
			change.Objects = a.Objects
		}
		all = append(all, change)
	}
	return all
}

// admissionKinds decide about requests without being a part of a path.
var admissionKinds = []string{
	"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration",
}

// places are where the objects are that steps of a path need.
func (c *diffChanges) places(d *attackpaths.Difference) []diffPlace {
	var all []diffPlace
	add := func(p diffPlace) {
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	for _, u := range d.Uses {
		if a := c.of(u.Object); a != nil {
			add(placeOf(u.Step, a))
		} else if c.state != nil {
			p := diffPlace{Step: u.Step, Object: changedObject{Kind: u.Object.Kind, Namespace: u.Object.Namespace, Name: u.Object.Name}}
			p.File, p.Line = c.state.Place(u.Object)
			add(p)
		}
	}
	if len(all) > 0 {
		return all
	}
	for i := range c.applied {
		if a := &c.applied[i]; slices.Contains(admissionKinds, a.Kind) {
			add(placeOf(len(d.Path), a))
		}
	}
	return all
}

func placeOf(step int, a *source.Applied) diffPlace {
	return diffPlace{
		Step: step, Action: a.Action, File: a.File, Line: a.Line,
		Object: changedObject{Kind: a.Kind, Group: a.Group, Namespace: a.Namespace, Name: a.Name},
	}
}

// difference says which objects differ between two states.
type difference struct {
	before, after  *source.State
	bindings       [2]map[rbac.Ref]rbac.BoundRole
	roles          [2]map[rbac.Ref]rbac.RoleRules
	accounts       [2]map[inventory.Name]bool
	secrets        [2]map[inventory.Name]bool
	namespaceLabel [2]map[string]map[string]string
}

func newDifference(before, after *source.State) *difference {
	d := &difference{before: before, after: after}
	for i, s := range [...]*source.State{before, after} {
		d.bindings[i], d.roles[i] = map[rbac.Ref]rbac.BoundRole{}, map[rbac.Ref]rbac.RoleRules{}
		d.accounts[i], d.secrets[i] = map[inventory.Name]bool{}, map[inventory.Name]bool{}
		d.namespaceLabel[i] = map[string]map[string]string{}
		for _, b := range s.RBAC.Bindings() {
			d.bindings[i][b.Binding] = b
		}
		for _, r := range s.RBAC.Roles() {
			d.roles[i][r.Role] = r
		}
		for _, a := range s.Inventory.ServiceAccounts() {
			d.accounts[i][a] = true
		}
		for _, s := range s.Inventory.Secrets() {
			d.secrets[i][s.Name] = true
		}
		for _, n := range s.Inventory.Namespaces() {
			d.namespaceLabel[i][n.Name] = n.Labels
		}
	}
	return d
}

// has reports whether an object differs. Pods do: they come and go.
func (d *difference) has(h attackpaths.Holding) bool {
	ref, name := rbac.Ref{Kind: h.Kind, Namespace: h.Namespace, Name: h.Name}, inventory.Name{Namespace: h.Namespace, Name: h.Name}
	switch h.Kind {
	case "ClusterRoleBinding", "RoleBinding":
		return !reflect.DeepEqual(d.bindings[0][ref], d.bindings[1][ref])
	case "ClusterRole", "Role":
		return !reflect.DeepEqual(d.roles[0][ref].Rules, d.roles[1][ref].Rules)
	case attackpaths.ServiceAccount:
		return d.accounts[0][name] != d.accounts[1][name]
	case attackpaths.Secret:
		return d.secrets[0][name] != d.secrets[1][name]
	case attackpaths.Namespace:
		return !maps.Equal(d.namespaceLabel[0][h.Name], d.namespaceLabel[1][h.Name])
	case attackpaths.Node:
		a, inBefore := d.before.Inventory.Node(h.Name)
		b, inAfter := d.after.Inventory.Node(h.Name)
		return inBefore != inAfter || !maps.Equal(a.Labels, b.Labels) || !slices.EqualFunc(a.Taints, b.Taints, sameTaint)
	}
	return true
}

func sameTaint(a, b corev1.Taint) bool { return a.MatchTaint(&b) && a.Value == b.Value }
