package approver

import (
	"context"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/approve"
)

// byRequester indexes requests for kubelets' client certificates by requester. byApproved indexes
// only those that an approver approved for a token: the owner of a token can create any number of
// other requests.
const (
	byRequester = "requester"
	byApproved  = "approved"
)

// newInformers creates the informers and their event handlers.
func (c *Controller) newInformers() error {
	requests, nodes := c.opts.Client.CertificatesV1().CertificateSigningRequests(), c.opts.Client.CoreV1().Nodes()
	followed := c.requestsAge.Follow(func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		list, err := requests.List(ctx, opts)
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			shorten(&list.Items[i])
		}
		return list, nil
	}, func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
		w, err := requests.Watch(ctx, opts)
		if err != nil {
			return nil, err
		}
		return newShortWatch(w), nil
	})
	c.requests = cache.NewSharedIndexInformerWithOptions(
		&cache.ListWatch{ListWithContextFunc: followed.List, WatchFuncWithContext: followed.Watch},
		&certificatesv1.CertificateSigningRequest{}, cache.SharedIndexInformerOptions{
			Indexers:          cache.Indexers{byRequester: requesterOf, byApproved: approvedRequesterOf},
			ObjectDescription: "certificatesigningrequests",
		})
	followed = c.nodesAge.Follow(func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		return nodes.List(ctx, opts)
	}, nodes.Watch)
	c.nodes = cache.NewSharedIndexInformerWithOptions(
		&cache.ListWatch{ListWithContextFunc: followed.List, WatchFuncWithContext: followed.Watch},
		&corev1.Node{}, cache.SharedIndexInformerOptions{ObjectDescription: "nodes"})
	for _, err := range []error{
		c.requests.SetTransform(keep), c.nodes.SetTransform(trim),
		handle(c.requests, c.requestChanged, c.requestDeleted), handle(c.nodes, c.nodeChanged, c.nodeChanged),
	} {
		if err != nil {
			return fmt.Errorf("follow the cluster: %w", err)
		}
	}
	c.opts.Known.OnChange(c.entryChanged)
	return nil
}

func requesterOf(object any) ([]string, error) {
	if r := object.(*request); r.requester != "" {
		return []string{r.requester}, nil
	}
	return nil, nil
}

func approvedRequesterOf(object any) ([]string, error) {
	if object.(*request).key == "" {
		return nil, nil
	}
	return requesterOf(object)
}

// trim keeps only the identity and the addresses of nodes.
func trim(object any) (any, error) {
	if o, ok := object.(*corev1.Node); ok {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion, CreationTimestamp: o.CreationTimestamp,
			},
			Status: corev1.NodeStatus{Addresses: o.Status.Addresses},
		}, nil
	}
	return object, nil
}

// handle calls changed for objects that are added or changed, and deleted for objects that are
// deleted.
func handle[T any](informer cache.SharedIndexInformer, changed, deleted func(T)) error {
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { changed(object.(T)) },
		UpdateFunc: func(_, object any) { changed(object.(T)) },
		DeleteFunc: func(object any) {
			if unseen, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unseen.Obj
			}
			if object, ok := object.(T); ok {
				deleted(object)
			}
		},
	})
	return err
}

func (c *Controller) requestChanged(csr *request) {
	t := c.term.Load()
	if t == nil {
		return
	}
	claim := csr.claim
	if !csr.decided && claim.Kind != approve.Other && len(csr.Name) <= maxRequestName {
		t.requests.Add(csr.Name)
	}
	switch claim.Kind {
	case approve.Client:
		t.addEntries(c.opts.Known.ByToken(claim.TokenID))
	case approve.Renewal:
		t.addEntries(c.opts.Known.ByNode(claim.Node))
	case approve.Serving, approve.Other:
	}
}

func (c *Controller) requestDeleted(csr *request) {
	c.left.Delete(csr.UID)
	c.listing.forget(csr.UID)
}

func (c *Controller) nodeChanged(node *corev1.Node) {
	if t := c.term.Load(); t != nil {
		t.addEntries(c.opts.Known.ByNode(node.Name))
	}
}

func (c *Controller) entryChanged(entry *v1alpha1.NodeAttestation) {
	if t := c.term.Load(); t != nil {
		t.entries.Add(entry.Name)
	}
}
