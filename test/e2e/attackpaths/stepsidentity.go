package attackpaths

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// tokenRequest asks for a token of the account.
func (e *executor) tokenRequest(ctx context.Context, s step) error {
	a := s.as
	if a == nil {
		return errNoActor
	}
	path := serviceAccounts.at(s.To.Namespace, s.To.Name, "token")
	asked := a.post(ctx, path, map[string]any{})
	if asked.status == http.StatusNotFound { // only bindings name the account
		if err := e.makeAccount(ctx, s); err != nil {
			return err
		}
		asked = a.post(ctx, path, map[string]any{})
	}
	var token authenticationv1.TokenRequest
	if err := asked.into(&token); err != nil {
		return err
	}
	if e.enforced > 0 {
		return e.ownTokens(ctx, a, s.To, token.Status.Token)
	}
	return e.ownToken(ctx, s.To, token.Status.Token)
}

// ownTokens adds the tokens of an account that NodeScopes let be used: one without a node, and one bound
// to each node.
func (e *executor) ownTokens(ctx context.Context, a *actor, h holding, unbound string) error {
	last := e.ownToken(ctx, h, unbound)
	owned := last == nil
	for _, o := range e.list(ctx, nodes) {
		var token authenticationv1.TokenRequest
		bound := map[string]any{"spec": map[string]any{
			"boundObjectRef": map[string]any{"kind": "Node", "apiVersion": "v1", "name": o.name(), "uid": o.metadata()["uid"]},
		}}
		if last = a.post(ctx, serviceAccounts.at(h.Namespace, h.Name, "token"), bound).into(&token); last == nil {
			last = e.ownToken(ctx, h, token.Status.Token)
		}
		owned = owned || last == nil
	}
	if owned {
		return nil
	}
	return last
}

// makeAccount makes the service account of a step; another path may have made it.
func (e *executor) makeAccount(ctx context.Context, s step) error {
	made, _ := first(e.acting(s), func(a *actor) answer { return a.post(ctx, serviceAccounts.in(s.To.Namespace), named(s.To.Name)) })
	if made.status == http.StatusConflict {
		return nil
	}
	return made.failure()
}

// masters asks whether the identity may do everything; the end of the path does it.
func (e *executor) masters(ctx context.Context, s step) error {
	a := s.as
	if a == nil {
		return errNoActor
	}
	if !mayEverything(ctx, a) {
		return fmt.Errorf("it may not do everything")
	}
	return nil
}

func readSecret(ctx context.Context, a *actor, h holding) answer {
	return readObject(ctx, a, secrets, h.Namespace, h.Name)
}

// readObject reads an object by any right that allows it: get, list or watch; a patch that changes
// nothing; a deletion that waits for dependents, as a dry run.
func readObject(ctx context.Context, a *actor, r resource, namespace, name string) answer {
	const named, deletes = "fieldSelector=metadata.name%3D", "?dryRun=All&propagationPolicy=Foreground"
	of, all := r.at(namespace, name), r.in(namespace)
	read := a.get(ctx, of)
	for _, try := range []func() answer{
		func() answer { return itemNamed(a.get(ctx, all), name) },
		func() answer { return itemNamed(a.get(ctx, all+"?"+named+name), name) },
		func() answer { return eventNamed(a.get(ctx, all+watching), name) },
		func() answer { return eventNamed(a.get(ctx, all+watching+"&"+named+name), name) },
		func() answer { return a.patch(ctx, dry(of), mergePatch, map[string]any{}) },
		func() answer { return a.delete(ctx, of+deletes, nil) },
		func() answer { return itemNamed(a.delete(ctx, dry(all), nil), name) },
	} {
		if !read.refused() {
			return read
		}
		read = try()
	}
	return read
}

// watching asks for the objects that are there.
const watching = "?watch=1&resourceVersion=0&timeoutSeconds=1"

// itemNamed takes one object from a list.
func itemNamed(a answer, name string) answer {
	var list struct{ Items []json.RawMessage }
	if !a.ok() || json.Unmarshal(a.body, &list) != nil {
		return a
	}
	return pickObject(a, list.Items, name)
}

