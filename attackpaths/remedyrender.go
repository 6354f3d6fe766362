package attackpaths

import (
	"slices"
	"strings"

	psa "k8s.io/pod-security-admission/api"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

const (
	claimKind      = "PersistentVolumeClaim"
	volumeKind     = "PersistentVolume"
	warningOfMany  = "So many rights give the step that other changes may take fewer."
	warningOfClaim = "Pods that mount the claim keep it until they are gone, and lose their data."
)

// render makes changes to the cluster's objects, object by object.
func (o *objects) render(changes []changeKey) *verdict.Remedy {
	r := &verdict.Remedy{}
	rules, subjects := o.rulesWithout(changes), takenSubjects(changes)
	var done []verdict.Object
	for _, c := range changes {
		if slices.Contains(done, c.object) {
			continue
		}
		done = append(done, c.object)
		switch c.kind {
		case removeRule, takeRight:
			role, _ := o.roleOf(rbac.Ref(c.object))
			r.Changes = append(r.Changes, withRules(&o.roles[role], rules[role])...)
		case takeSubject:
			r.Changes = append(r.Changes, withoutSubjects(&o.bindings[o.bindingIndex()[c.object]], subjects[c.object])...)
		case setLevel:
			r.Changes = append(r.Changes, labelled(c.object, psa.EnforceLevelLabel, string(c.level)))
		case removeObject:
			r.Changes = append(r.Changes, deletion("v1", c.object))
			if c.object.Kind == claimKind {
				r.Warning = warningOfClaim
			}
		default:
			of := slices.DeleteFunc(slices.Clone(changes), func(o changeKey) bool { return o.object != c.object })
			changes, warning := o.renderTemplates(of)
			r.Changes = append(r.Changes, changes...)
			r.Warning = strings.TrimSpace(r.Warning + " " + warning)
		}
	}
	r.Changes = perObject(r.Changes)
	r.Disrupts = disruption(r.Changes)
	return r
}

func (g *Graph) render(p *plan) *verdict.Remedy {
	r := g.world.objects.render(p.changes)
	r.OtherRights, g.world.made[r] = p.lost, p.changes
	return r
}

// perObject moves the changes of fields of one object to the first of them, and makes each label once.
func perObject(changes []verdict.Change) []verdict.Change {
	var all []verdict.Change
	for i := range changes {
		c := &changes[i]
		after, known := len(all), false
		for j := range all {
			if o := &all[j]; c.Path != "" && o.Path != "" && o.Object == c.Object {
				after = j + 1
				known = known || c.Op == verdict.Add && c.Object.Kind == Node && o.Path == c.Path
			}
		}
		if !known {
			all = slices.Insert(all, after, *c)
		}
	}
	return all
}

func isDeletion(c *verdict.Change) bool { return c.Path == "" && c.Op == verdict.Remove }

// disruption says what changes delete, start again, or take from Kubernetes; empty if they do not.
func disruption(changes []verdict.Change) string {
	var all []string
	for _, part := range [...]struct {
		text string
		is   func(*verdict.Change) bool
	}{
		{"This deletes ", isDeletion},
		{"This starts the pods again of ", func(c *verdict.Change) bool {
			return c.APIVersion == "apps/v1" && c.Object.Kind != "ReplicaSet" && !isDeletion(c)
		}},
		{"Kubernetes makes this itself, and components that rely on it stop working: ", func(c *verdict.Change) bool {
			return c.APIVersion == rbacAPI &&
				(strings.HasPrefix(c.Object.Name, "system:") || strings.HasSuffix(c.Path, escaped(keepChanged)))
		}},
	} {
		var objects []string
		for i := range changes {
			if text := changes[i].Object.String(); part.is(&changes[i]) && !slices.Contains(objects, text) {
				objects = append(objects, text)
			}
		}
		if len(objects) > 0 {
			all = append(all, part.text+strings.Join(objects, ", ")+".")
		}
	}
	return strings.Join(all, " ")
}

// renderTemplates changes the templates of pods, and deletes what they do not replace.
func (o *objects) renderTemplates(changes []changeKey) (all []verdict.Change, warning string) {
	patched := map[verdict.Object]bool{}
	for _, p := range o.pods {
		t, concerned := templateOf(p), false
		for _, c := range changes {
			if t.object == c.object || templateObject(p) == c.object {
				concerned = t.change(o, p, c) || concerned
			}
		}
		if !concerned {
			continue
		}
		if warning == "" {
			warning = t.warning(changes[0])
		}
		if !patched[t.object] {
			patched[t.object], all = len(t.changes) > 0, append(all, t.changes...)
		}
		for _, c := range t.replaced(p) {
			if !slices.ContainsFunc(all, func(o verdict.Change) bool { return o.Path == "" && o.Object == c.Object }) {
				all = append(all, c)
			}
		}
	}
	return all, warning
}

// change makes a change of the template that a pod is made from, and reports whether the pod is concerned.
func (t *template) change(o *objects, p *inventory.Pod, c changeKey) (concerned bool) {
	switch c.kind {
	case removePods:
	case otherAccount:
		if t.spec != "" {
			t.do(verdict.Add, t.spec+"/serviceAccountName", defaultAccount)
		}
	case keepPods:
		t.keep(p, o.alike()[alikeOf(p)])
	case placePods:
		t.placeIn(p, c.placing)
	default:
		for i := range p.Fields {
			if f := &p.Fields[i]; c.takes(f) || c.kind == takeHost && f.Gives == inventory.GivesClaim && p.ClaimGives(f.Secret, o.claimed) {
				t.take(f)
				concerned = true
			}
		}
		return concerned
	}
	return true
}

// takes reports whether a change takes a field from pods, whatever is behind claims.
func (k changeKey) takes(f *inventory.Field) bool {
	switch {
	case k.kind == takeHost:
		return f.Gives == inventory.GivesHost
	case f.Secret != k.secret:
		return false
	case k.secret == "":
		return f.Gives == inventory.GivesToken
	}
	return f.Gives == inventory.GivesSecret || k.kind == takeMention && f.Gives == inventory.GivesNodeSecret
}
