package attackpaths

import (
	"context"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// planLimited tries each request as each identity, with the headers of constrained impersonation,
// for a requester that has some right of it.
func (t *attempts) planLimited(ctx context.Context, a *actor) {
	if a.impersonated || !t.hasConstrained(ctx, a) {
		return
	}
	for _, h := range t.impersonatable(ctx) {
		for _, headers := range t.limitedHeaders(ctx, a, h) {
			t.planRequests(ctx, &actor{holding: h, client: a.with(headers), impersonated: true})
		}
	}
}

// impersonatable are the users, groups, nodes and service accounts of the case.
func (t *attempts) impersonatable(ctx context.Context) []holding {
	all := t.identities(ctx)
	for _, o := range t.objects(ctx, serviceAccounts) {
		if _, old := t.baseline[o.path]; !old {
			all = append(all, holding{Kind: attackpaths.ServiceAccount, Namespace: o.namespace(), Name: o.name()})
		}
	}
	return all
}

// hasConstrained reports whether the API server lists a right of constrained impersonation.
func (t *attempts) hasConstrained(ctx context.Context, a *actor) bool {
	for _, o := range t.objects(ctx, namespaces) {
		var review authorizationv1.SelfSubjectRulesReview
		review.Spec.Namespace = o.name()
		if a.post(ctx, "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", review).into(&review) != nil {
			continue
		}
		for _, rule := range review.Status.ResourceRules {
			if slices.ContainsFunc(rule.Verbs, func(v string) bool { return strings.HasPrefix(v, "impersonate") && v != "impersonate" }) {
				return true
			}
		}
	}
	return false
}
