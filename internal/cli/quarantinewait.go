package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// quarantinePoll is the time between two looks at whether a Quarantine takes effect.
const quarantinePoll = 200 * time.Millisecond

// effect is yes, no or unknown, and why.
type effect struct {
	// Answer is yes, no, or unknown.
	Answer string `json:"answer"`
	// Detail says why.
	Detail string `json:"detail"`
}

// await waits until the servers have said whether they accept a Quarantine, and until the API server
// refuses what it is about.
func (c *quarantineClient) await(ctx context.Context, result *quarantineResult, object *policyv1alpha1.Quarantine, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	accepted, refused := effect{}, effect{}
	until(ctx, func(ctx context.Context) bool {
		accepted = c.accepted(ctx, object)
		return accepted.Answer != unknown
	})
	if accepted.Answer != no {
		until(ctx, func(ctx context.Context) bool {
			refused = c.refused(ctx, object)
			return refused.Answer == yes
		})
	} else {
		refused = effect{unknown, "it was not asked, because the servers do not accept the Quarantine"}
	}
	result.Accepted, result.Refused = &accepted, &refused
}

// until calls a function until it is done or the context ends, and at least once.
func until(ctx context.Context, done func(context.Context) bool) {
	const one = 5 * time.Second // for a request that begins when the time has passed
	_ = wait.PollUntilContextCancel(ctx, quarantinePoll, true, func(context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), one)
		defer cancel()
		return done(ctx), nil
	})
}

// accepted reads what the servers say about the current generation of a Quarantine.
func (c *quarantineClient) accepted(ctx context.Context, object *policyv1alpha1.Quarantine) effect {
	latest, err := c.Get(ctx, object.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return effect{no, "it was deleted"}
	case err != nil:
		return effect{unknown, "it could not be read: " + oneLine(err).Error()}
	case latest.UID != object.UID:
		return effect{no, "it was replaced"}
	}
	return acceptance(latest, time.Now())
}

// acceptance is what the status of a Quarantine says about its current generation.
func acceptance(q *policyv1alpha1.Quarantine, now time.Time) effect {
	condition := meta.FindStatusCondition(q.Status.Conditions, policyv1alpha1.ConditionAccepted)
	end := q.Spec.ExpirationTime
	switch {
	case end != nil && !now.Before(end.Time):
		return effect{no, "it has ended"}
	case condition == nil, q.Status.ObservedGeneration < q.Generation, condition.Status == metav1.ConditionUnknown:
		return effect{unknown, "no server has said so: nothing follows quarantines (containment.quarantines: Enabled), or its status " +
			"cannot be written"}
	case condition.Status == metav1.ConditionTrue:
		return effect{yes, "the servers refuse what it names"}
	}
	return effect{no, condition.Reason + ": " + condition.Message}
}

// refused asks the API server whether it refuses what a Quarantine is about. The question is one that
// every node is allowed, and that no word of --allow lets through.
func (c *quarantineClient) refused(ctx context.Context, object *policyv1alpha1.Quarantine) effect {
	review, err := c.cluster.AuthorizationV1().SubjectAccessReviews().Create(ctx, probeOf(object), metav1.CreateOptions{})
	if err != nil {
		return effect{unknown, "it could not be asked: " + oneLine(err).Error()}
	}
	code := policyv1alpha1.NodeQuarantined
	if object.Spec.Node == "" {
		code = policyv1alpha1.CredentialQuarantined
	}
	switch status := &review.Status; {
	case strings.Contains(status.Reason, string(code)) && !status.Allowed:
		return effect{yes, string(code)}
	case status.Allowed:
		return effect{no, "it allows requests: it does not ask node-authorizer before it allows them, or it uses an earlier answer; the " +
			"webhook has to come before the authorizers Node and RBAC in the AuthorizationConfiguration of every API server"}
	default:
		return effect{unknown, fmt.Sprintf("it refuses requests for another reason: %q", status.Reason+status.EvaluationError)}
	}
}

// probeNode is the name of a node that does not exist, with which is asked about a credential.
const probeNode = "node-authorizer-probe"

// probeOf returns the question whether a quarantined node, or a node with a quarantined credential, may
// list services.
func probeOf(object *policyv1alpha1.Quarantine) *authorizationv1.SubjectAccessReview {
	node, extra := object.Spec.Node, map[string]authorizationv1.ExtraValue(nil)
	if node == "" {
		node = probeNode
		extra = map[string]authorizationv1.ExtraValue{credentialIDKey: {object.Spec.Credential}}
	}
	user, groups := nodeidentity.User(node)
	return &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user, Groups: append(groups, "system:authenticated"), Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Version: "v1", Resource: "services", Verb: "list"},
	}}
}

// credentialIDKey is the extra value with the id of a credential (KEP-4193).
const credentialIDKey = "authentication.kubernetes.io/credential-id"