// eventNamed takes one object from the events of a watch.
func eventNamed(a answer, name string) answer {
	if !a.ok() {
		return a
	}
	var items []json.RawMessage
	for line := range strings.Lines(string(a.body)) {
		var event struct{ Object json.RawMessage }
		if json.Unmarshal([]byte(line), &event) == nil {
			items = append(items, event.Object)
		}
	}
	return pickObject(a, items, name)
}

func pickObject(a answer, items []json.RawMessage, name string) answer {
	for _, item := range items {
		var o struct{ Metadata struct{ Name string } }
		if json.Unmarshal(item, &o) == nil && o.Metadata.Name == name {
			a.body = item
			return a
		}
	}
	a.status, a.body = http.StatusNotFound, nil
	return a
}

func (e *executor) secretRead(ctx context.Context, s step) error {
	a := s.as
	if a == nil {
		return errNoActor
	}
	if kind, _ := s.may(); kind == validatingWebhooks.name {
		return e.admissionReviews(ctx, s)
	}
	return e.keep(s.To, readSecret(ctx, a, s.To))
}

// serviceAccountTokenSecret uses the token in a secret, or creates a secret for an account and
// reads the token that a controller puts into it.
func (e *executor) serviceAccountTokenSecret(ctx context.Context, s step) error {
	if s.From.Kind == attackpaths.Secret {
		return e.ownToken(ctx, s.To, string(e.secrets[s.From]["token"]))
	}
	actors := e.acting(s)
	last := error(errNoActor)
	for _, name := range e.namesOf(ctx, actors, s.To.Namespace, "", "secrets") {
		secret := map[string]any{
			"type":     string(corev1.SecretTypeServiceAccountToken),
			"metadata": map[string]any{"name": name, "annotations": map[string]any{corev1.ServiceAccountNameKey: s.To.Name}},
		}
		h := holding{Kind: attackpaths.Secret, Namespace: s.To.Namespace, Name: name}
		e.forget(ctx, secrets.at(h.Namespace, name))
		created, _ := first(actors, func(a *actor) answer { return a.post(ctx, secrets.in(s.To.Namespace), secret) })
		if last = created.failure(); last != nil {
			continue
		}
		var read answer
		last = until(ctx, "a controller fills the secret", func(ctx context.Context) error {
			if read, _ = first(actors, func(a *actor) answer { return readSecret(ctx, a, h) }); read.refused() {
				return nil
			}
			var filled corev1.Secret
			if err := read.into(&filled); err != nil {
				return err
			}
			if len(filled.Data["token"]) == 0 {
				return fmt.Errorf("it has no token")
			}
			return nil
		})
		if last == nil && !read.refused() {
			var filled corev1.Secret
			if err := read.into(&filled); err != nil {
				return err
			}
			return e.ownNewToken(ctx, s.To, string(filled.Data["token"]))
		}
		if last == nil {
			last = read.failure()
		}
	}
	return last
}

// ownNewToken is ownToken for the token of a secret that was made just now. The API server compares the token with its own copy
// of the secret, which its watch may not have delivered yet.
func (e *executor) ownNewToken(ctx context.Context, h holding, token string) error {
	var owned error
	err := until(ctx, "the API server knows the token", func(ctx context.Context) error {
		owned = e.ownToken(ctx, h, token)
		if owned != nil && strings.Contains(owned.Error(), http.StatusText(http.StatusUnauthorized)) {
			return owned
		}
		return nil
	})
	if err != nil {
		return err
	}
	return owned
}

// forget removes an object that another path has made under a name that the rights prescribe: each path
// stands for itself.
func (e *executor) forget(ctx context.Context, path string) {
	if !e.known[path] {
		e.admin.delete(ctx, path, nil)
	}
}

