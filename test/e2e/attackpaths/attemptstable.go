package attackpaths

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// Holdings that a result lacks are also attempted by the table of all rights: each identity that is held uses each right
// that RBAC gives it, with each option and without effect. No answer may have the content of a secret or the token of an
// account that the result does not list.

// perKind is how many objects of a kind in a namespace a right is used for, beside those that its rule names.
const perKind = 2

// use is a right that an identity uses for an object.
type use struct {
	who             *actor
	right           *served
	namespace, name string
}

// tryTable uses the rights. It returns what it got, and how many requests were not refused.
func (t *attempts) tryTable(ctx context.Context) (failures []error, answered int) {
	found, err := t.secretContents(ctx, func(h holding) bool {
		made := h.Kind == attackpaths.Secret && !t.known[secrets.at(h.Namespace, h.Name)] // by the executor
		return made || t.held[h]
	})
	if err != nil {
		return []error{err}, 0
	}
	uses, failures := t.uses(ctx)
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(16)
	for _, u := range uses {
		whole := t.wholeOf(ctx, u)
		for _, r := range u.right.requests(u.namespace, u.name, whole, true) {
			group.Go(func() error {
				a := r.send(ctx, u.who.client)
				err := found.found(a)
				mu.Lock()
				defer mu.Unlock()
				if !a.refused() {
					answered++
				}
				if err != nil {
					failures = append(failures, fmt.Errorf("as %s, by a right to %s: %w, and the result does not contain it",
						u.who.holding, u.right, err))
				}
				return nil
			})
		}
	}
	_ = group.Wait() // no function returns an error
	return failures, answered
}

// uses lists the rights that RBAC gives to the identities. A right that gives something has to be one of a technique that is
// attempted.
func (t *attempts) uses(ctx context.Context) (all []use, failures []error) {
	rows, err := t.serves(ctx)
	if err != nil {
		return nil, []error{err}
	}
	seen := map[use]bool{}
	add := func(u use) {
		if !seen[u] {
			seen[u] = true
			all = append(all, u)
		}
	}
	for _, a := range t.actors {
		for _, o := range t.objects(ctx, namespaces) {
			rules, err := t.rulesIn(ctx, a, o.name())
			if err != nil {
				continue // who is not authenticated may not ask
			}
			for i := range rows {
				row := &rows[i]
				for _, rule := range rules {
					if !coversRow(&rule, row) {
						continue
					}
					failures = append(failures, t.unattempted(row)...)
					namespace := o.name()
					if !row.namespaced {
						namespace = ""
					}
					for _, name := range t.namesFor(ctx, row, namespace, rule.ResourceNames) {
						add(use{a, row, namespace, name})
					}
				}
			}
		}
	}
	return all, failures
}

// rulesIn are the rights of an identity in a namespace, as the API server lists them.
func (t *attempts) rulesIn(ctx context.Context, a *actor, namespace string) ([]authorizationv1.ResourceRule, error) {
	var review authorizationv1.SelfSubjectRulesReview
	review.Spec.Namespace = namespace
	if err := t.ask(ctx, a, "selfsubjectrulesreviews", review).into(&review); err != nil {
		return nil, err
	}
	return review.Status.ResourceRules, nil
}

// coversRow reports whether a rule is about a verb on a resource.
func coversRow(rule *authorizationv1.ResourceRule, row *served) bool {
	has := func(list []string, names ...string) bool {
		return slices.ContainsFunc(list, func(x string) bool { return x == "*" || slices.Contains(names, x) })
	}
	resource, any := row.name, "*"
	if row.subresource != "" {
		resource, any = row.name+"/"+row.subresource, "*/"+row.subresource
	}
	return has(rule.Verbs, row.verb) && has(rule.APIGroups, row.group) && has(rule.Resources, resource, any)
}

// namesFor are the objects for which a right is used: those that the rule names, or else some that exist, and none.
func (t *attempts) namesFor(ctx context.Context, row *served, namespace string, named []string) []string {
	if len(named) > 0 && !slices.Contains(named, "*") {
		return slices.DeleteFunc(slices.Clone(named), func(n string) bool { return n == "" || strings.ContainsAny(n, "/:*") })
	}
	switch row.verb {
	case "watch": // takes a second; whoever may watch other kinds sees no more than by a list
		if row.resource != secrets {
			return nil
		}
		return []string{"none"}
	case "list", "create", "deletecollection":
		if row.subresource == "" {
			return []string{"none"}
		}
	}
	names := []string{"none"}
	for _, o := range t.objects(ctx, row.resource) {
		if o.namespace() == namespace && (len(names) <= perKind || row.resource == secrets) {
			names = append(names, o.name())
		}
	}
	return names
}

// wholeOf is the object that a right is used for; nil if it does not exist.
func (t *attempts) wholeOf(ctx context.Context, u use) map[string]any {
	i := slices.IndexFunc(t.objects(ctx, u.right.resource), func(o object) bool {
		return o.namespace() == u.namespace && o.name() == u.name
	})
	if i < 0 {
		return nil
	}
	return t.listed[u.right.resource][i].content
}

// ownEnd are techniques that no attempt is about, and why.
var ownEnd = map[attackpaths.Code]string{
	attackpaths.NodeIdentityConfig: "no part of this cluster reads mappings of identities",
	attackpaths.SignCertificate:    "the key of the authority is missing",
	attackpaths.StealPods:          "the scheduler decides, and labels stay on nodes",
}

// unattempted says which techniques a right gives that are neither attempted nor exempt.
func (t *attempts) unattempted(row *served) []error {
	var all []error
	for _, code := range row.right.Gives {
		if _, exempt := ownEnd[code]; !exempt && !t.about[code] {
			t.about[code] = true // once
			all = append(all, errors.New(string(code)+" is not attempted, and a right to "+row.String()+" may give it"))
		}
	}
	return all
}
