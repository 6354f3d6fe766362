package paths

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/doctor"
	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

func newDiffResult(s *sides, compared attackpaths.Comparison) *DiffResult {
	r := &DiffResult{
		Before: s.before, After: s.after, Changes: s.changes.list(),
		Widened: []diffRow{}, Narrowed: []diffRow{}, Notes: s.notes, Missing: s.missing, custom: s.custom,
	}
	for i := range compared.Widened {
		r.Widened = append(r.Widened, s.row(&compared.Widened[i], "widened"))
	}
	for i := range compared.Expected {
		r.Expected = append(r.Expected, s.row(&compared.Expected[i], "widened"))
	}
	for i := range compared.Narrowed {
		r.Narrowed = append(r.Narrowed, s.row(&compared.Narrowed[i], "narrowed"))
	}
	return r
}

func (r *DiffResult) settle(starts []attackpaths.Start, failOn string) {
	r.FailOn = failOn
	for i := range r.Widened {
		if r.Widened[i].fails(failOn) {
			r.Failing++
		}
	}
	r.Totals = newDiffTotals(starts, r.Widened, r.Narrowed)
	switch {
	case len(r.Widened) > 0:
		r.Verdict = DiffWidened
	case len(r.Missing) > 0:
		r.Verdict = DiffUndecided
	default:
		r.Verdict = DiffNotWidened
	}
}

func (r *DiffResult) status() int {
	switch {
	case r.Failing > 0:
		return command.StatusDenied
	case len(r.Missing) > 0:
		return command.StatusUndecided
	}
	return command.StatusAllowed
}

// The values of --fail-on.
const (
	failOnPossible     = "possible"
	failOnCertain      = "certain"
	failOnClusterAdmin = "cluster-admin"
	failOnNode         = "node"
)

// DiffFailOns are the values of --fail-on.
func DiffFailOns() []string {
	return []string{failOnPossible, failOnCertain, failOnClusterAdmin, failOnNode}
}

func (r *diffRow) fails(on string) bool {
	switch on {
	case failOnCertain:
		return r.After == attackpaths.Certain
	case failOnClusterAdmin:
		return r.Kind == attackpaths.ClusterAdmin
	case failOnNode:
		return r.Kind == attackpaths.ClusterAdmin || r.Kind == attackpaths.Node
	}
	return true
}

func (s *sides) row(d *attackpaths.Difference, direction string) diffRow {
	row := diffRow{
		Kind: d.Kind, Before: d.Before, After: d.After, StartKind: d.Starts[0].Kind, StartCount: len(d.Starts), Starts: d.Starts,
		ReachedCount: len(d.Reached), Reached: d.Reached, Path: d.Path, Reason: d.Expected, Places: s.changes.places(d),
	}
	for _, held := range d.Except {
		row.Unchanged += len(held)
	}
	hash := sha256.New()
	fmt.Fprintln(hash, direction, row.Kind, row.Before, row.After)
	for _, list := range [...][]attackpaths.Holding{row.Starts, row.Reached} {
		fmt.Fprintln(hash, len(list))
		for _, h := range list {
			fmt.Fprintf(hash, "%q %q %q\n", h.Kind, h.Namespace, h.Name)
		}
	}
	row.ID = direction + "-" + hex.EncodeToString(hash.Sum(nil))[:12]
	return row
}

func newDiffTotals(starts []attackpaths.Start, widened, narrowed []diffRow) diffTotals {
	var t diffTotals
	for _, s := range starts {
		of := &t.ServiceAccounts
		if s.Kind == attackpaths.Node {
			of = &t.Nodes
		}
		if s.InBefore {
			of.Before++
		}
		if s.InAfter {
			of.After++
		}
	}
	t.Nodes.Widened, t.Nodes.GainClusterAdmin = countStarts(widened, isKind(attackpaths.Node))
	t.Nodes.Narrowed, t.Nodes.LoseClusterAdmin = countStarts(narrowed, isKind(attackpaths.Node))
	t.ServiceAccounts.Widened, t.ServiceAccounts.GainClusterAdmin = countStarts(widened, isKind(attackpaths.ServiceAccount))
	t.ServiceAccounts.Narrowed, t.ServiceAccounts.LoseClusterAdmin = countStarts(narrowed, isKind(attackpaths.ServiceAccount))
	t.Workloads.Widened, t.Workloads.GainClusterAdmin = countStarts(widened, (*diffRow).ofWorkload)
	return t
}

func isKind(kind string) func(*diffRow) bool {
	return func(r *diffRow) bool { return r.StartKind == kind }
}

func (r *diffRow) ofWorkload() bool {
	return r.StartKind != attackpaths.Node && r.StartKind != attackpaths.ServiceAccount
}

func countStarts(rows []diffRow, counts func(*diffRow) bool) (all, admins int) {
	starts := map[attackpaths.Holding]bool{}
	for i := range rows {
		if !counts(&rows[i]) {
			continue
		}
		for _, s := range rows[i].Starts {
			starts[s] = starts[s] || rows[i].Kind == attackpaths.ClusterAdmin
		}
	}
	for _, admin := range starts {
		if admin {
			admins++
		}
	}
	return len(starts), admins
}

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

// withoutKnown moves the findings that a baseline has, and writes one.
func (r *DiffResult) withoutKnown(a *command.App, known *command.KnownFlags) error {
	r.showKnown, r.report = known.Show, &doctor.Report{Summary: doctor.Summary{Checks: 1}}
	check := doctor.CheckResult{ID: doctor.CheckID("diff"), Status: doctor.Made, Findings: len(r.Widened)}
	if len(r.Missing) > 0 {
		check.Status, r.report.Summary.Undetermined = doctor.Undetermined, 1
		for _, m := range r.Missing {
			check.Missing = append(check.Missing, doctor.Missing{Resource: m.Resource, Reason: m.Reason})
		}
	}
	r.report.Checks = []doctor.CheckResult{check}
	rows := map[finding.Finding][]diffRow{}
	for _, row := range r.Widened {
		f := row.finding()
		rows[f] = append(rows[f], row)
		r.report.Findings = append(r.report.Findings, f)
	}
	if err := known.Apply(a, r.report, a.Now()); err != nil {
		return err
	}
	r.Widened, r.Baseline = []diffRow{}, r.report.Baseline
	for _, f := range r.report.Findings {
		r.Widened, rows[f] = append(r.Widened, rows[f][0]), rows[f][1:]
	}
	for _, s := range r.report.Suppressed {
		row := rows[s.Finding][0]
		row.Reason, rows[s.Finding] = s.Reason, rows[s.Finding][1:]
		r.Suppressed = append(r.Suppressed, row)
	}
	return nil
}

// finding is a row as baselines have it. The id in its message stands for all starts and holdings of the row.
func (r *diffRow) finding() finding.Finding {
	f := finding.Finding{
		Code: "Widened", Severity: finding.Warning, Place: finding.Place{Object: holdingList(r.Starts, r.StartKind, false)},
		Subject: r.reachedText(false), Message: r.Before.String() + " → " + r.After.String() + " (" + r.ID + ")",
	}
	if len(r.Path) > 0 {
		f.Code = finding.Code(r.Path[len(r.Path)-1].Technique)
	}
	if r.After == attackpaths.Certain {
		f.Severity = finding.Error
	}
	return f
}
