package observe

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/nodescope"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Types of decisions.
const (
	typeAuthorize = "authorize"
	typeAdmit     = "admit"
	typeMutate    = "mutate"
	// typeAuthenticate appears only in the log.
	typeAuthenticate = "authenticate"
)

// Outcomes of decisions.
const (
	outcomeAllow     = "allow"
	outcomeDeny      = "deny"
	outcomeNoOpinion = "no_opinion"
	outcomeError     = "error"
)

// Authorize counts the opinions of an evaluator of access reviews.
func (m *Metrics) Authorize(next decision.Authorize) decision.Authorize {
	return func(ctx context.Context, req *access.Request) (decision.Opinion, error) {
		opinion, err := next(ctx, req)
		outcome := outcomeError
		if err == nil {
			outcome = outcomeOf(opinion.Decision)
		}
		resource := nonResource
		if req.ResourceRequest {
			resource = resourceLabel(req.Group, req.Resource)
		}
		m.decisions.WithLabelValues(typeAuthorize, outcome, string(opinion.Code), resource).Inc()
		if opinion.Scope != nil {
			m.ScopeRefused(opinion.Scope)
		}
		return opinion, err
	}
}

// Admit counts the answers of an evaluator of admission requests. An answer that asks the
// client to try again counts as an error.
func (m *Metrics) Admit(next decision.Admit) decision.Admit {
	return func(ctx context.Context, req *noderestriction.Request) noderestriction.Answer {
		answer := next(ctx, req)
		outcome := outcomeOf(answer.Decision)
		if undecided(&answer) {
			outcome = outcomeError
		}
		m.decisions.WithLabelValues(typeAdmit, outcome, string(answer.Code), resourceLabel(req.Group, req.Resource)).Inc()
		if answer.Decision == verdict.Deny && nodescope.Summary(answer.Code) != "" {
			m.ScopeRefused(&decision.ScopeRefusal{Account: req.User, Code: answer.Code, Enforced: true})
		}
		return answer
	}
}

// Mutated counts a pod that was sent to the mutating webhook, changed or not.
func (m *Metrics) Mutated(changed bool) {
	code := "Unchanged"
	if changed {
		code = "Patched"
	}
	m.decisions.WithLabelValues(typeMutate, outcomeAllow, code, "pods").Inc()
}

func outcomeOf(d verdict.Decision) string {
	switch d {
	case verdict.Allow:
		return outcomeAllow
	case verdict.NoOpinion:
		return outcomeNoOpinion
	}
	return outcomeDeny
}

// undecided reports whether an answer is an error and not a refusal.
func undecided(answer *noderestriction.Answer) bool { return answer.Status >= 500 }

const (
	nonResource   = "non_resource"
	otherResource = "other"
)

// resourceLabel returns the name of a resource that nodes use, and "other" for all others:
// callers must not be able to create label values.
func resourceLabel(group, resource string) string {
	if label, known := resourceLabels[groupResource{group, resource}]; known {
		return label
	}
	return otherResource
}

type groupResource struct{ group, resource string }

// resourceLabels is constant.
var resourceLabels = map[groupResource]string{
	{"", "configmaps"}:             "configmaps",
	{"", "endpoints"}:              "endpoints",
	{"", "events"}:                 "events",
	{"", "nodes"}:                  "nodes",
	{"", "persistentvolumeclaims"}: "persistentvolumeclaims",
	{"", "persistentvolumes"}:      "persistentvolumes",
	{"", "pods"}:                   "pods",
	{"", "secrets"}:                "secrets",
	{"", "serviceaccounts"}:        "serviceaccounts",
	{"", "services"}:               "services",
	{authenticationv1.GroupName, "tokenreviews"}:             "tokenreviews.authentication.k8s.io",
	{authorizationv1.GroupName, "localsubjectaccessreviews"}: "localsubjectaccessreviews.authorization.k8s.io",
	{authorizationv1.GroupName, "subjectaccessreviews"}:      "subjectaccessreviews.authorization.k8s.io",
	{certificatesv1.GroupName, "certificatesigningrequests"}: "certificatesigningrequests.certificates.k8s.io",
	{certificatesv1.GroupName, "clustertrustbundles"}:        "clustertrustbundles.certificates.k8s.io",
	{certificatesv1.GroupName, "podcertificaterequests"}:     "podcertificaterequests.certificates.k8s.io",
	{coordinationv1.GroupName, "leases"}:                     "leases.coordination.k8s.io",
	{"events.k8s.io", "events"}:                              "events.events.k8s.io",
	{nodev1.GroupName, "runtimeclasses"}:                     "runtimeclasses.node.k8s.io",
	{resourcev1.GroupName, "resourceclaims"}:                 "resourceclaims.resource.k8s.io",
	{resourcev1.GroupName, "resourceslices"}:                 "resourceslices.resource.k8s.io",
	{storagev1.GroupName, "csidrivers"}:                      "csidrivers.storage.k8s.io",
	{storagev1.GroupName, "csinodes"}:                        "csinodes.storage.k8s.io",
	{storagev1.GroupName, "volumeattachments"}:               "volumeattachments.storage.k8s.io",
}
