package approver

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// record brings the status of one entry of the ledger up to date.
func (c *Controller) record(ctx context.Context, name string) error {
	known, exists := c.opts.Known.Get(name)
	if !exists {
		return nil
	}
	if err := c.fresh(); err != nil {
		return fmt.Errorf("record what became of nodeattestation %s: %w", name, err)
	}
	requests := &evidence{now: c.opts.Clock()}
	var err error
	if requests.token, err = c.requestsOf(byRequester, v1alpha1.TokenUser(known.Spec.TokenID)); err != nil {
		return err
	}
	user, _ := nodeidentity.User(known.Spec.NodeName)
	if requests.renewals, err = c.requestsOf(byRequester, user); err != nil {
		return err
	}
	if object, exists, err := c.nodes.GetStore().GetByKey(known.Spec.NodeName); err == nil && exists {
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

// requestsOf returns a user's requests for kubelets' client certificates, by an
// index.
func (c *Controller) requestsOf(index, user string) ([]*request, error) {
	objects, err := c.requests.GetIndexer().ByIndex(index, user)
	if err != nil {
		return nil, err
	}
	requests := make([]*request, 0, len(objects))
	for _, object := range objects {
		requests = append(requests, object.(*request))
	}
	return requests, nil
}
