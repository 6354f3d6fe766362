package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/approve"
)

// errBehind means that the cache does not have the latest state of the API server yet.
var errBehind = errors.New("the ledger's cache is behind the API server")

// decideClient decides the request of a bootstrap token. The token is bound to the request's
// key before the approval is written.
func (c *Controller) decideClient(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) (approve.Answer, error) {
	q := &approve.Question{Request: csr, Now: c.opts.Clock(), Options: c.policy}
	if err := c.readEntry(ctx, q, approve.ClaimOf(csr).TokenID); err != nil {
		return approve.Answer{}, err
	}
	if q.Entry != nil {
		lock := c.nameLock(q.Entry.Spec.NodeName)
		lock.Lock()
		defer lock.Unlock()
		if err := c.readOthers(ctx, q); err != nil {
			return approve.Answer{}, err
		}
	}
	answer, err := c.answer(q)
	if err != nil {
		return answer, err
	}
	if answer.Outcome == approve.Approve {
		if err := c.bind(ctx, q); err != nil {
			return answer, err
		}
	}
	return answer, c.write(ctx, csr, &answer)
}

// readEntry reads the entry that names a token from the API server. The cache only finds its
// name. If two entries name the token, the request is denied as if there were none.
func (c *Controller) readEntry(ctx context.Context, q *approve.Question, id string) error {
	known := c.opts.Known.ByToken(id)
	if len(known) == 0 {
		return c.listing.checkToken(q.Request, id)
	}
	for _, k := range known {
		entry, err := c.opts.Ledger.Get(ctx, k.Name)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return err
		case !entry.NamesToken(id):
		case q.Entry != nil:
			q.Shared = true
			return nil
		default:
			q.Entry = entry
		}
	}
	return nil
}

// readOthers reads the other facts about a request: the approved requests of its token, and the
// other entries with its node name.
func (c *Controller) readOthers(ctx context.Context, q *approve.Question) error {
	if q.Shared || q.Entry.Spec.TokenID != approve.ClaimOf(q.Request).TokenID {
		return nil // it is denied in any case
	}
	var err error
	if q.Approved, err = c.approvedKeys(q.Entry.Spec.TokenID); err != nil {
		return err
	}
	return c.readRivals(ctx, q)
}

// readRivals reads the other entries with the node's name. The cache must have the current
// version of the entry, because then it has all older entries. For another machine without a
// known certificate, the API server is asked whether a request was approved.
func (c *Controller) readRivals(ctx context.Context, q *approve.Question) error {
	cached, known := c.opts.Known.Get(q.Entry.Name)
	if !known || cached.UID != q.Entry.UID || cached.ResourceVersion != q.Entry.ResourceVersion {
		return fmt.Errorf("look for other machines with the name of node %s: %w", q.Entry.Spec.NodeName, errBehind)
	}
	q.Used = map[types.UID]bool{}
	for _, rival := range c.opts.Known.ByNode(q.Entry.Spec.NodeName) {
		if rival.UID != q.Entry.UID && rival.Phase() == v1alpha1.Issued {
			latest, err := c.opts.Ledger.Get(ctx, rival.Name)
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return err
			}
			keys, err := c.approvedKeys(latest.Spec.TokenID)
			if err != nil {
				return err
			}
			rival, q.Used[latest.UID] = latest, len(keys) > 0
		}
		q.Entries = append(q.Entries, rival)
	}
	return nil
}

// approvedKeys returns the keys of a token's requests that an approver approved. Requests exist
// for an hour. An approver of an earlier version wrote the key to the token's Secret, and not to
// its entry.
func (c *Controller) approvedKeys(token string) ([]string, error) {
	requests, err := c.requestsOf(byApproved, v1alpha1.TokenUser(token))
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, csr := range requests {
		keys = append(keys, csr.key)
	}
	return keys, nil
}

// bind writes the key and the request to the token's entry. From then on the token can be used
// for this key only, and after its expiration for this request only. The update fails if the
// entry has changed since it was read. So a concurrent change of the entry, by another approver,
// a revocation or a new token, comes either before or after the binding.
func (c *Controller) bind(ctx context.Context, q *approve.Question) error {
	key := approve.PublicKey(q.Request.Spec.Request)
	if q.Entry.BoundKey() == key {
		return nil
	}
	bound := q.Entry.DeepCopy()
	bound.Status.Binding = &v1alpha1.TokenBinding{
		TokenID: bound.Spec.TokenID, PublicKey: key, RequestUID: q.Request.UID,
		ApproveUntil: &metav1.Time{Time: q.Now.Add(approve.BoundRequestLife).Truncate(time.Second)},
	}
	if _, err := c.opts.Ledger.UpdateStatus(ctx, bound); err != nil {
		return fmt.Errorf("bind bootstrap token %s to a key: %w", bound.Spec.TokenID, err)
	}
	return nil
}
