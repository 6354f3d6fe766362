package controller

import (
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/informer"
	"github.com/node-authorizer/node-authorizer/internal/join/approve"
	"github.com/node-authorizer/node-authorizer/internal/staleness"
)

// byRequester indexes requests for kubelets' client certificates by requester. byApproved indexes
// only those that an approver approved for a token: the owner of a token can create any number of
// other requests.
const (
	byRequester = "requester"
	byApproved  = "approved"
	// byServed indexes undecided requests for serving certificates by node.
	byServed = "served"
	// byAddress indexes nodes by their name, and by the names and addresses in their status.
	byAddress = "address"
)

// newInformers creates the informers and their event handlers.
func (c *Controller) newInformers(maxStaleness time.Duration, clock func() time.Time) {
	requests, nodes := c.opts.Client.CertificatesV1().CertificateSigningRequests(), c.opts.Client.CoreV1().Nodes()
	c.requests = informer.New(informer.Source[*certificatesv1.CertificateSigningRequestList]{
		List: requests.List, Watch: requests.Watch,
		Example: &certificatesv1.CertificateSigningRequest{}, Name: "certificatesigningrequests",
	}, staleness.New("certificatesigningrequests.certificates.k8s.io", maxStaleness, clock).LimitWatches(informer.WatchLife),
		cache.Indexers{byRequester: requesterOf, byApproved: approvedRequesterOf, byServed: servedNodeOf})
	c.nodes = informer.New(informer.Source[*corev1.NodeList]{
		List: nodes.List, Watch: nodes.Watch, Example: &corev1.Node{}, Name: "nodes",
	}, staleness.New("nodes", maxStaleness, clock), cache.Indexers{byAddress: nodeAddressesOf})
	c.requests.Transform, c.nodes.Transform = keep, trim
	handle(c.requests, c.requestChanged, c.requestDeleted)
	handle(c.nodes, c.nodeChanged, c.nodeChanged)
	c.opts.Known.OnChange(c.entryChanged)
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
func handle[T any](of *informer.Informer, changed, deleted func(T)) {
	of.Changed = append(of.Changed, func(object any) { changed(object.(T)) })
	of.Deleted = append(of.Deleted, func(object any) { deleted(object.(T)) })
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

// addRequest lets a request be decided, if this approver leads.
func (c *Controller) addRequest(name string) {
	if t := c.term.Load(); t != nil {
		t.requests.Add(name)
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
