package evaluate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Write is a write as far as it is known.
type Write struct {
	noderestriction.Request
	Open noderestriction.Open
}

// Remedy returns what to change so that a request that is refused is allowed by the authorizers,
// whose result is given, and then, if it is a write, by NodeRestriction. It is the zero Remedy
// for a request that is allowed. It costs many times as much as an answer.
func (e *Evaluator) Remedy(ctx context.Context, result chain.Result, req *access.Request, write *Write) verdict.Remedy {
	if result.Decision == verdict.Deny {
		return verdict.Remedy{
			None: fmt.Sprintf("authorizer %s denies the request, and only its own policy can change that", result.DecidedBy),
		}
	}
	var attributes []verdict.Change // that NodeRestriction requires
	for range maxRounds {
		asked, authorized := *req, result.Decision == verdict.Allow
		if len(attributes) > 0 {
			Apply(&asked, attributes)
			decision, _, _ := e.Chain.Decide(ctx, &asked)
			authorized = decision == verdict.Allow
		}
		var first verdict.Remedy
		if !authorized {
			if err := e.readForRemedy(&asked); err != nil {
				return verdict.Remedy{None: err.Error()}
			}
			first = e.Node.Remedy(&asked)
		}
		if first.None != "" || write == nil {
			return e.possible(first)
		}
		first.Changes = slices.Concat(attributes, first.Changes)
		changed, renamed := write.with(first.Changes)
		second := e.restriction(first.Changes).Remedy(ctx, &changed.Request, changed.Open)
		if second.None != "" {
			return second
		}
		more := slices.DeleteFunc(slices.Clone(second.Changes), func(c verdict.Change) bool { return !ofAttribute(c) })
		if len(more) == 0 {
			return e.possible(verdict.Remedy{
				Changes: slices.Concat(first.Changes, renamed, second.Changes), Warning: joined(first.Warning, second.Warning),
			})
		}
		attributes = append(attributes, more...) // the authorizers decide about another request now
	}
	return verdict.Remedy{None: "each change that one authorizer requires is refused by another one"}
}

// maxRounds bounds how often NodeRestriction requires another request: by its name and namespace.
const maxRounds = 3

func ofAttribute(c verdict.Change) bool {
	return c.Of == verdict.OfRequest && strings.HasPrefix(c.Path, verdict.RequestPath+"/")
}

func joined(sentences ...string) string {
	return strings.Join(slices.DeleteFunc(sentences, func(s string) bool { return s == "" }), "; ")
}

// possible returns the remedy, unless it needs RBAC and the configuration has no RBAC.
func (e *Evaluator) possible(r verdict.Remedy) verdict.Remedy {
	byRBAC := func(c verdict.Change) bool {
		return c.Of == verdict.OfObject && c.APIVersion == rbacv1.SchemeGroupVersion.String()
	}
	if slices.ContainsFunc(r.Changes, byRBAC) && !e.mayAskRBAC {
		return verdict.Remedy{None: fmt.Sprintf("only a role could allow this, and RBAC is not among the authorizers: %s",
			strings.Join(e.Chain.Names(), ", "))}
	}
	return r
}

// restriction returns NodeRestriction with the feature gates that changes set.
func (e *Evaluator) restriction(changes []verdict.Change) *noderestriction.Restriction {
	features := e.Features
	for _, c := range changes {
		if c.Of != verdict.OfFeatureGate {
			continue
		}
		with, err := features.With(kubeversion.Gate(c.Object.Name), string(c.Value) == "true")
		if err == nil {
			features = with
		}
	}
	return noderestriction.New(&restrictionState{e.State, e.ages}, e.access, features)
}

// with returns the write after changes of the request. An API server requires that the object has
// the name of the request, so the changes of the object's name follow.
func (w *Write) with(of []verdict.Change) (changed *Write, changes []verdict.Change) {
	changed = &Write{w.Request, w.Open}
	var req access.Request
	req.Groups, req.Namespace, req.Name = w.Groups, w.Namespace, w.Name
	Apply(&req, of)
	changed.Groups, changed.Namespace, changed.Name = req.Groups, req.Namespace, req.Name
	if w.Object == nil || req.Name == w.Name && req.Namespace == w.Namespace {
		return changed, nil
	}
	object := w.Object.DeepCopyObject()
	o, err := meta.Accessor(object)
	if err != nil {
		return changed, nil
	}
	replace := func(field, from, to string, set func(string)) {
		if from == "" || from == to {
			return
		}
		set(to)
		value, _ := json.Marshal(to) // a string
		changes = append(changes, verdict.Change{
			Of: verdict.OfRequest, Op: verdict.Replace, Path: "/metadata/" + field, Value: value,
			Object: verdict.Object{Kind: object.GetObjectKind().GroupVersionKind().Kind, Namespace: w.Namespace, Name: w.Name},
		})
	}
	replace("name", o.GetName(), req.Name, o.SetName)
	replace("namespace", o.GetNamespace(), req.Namespace, o.SetNamespace)
	changed.Object = object
	return changed, changes
}

// Apply makes the changes of a request's attributes. It ignores other changes.
func Apply(req *access.Request, changes []verdict.Change) {
	for _, c := range changes {
		if !ofAttribute(c) {
			continue
		}
		var value string
		if c.Op != verdict.Remove && json.Unmarshal(c.Value, &value) != nil {
			continue
		}
		switch strings.TrimPrefix(c.Path, verdict.RequestPath+"/") {
		case "namespace":
			req.Namespace = value
		case "name":
			req.Name = value
		case "groups/-":
			req.Groups = append(slices.Clip(req.Groups), value)
		case "fieldSelector":
			if selector, err := fields.ParseSelector(value); err == nil {
				req.FieldSelector = selector.Requirements()
			}
		}
	}
}