// namesOf are the names that an attacker tries: its own, then those that its rights name, as
// the API server lists them for each identity.
func (e *executor) namesOf(ctx context.Context, actors []*actor, namespace, group, resource string) []string {
	names := []string{fmt.Sprint("made-", e.counter.Add(1))}
	if namespace == "" {
		namespace = "default"
	}
	for _, a := range actors {
		var review authorizationv1.SelfSubjectRulesReview
		review.Spec.Namespace = namespace
		if e.ask(ctx, a, "selfsubjectrulesreviews", review).into(&review) != nil {
			continue
		}
		for _, rule := range review.Status.ResourceRules {
			matches := func(list []string, value string) bool {
				return slices.Contains(list, value) || slices.Contains(list, "*")
			}
			if matches(rule.APIGroups, group) && (matches(rule.Resources, resource) || isAbout(rule.Resources, resource)) {
				names = append(names, rule.ResourceNames...)
			}
		}
	}
	slices.Sort(names[1:])
	return slices.DeleteFunc(slices.Compact(names), func(n string) bool {
		return n == "" || n == "*" || resource != "users" && strings.ContainsAny(n, "/:*") // no object has such a name
	})
}

// userNames are the names of users that an attacker impersonates together with groups.
func (e *executor) userNames(ctx context.Context, a *actor) []string {
	plain := e.namesOf(ctx, []*actor{a}, "", "", "users")
	constrained := e.namesOf(ctx, []*actor{a}, "", "authentication.k8s.io", "users")
	return append(plain, constrained[1:]...)
}

// isAbout reports whether one of the resources is a subresource.
func isAbout(resources []string, resource string) bool {
	return slices.ContainsFunc(resources, func(r string) bool { return strings.HasPrefix(r, resource+"/") })
}

// impersonate acts as another identity. Groups are impersonated together with a user.
func (e *executor) impersonate(ctx context.Context, s step) error {
	if s.Impersonates != nil {
		return e.impersonateLimited(ctx, s)
	}
	if together(s.Step) {
		return e.impersonateTogether(ctx, s)
	}
	var errs []error
	for _, a := range e.acting(s) {
		if a.impersonated {
			continue // a request impersonates once
		}
		owned := false
		for _, headers := range e.headersFor(ctx, a, s.To) {
			bare := strings.HasPrefix(s.To.Name, "system:node:") && len(headers["Impersonate-Group"]) == 0
			err := e.own(ctx, &actor{
				holding: s.To, client: a.with(headers), impersonated: true, bare: bare, node: strings.Join(headers[nodeNameHeader], ""),
			})
			errs, owned = append(errs, err), owned || err == nil
			if owned && !strings.HasPrefix(s.To.Name, "system:node:") && e.enforced == 0 {
				return nil
			}
		}
		if owned {
			return nil
		}
	}
	if len(errs) == 0 {
		return errNoActor
	}
	return errors.Join(errs...)
}

// nodeNameHeader impersonates the node of a token.
const nodeNameHeader = "Impersonate-Extra-Authentication.kubernetes.io%2fnode-Name"

// headersFor are the headers with which an identity may be impersonated.
func (e *executor) headersFor(ctx context.Context, a *actor, h holding) []http.Header {
	as := func(user string, groups ...string) http.Header {
		headers := http.Header{"Impersonate-User": {user}}
		if len(groups) > 0 {
			headers["Impersonate-Group"] = groups
		}
		return headers
	}
	switch {
	case h.Kind == attackpaths.ServiceAccount:
		all := []http.Header{as(accountUser(h))}
		if e.enforced > 0 {
			for _, o := range e.list(ctx, nodes) {
				on := as(accountUser(h))
				on[nodeNameHeader] = []string{o.name()}
				all = append(all, on)
			}
		}
		return all
	case h.Kind == attackpaths.User && strings.HasPrefix(h.Name, "system:node:"):
		return []http.Header{as(h.Name, "system:nodes"), as(h.Name)}
	case h.Kind == attackpaths.User:
		return []http.Header{as(h.Name)}
	}
	var all []http.Header
	for _, user := range e.userNames(ctx, a) {
		all = append(all, as(user, h.Name))
	}
	for _, o := range e.list(ctx, serviceAccounts) {
		all = append(all, as(accountUser(holding{Namespace: o.namespace(), Name: o.name()}), h.Name))
	}
	return all
}
