package controller

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/approve"
)

// decideNode decides about the request of a node.
func (c *Controller) decideNode(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) (approve.Answer, error) {
	claim := approve.ClaimOf(csr)
	q := &approve.Question{Request: csr, Now: c.opts.Clock(), SelfNodeServer: true, Options: c.policy}
	var err error
	if q.Entries, err = c.entriesOf(ctx, csr, claim.Node); err != nil {
		return approve.Answer{}, err
	}
	q.Others = append(c.opts.Known.ByNode(claim.Node), c.opts.Known.ByCredential(approve.CredentialOf(csr))...)
	if object, exists, err := c.nodes.GetByKey(claim.Node); err == nil && exists {
		q.NodeAddresses = object.(*corev1.Node).Status.Addresses
	}
	if claim.Kind == approve.Serving && len(c.policy.Sources) > 0 {
		q.OtherNode = func(nameOrAddress string) string { return c.otherNode(claim.Node, nameOrAddress) }
		q.Machines = c.opts.Machines
		q.Newer = c.newerRequests(csr, claim.Node)
	}
	answer, err := c.answer(q)
	if err != nil {
		return approve.Answer{}, err
	}
	if answer.Code == approve.AnotherMachinesCredential {
		// The entry may not have the certificate yet, and the other entry may be deleted.
		if err := c.readCredentials(q.Entries); err != nil {
			return approve.Answer{}, err
		}
		if q.Others, err = c.readAgain(ctx, q.Others); err != nil {
			return approve.Answer{}, err
		}
		if answer, err = c.answer(q); err != nil {
			return approve.Answer{}, err
		}
	}
	if answer.Missing != nil {
		if answer, err = c.findMissing(ctx, q, answer.Missing.Names); err != nil {
			return approve.Answer{}, err
		}
	}
	if claim.Kind != approve.Serving || answer.Outcome != approve.Approve {
		return answer, nil
	}
	// The API server is asked last, and only if the request would be approved.
	if q.SelfNodeServer, err = c.maySelfNodeServer(ctx, csr); err != nil {
		return approve.Answer{}, err
	}
	return c.answer(q)
}

// entriesOf returns the ledger's entries of a node. The entry that counts is read from the API
// server, so that a revocation takes effect at once. Only a list of the API server, never the
// cache, can show that there is none.
func (c *Controller) entriesOf(
	ctx context.Context, request metav1.Object, node string,
) ([]*v1alpha1.NodeAttestation, error) {
	for _, known := range c.opts.Known.ByNode(node) {
		if known.Phase() == v1alpha1.Revoked {
			continue
		}
		entry, err := c.opts.Ledger.Get(ctx, known.Name)
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		if err == nil && entry.Spec.NodeName == node && entry.Phase() != v1alpha1.Revoked {
			return []*v1alpha1.NodeAttestation{entry}, nil
		}
	}
	return c.listing.revoked(request, node)
}

// readAgain reads cached entries from the API server, each once. It omits deleted entries.
func (c *Controller) readAgain(ctx context.Context, known []*v1alpha1.NodeAttestation) ([]*v1alpha1.NodeAttestation, error) {
	read := map[string]bool{}
	var entries []*v1alpha1.NodeAttestation
	for _, k := range known {
		if read[k.Name] {
			continue
		}
		read[k.Name] = true
		entry, err := c.opts.Ledger.Get(ctx, k.Name)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, err
		default:
			entries = append(entries, entry)
		}
	}
	return entries, nil
}

// readCredentials adds certificates that were issued to machines and are not in their entries yet.
// The informer receives a certificate before a request that was made with it. The entries must not
// be shared.
func (c *Controller) readCredentials(entries []*v1alpha1.NodeAttestation) error {
	for _, entry := range entries {
		if entry.Phase() == v1alpha1.Revoked {
			continue
		}
		issued, err := c.evidenceOf(entry)
		if err != nil {
			return err
		}
		entry.Status.Credentials = issued.credentials(entry)
	}
	return nil
}

// maySelfNodeServer asks the API server whether the requester may create
// certificatesigningrequests/selfnodeserver.
func (c *Controller) maySelfNodeServer(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) (bool, error) {
	extra := map[string]authorizationv1.ExtraValue{}
	for name, values := range csr.Spec.Extra {
		extra[name] = authorizationv1.ExtraValue(values)
	}
	review, err := c.opts.Client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: csr.Spec.Username, UID: csr.Spec.UID, Groups: csr.Spec.Groups, Extra: extra,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Group: certificatesv1.GroupName, Version: "*", Verb: "create",
				Resource: "certificatesigningrequests", Subresource: "selfnodeserver",
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, wrap(err, "ask for the rights of", "user", csr.Spec.Username)
	}
	return review.Status.Allowed, nil
}
