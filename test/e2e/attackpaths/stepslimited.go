package attackpaths

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// Constrained impersonation for some requests only. The step makes no request: a question of who
// it is would be another request, which the rights do not cover. The step after it shows whether
// the API server lets the requester act as the identity.

// limitedKey identifies a requester and the identity as which it acts for some requests only.
type limitedKey struct{ by, as holding }

// beginning are the identities with which a step can begin: those that the requester acts as for
// some requests, the last one first, then the requester itself. It has at least one element, which
// is nil for a step that begins with something that makes no requests.
func (e *executor) beginning(s step) []*actor {
	var all []*actor
	for _, k := range slices.Backward(s.limits) {
		if k.by == s.From && s.Impersonates == nil {
			all = append(all, e.limited[k]...)
		}
	}
	all = append(all, e.actor(s.From))
	for _, a := range e.actors { // a path does not say whether a node's user is in the group of nodes
		if (a.bare || a.node != "") && a.holding == s.From && !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	return all
}

// impersonateLimited notes each way in which the requester can act as the identity.
func (e *executor) impersonateLimited(ctx context.Context, s step) error {
	if s.as == nil || s.as.impersonated {
		return errNoActor
	}
	k := limitedKey{s.From, *s.Impersonates}
	requesters := []*actor{s.as}
	if strings.Contains(s.Because, " in the mode associated-node") {
		requesters = append(requesters, e.associated(ctx, s, k.as)...)
	}
	for _, a := range requesters {
		for _, headers := range e.limitedHeaders(ctx, a, k.as) {
			e.limited[k] = append(e.limited[k], &actor{holding: k.as, client: a.with(headers), impersonated: true})
		}
	}
	return nil
}

// ask asks about the rights of an identity. Who acts as it for some requests only may not ask, so
// that the administrator does.
func (e *executor) ask(ctx context.Context, a *actor, kind string, review any) answer {
	path := "/apis/authorization.k8s.io/v1/" + kind
	asked := a.post(ctx, path, review)
	if a.impersonated && asked.refused() {
		headers := a.headers
		if len(headers) == 0 { // nobody acts as who is anonymous
			headers = http.Header{"Impersonate-User": {a.holding.Name}}
		}
		return e.admin.with(headers).post(ctx, path, review)
	}
	return asked
}

// limitedHeaders are the headers with which an identity is impersonated under a constraint. Who
// impersonates a node or a service account may send no groups.
func (e *executor) limitedHeaders(ctx context.Context, a *actor, h holding) []http.Header {
	switch h.Kind {
	case attackpaths.ServiceAccount:
		return []http.Header{{"Impersonate-User": {accountUser(h)}}}
	case attackpaths.User:
		return []http.Header{{"Impersonate-User": {h.Name}}}
	}
	var all []http.Header
	for _, user := range e.namesOf(ctx, []*actor{a}, "", "authentication.k8s.io", "users") {
		all = append(all, http.Header{"Impersonate-User": {user}, "Impersonate-Group": {h.Name}},
			http.Header{"Impersonate-User": {user}, "Impersonate-Group": {h.Name, "many-1", "many-2", "many-3"}})
	}
	return all
}

// associated are the requester with tokens that are bound to the node, from each identity of the
// path that may request one.
func (e *executor) associated(ctx context.Context, s step, node holding) []*actor {
	name := strings.TrimPrefix(node.Name, "system:node:")
	var found corev1.Node
	if e.admin.get(ctx, nodes.at("", name)).into(&found) != nil {
		return nil
	}
	bound := map[string]any{"spec": map[string]any{
		"boundObjectRef": map[string]any{"kind": "Node", "apiVersion": "v1", "name": name, "uid": found.UID},
	}}
	var all []*actor
	for _, a := range e.acting(s) {
		var token authenticationv1.TokenRequest
		if a.post(ctx, serviceAccounts.at(s.From.Namespace, s.From.Name, "token"), bound).into(&token) != nil {
			continue
		}
		if c, err := e.tokenClient(token.Status.Token); err == nil {
			all = append(all, &actor{holding: s.From, client: c})
		}
	}
	return all
}

// together reports whether a step is about a user with groups, and the rights that these have together: it leads to the requester.
func together(s attackpaths.Step) bool {
	return s.Technique == attackpaths.Impersonate && s.Impersonates == nil && s.To == s.From
}

// impersonateTogether notes each way in which the requester can act as a user, or as a service account, with all groups that
// bindings name, or with one of them.
func (e *executor) impersonateTogether(ctx context.Context, s step) error {
	users := []string{fmt.Sprint("made-", e.counter.Add(1))}
	var groups []string
	for _, h := range e.bound(ctx) {
		if h.Kind == attackpaths.User {
			users = append(users, h.Name)
		} else {
			groups = append(groups, h.Name)
		}
	}
	for _, o := range e.list(ctx, serviceAccounts) {
		if _, old := e.baseline[o.path]; !old {
			users = append(users, accountUser(holding{Namespace: o.namespace(), Name: o.name()}))
		}
	}
	ways := [][]string{groups}
	for _, group := range groups {
		ways = append(ways, []string{group})
	}
	k := limitedKey{s.From, s.From}
	for _, a := range e.acting(s) {
		for _, user := range users {
			for _, with := range ways {
				as := a.with(http.Header{"Impersonate-User": {user}, "Impersonate-Group": with})
				if !a.impersonated && as.post(ctx, "/apis/authentication.k8s.io/v1/selfsubjectreviews", map[string]any{}).ok() {
					e.limited[k] = append(e.limited[k], &actor{holding: s.From, client: as, impersonated: true})
				}
			}
		}
	}
	if len(e.limited[k]) == 0 {
		return errNoActor
	}
	return nil
}
