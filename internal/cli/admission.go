package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/node-authorizer/node-authorizer/chain"
	"github.com/node-authorizer/node-authorizer/internal/review"
	"github.com/node-authorizer/node-authorizer/internal/source"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// nameRestriction is the admission plugin's name, as API servers call it.
const nameRestriction = "NodeRestriction"

// restriction is NodeRestriction over the state, made when it is first needed. What
// only the cluster's authorizers can say, it asks the chain.
func (s *session) restriction() *noderestriction.Restriction {
	if s.restricted == nil {
		s.restricted = noderestriction.New(s.state, chainAccess{s}, s.features)
	}
	return s.restricted
}

// chainAccess puts NodeRestriction's own questions to the session's chain. What
// they are about is granted by RBAC or by nobody, so that a state without roles
// and bindings has no answer.
type chainAccess struct{ *session }

func (s chainAccess) Authorize(ctx context.Context, access *noderestriction.Access) (allowed bool, reason string, err error) {
	req := &nodeauthz.Request{
		User: access.User, UID: access.UID, Groups: access.Groups, Extra: access.Extra,
		Verb: access.Verb, Group: access.Group, Version: access.Version, Resource: access.Resource,
		Namespace: access.Namespace, Name: access.Name, ResourceRequest: true,
	}
	decision, by, err := s.chain.Settled(ctx, req)
	allowed = decision == verdict.Allow
	if !allowed && err == nil && s.configured == "" && !s.state.RBACLoaded() {
		err = fmt.Errorf("RBAC decides about this, and %s has no roles and bindings", s.state.Origin)
	}
	if !allowed && err == nil {
		if lacks := s.lackFor(req, false, s.configured == "" || slices.Contains(s.chain.Names(), chain.NameRBAC)); len(lacks) > 0 {
			err = errors.New(inputLacks(lacks))
		}
	}
	return allowed, by, err
}

// admit puts AdmissionReviews to NodeRestriction. A refusal that an unreadable
// resource might turn is one that the API server's client may try again. One that
// files might turn has the status that Kubernetes has for such a state, and says so.
func (s *session) admit(restriction *noderestriction.Restriction) review.Admit {
	return func(ctx context.Context, req *noderestriction.Request) noderestriction.Answer {
		answer := restriction.Decide(ctx, req)
		answer.Reason = undecidedReason(answer)
		if unread := s.missingForWrite(req, answer); len(unread) > 0 {
			answer.Status, answer.StatusReason = http.StatusInternalServerError, ""
			answer.Reason.Message += "; but could not read " + strings.Join(resourceNames(unread), ", ")
		}
		if lacks := s.lackForWrite(req, answer); len(lacks) > 0 {
			answer.Reason.Message += "; not decided: " + inputLacks(lacks)
		}
		return answer
	}
}

func resourceNames(all []missing) []string {
	names := make([]string, len(all))
	for i, m := range all {
		names[i] = m.Resource
	}
	return names
}

// undecidedReason is the answer's reason, with what went wrong if the chain could
// not say what NodeRestriction asked it.
func undecidedReason(answer noderestriction.Answer) verdict.Reason {
	reason := answer.Reason
	if answer.Code == noderestriction.AuthorizationFailed {
		reason.Message += fmt.Sprintf(" (%v)", answer.Err)
	}
	return reason
}

// missingForWrite lists what could not be read and might have turned a refusal.
func (s *session) missingForWrite(req *noderestriction.Request, answer noderestriction.Answer) []missing {
	if answer.Decision == verdict.Allow || !answer.Stale && !asksAuthorizers(answer.Code) {
		return nil
	}
	looked := lookedUp(req)
	rbac := asksAuthorizers(answer.Code) && (s.configured == "" || slices.Contains(s.chain.Names(), chain.NameRBAC))
	return s.missingWhere(func(m source.Missing) bool { return m.RBAC && rbac || slices.Contains(looked, m.Resource) })
}

// asksAuthorizers reports whether a refusal rests on what the chain said.
func asksAuthorizers(code verdict.Code) bool {
	return code == noderestriction.AudienceNotAllowed || code == noderestriction.SignerNotAllowed ||
		code == noderestriction.AuthorizationFailed
}

// lookedUp are the resources in which NodeRestriction looks something up.
func lookedUp(req *noderestriction.Request) []schema.GroupResource {
	pods, nodes := schema.GroupResource{Resource: "pods"}, schema.GroupResource{Resource: "nodes"}
	switch req.Resource {
	case "pods":
		return []schema.GroupResource{pods, nodes}
	case "serviceaccounts":
		return []schema.GroupResource{
			pods,
			{Resource: "persistentvolumeclaims"},
			{Resource: "persistentvolumes"},
			{Group: "storage.k8s.io", Resource: "csidrivers"},
		}
	case "podcertificaterequests":
		return []schema.GroupResource{pods, nodes, {Resource: "serviceaccounts"}}
	}
	return nil
}
