package server

import (
	"context"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/internal/join/ledger"
)

// otherApproval is a right that makes kube-controller-manager approve requests, independently of the
// approver.
type otherApproval struct {
	user, subresource string
	groups            []string
	danger            string
}

// otherApprovals returns the rights to check. A bootstrap token has the groups that the API server
// gives to every token, and the group of this service.
func otherApprovals() []otherApproval {
	return []otherApproval{
		{
			user: "system:bootstrap:000000", groups: []string{"system:bootstrappers", ledger.TokenGroup, "system:authenticated"},
			subresource: "nodeclient",
			danger:      "a token is then good for any node's name, and for more than one certificate",
		},
		{
			user: "system:node:any", groups: []string{"system:nodes", "system:authenticated"},
			subresource: "selfnodeclient",
			danger:      "certificates are then renewed after a revocation",
		},
	}
}

// warnOfOtherApprovers asks the API server whether kube-controller-manager would approve requests that
// the approver should decide, and logs it.
func (j *join) warnOfOtherApprovers(ctx context.Context) {
	backoff := connectBackoff()
	for _, other := range otherApprovals() {
		for {
			allowed, err := j.mayBeApproved(ctx, other)
			if err == nil {
				if allowed {
					j.logger.Info("WARNING: kube-controller-manager approves certificate requests of these groups by itself: "+
						other.danger+"; remove the ClusterRoleBinding that lets them create certificatesigningrequests/"+
						other.subresource, "groups", other.groups)
				}
				break
			}
			if apierrors.IsForbidden(err) && j.approver == nil {
				// A server without an approver need not have the right to ask.
				j.logger.V(1).Info("not asked whether kube-controller-manager approves certificate requests of machines",
					"cause", err.Error())
				return
			}
			select {
			case <-time.After(backoff.Step()):
			case <-ctx.Done():
				return
			}
		}
	}
}

func (j *join) mayBeApproved(ctx context.Context, other otherApproval) (bool, error) {
	review, err := j.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: other.user, Groups: other.groups,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Group: certificatesv1.GroupName, Version: "*", Verb: "create",
				Resource: "certificatesigningrequests", Subresource: other.subresource,
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("ask whether %s may create certificatesigningrequests/%s: %w", other.user, other.subresource, err)
	}
	return review.Status.Allowed, nil
}
