package controller

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/approve"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// record updates the status of one entry of the ledger.
func (c *Controller) record(ctx context.Context, name string) error {
	known, exists := c.opts.Known.Get(name)
	if !exists {
		return nil
	}
	if err := c.fresh(); err != nil {
		return fmt.Errorf("update the status of nodeattestation %s: %w", name, err)
	}
	requests, err := c.evidenceOf(known)
	if err != nil {
		return err
	}
	if object, exists, err := c.nodes.GetByKey(known.Spec.NodeName); err == nil && exists {
		requests.node = object.(*corev1.Node)
	}
	entry := known.DeepCopy()
	requests.recordIn(entry)
	if equality.Semantic.DeepEqual(known.Status, entry.Status) {
		return nil
	}
	if _, err := c.opts.Ledger.UpdateStatus(ctx, entry); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

// evidenceOf returns the evidence about a machine.
func (c *Controller) evidenceOf(entry *v1alpha1.NodeAttestation) (*evidence, error) {
	v := &evidence{now: c.opts.Clock()}
	var err error
	if v.token, err = c.requestsOf(byRequester, v1alpha1.TokenUser(entry.Spec.TokenID)); err != nil {
		return nil, err
	}
	user, _ := nodeidentity.User(entry.Spec.NodeName)
	if v.renewals, err = c.requestsOf(byRequester, user); err != nil {
		return nil, err
	}
	v.alone = !slices.ContainsFunc(c.opts.Known.ByNode(entry.Spec.NodeName), func(other *v1alpha1.NodeAttestation) bool {
		return other.UID != entry.UID && approve.MayHaveCertificate(other, v.now)
	})
	return v, nil
}

// requestsOf returns a user's requests for kubelets' client certificates from an index.
func (c *Controller) requestsOf(index, user string) ([]*request, error) {
	objects, err := c.requests.ByIndex(index, user)
	if err != nil {
		return nil, err
	}
	requests := make([]*request, 0, len(objects))
	for _, object := range objects {
		requests = append(requests, object.(*request))
	}
	return requests, nil
}
