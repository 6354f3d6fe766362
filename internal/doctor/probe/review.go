package probe

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

const (
	pathSelfReviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
	pathReviews     = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
	resourceReviews = "subjectaccessreviews.authorization.k8s.io"
	remedyReviews   = "bind a role with the verb create on " + resourceReviews + " to the user"

	groupAuthenticated   = "system:authenticated"
	groupUnauthenticated = "system:unauthenticated"
	userAnonymous        = "system:anonymous"
)

// action is the request that an access review asks about.
type action struct {
	verb, group, resource, subresource, namespace, name string
}

func (a action) String() string {
	text := a.verb + " " + a.resource
	if a.group != "" {
		text += "." + a.group
	}
	if a.subresource != "" {
		text += "/" + a.subresource
	}
	switch {
	case a.name != "" && a.namespace != "":
		return text + " " + a.namespace + "/" + a.name
	case a.name != "":
		return text + " " + a.name
	case a.namespace != "":
		return text + " in namespace " + a.namespace
	}
	return text + " in the whole cluster"
}

// reviewed is the answer to an access review.
type reviewed struct {
	allowed bool
	// reason is the reason that the API server gives; often empty.
	reason string
	// unknown is why there is no decision; empty if there is one. lacks is the missing right.
	unknown, lacks, remedy string
}

func (p *prober) review(ctx context.Context, who identity, what action) reviewed {
	return p.reviewed(ctx, request{
		path:  pathReviews,
		about: "may user " + who.user + " in " + strings.Join(who.groups, ", ") + " " + what.String() + "?",
		body: authorizationv1.SubjectAccessReview{
			TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SubjectAccessReview"},
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User: who.user, Groups: who.groups, ResourceAttributes: what.attributes(),
			},
		},
	})
}

func (p *prober) reviewSelf(ctx context.Context, what action) reviewed {
	return p.reviewed(ctx, request{
		path: pathSelfReviews, about: "may the caller " + what.String() + "?",
		body: authorizationv1.SelfSubjectAccessReview{
			TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SelfSubjectAccessReview"},
			Spec:     authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: what.attributes()},
		},
	})
}

func (p *prober) reviewed(ctx context.Context, r request) reviewed {
	r.method = http.MethodPost
	a := p.do(ctx, r)
	switch {
	case a.refused(http.StatusForbidden):
		return reviewed{unknown: "access reviews may not be created: " + a.line, lacks: resourceReviews, remedy: remedyReviews}
	case !a.ok():
		return reviewed{unknown: "no answer to an access review: " + a.String()}
	}
	answer := decided(a.body)
	(*p.sent)[len(*p.sent)-1].Answer = answer.line()
	return answer
}

func (a action) attributes() *authorizationv1.ResourceAttributes {
	return &authorizationv1.ResourceAttributes{
		Verb: a.verb, Group: a.group, Resource: a.resource, Subresource: a.subresource, Namespace: a.namespace, Name: a.name,
	}
}

// decided reads the status of an access review. A refusal with an error is no decision, because
// an authorizer that failed may allow it.
func decided(body []byte) reviewed {
	var answer struct {
		Kind   string                                     `json:"kind"`
		Status *authorizationv1.SubjectAccessReviewStatus `json:"status"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || !strings.HasSuffix(answer.Kind, "SubjectAccessReview") || answer.Status == nil {
		return reviewed{unknown: "the answer to an access review has no status"}
	}
	status := answer.Status
	switch {
	case status.Allowed && status.Denied:
		return reviewed{unknown: "the answer to an access review is both allowed and denied"}
	case !status.Allowed && status.EvaluationError != "":
		return reviewed{unknown: "an authorizer failed: " + firstLine(status.EvaluationError)}
	}
	return reviewed{allowed: status.Allowed, reason: firstLine(status.Reason)}
}

func (r reviewed) line() string {
	switch {
	case r.unknown != "":
		return r.unknown
	case r.allowed:
		return strings.TrimSuffix("allowed: "+r.reason, ": ")
	}
	return strings.TrimSuffix("not allowed: "+r.reason, ": ")
}

// because returns the reason as the end of a sentence.
func (r reviewed) because() string {
	if r.reason == "" {
		return ""
	}
	return " (" + r.reason + ")"
}

func (p *prober) undecided(answers ...reviewed) bool {
	for _, r := range answers {
		if r.unknown != "" {
			p.lacking(r.lacks, r.remedy, "%s", r.unknown)
			return true
		}
	}
	return false
}

// node returns the user of the node that does not exist, as SubjectAccessReviews name it.
func (p *prober) node() identity {
	user, groups := nodeidentity.User(p.names.node)
	return identity{user, groups}
}

// member returns a user in the same groups as nodes whose name is not a node's.
func (p *prober) member() identity {
	return identity{p.names.user, []string{nodeidentity.Group, groupAuthenticated}}
}
