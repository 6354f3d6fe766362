package approver

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
	"github.com/node-authorizer/node-authorizer/approve"
)

// errBehind says that the cache has not seen yet what the API server has.
var errBehind = errors.New("the ledger's cache is behind")

// settleClient decides the request of a bootstrap token. The token is bound to
// the request's key before the approval is written.
func (c *Controller) settleClient(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) (approve.Answer, error) {
	q := &approve.Question{Request: csr, Now: c.opts.Clock(), Options: c.policy}
	if err := c.readEntry(ctx, q, approve.ClaimOf(csr).TokenID); err != nil {
		return approve.Answer{}, err
	}
	if q.Entry != nil {
		lock := c.named(q.Entry.Spec.NodeName)
		lock.Lock()
		defer lock.Unlock()
		if err := c.readOthers(ctx, q); err != nil {
			return approve.Answer{}, err
		}
	}
	answer := approve.Decide(q)
	if answer.Outcome == approve.Approve {
		if err := c.bind(ctx, q); err != nil {
			return answer, err
		}
	}
	return answer, c.write(ctx, csr, &answer)
}

// readEntry reads the entry of the ledger that names a token from the API server: the
// cache says only which one that is. Two that name it are as good as none.
func (c *Controller) readEntry(ctx context.Context, q *approve.Question, id string) error {
	known := c.opts.Known.ByToken(id)
	if len(known) == 0 {
		return c.listing.checkToken(ctx, q.Request.UID, id)
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

// readOthers reads what else than the entry decides about a request: the requests of
// its token that were approved, and the other entries with its node name.
func (c *Controller) readOthers(ctx context.Context, q *approve.Question) error {
	if q.Shared || q.Entry.Spec.TokenID != approve.ClaimOf(q.Request).TokenID {
		return nil // it will be denied whatever else there is
	}
	var err error
	if q.Approved, err = c.approvedKeys(q.Entry.Spec.TokenID); err != nil {
		return err
	}
	return c.readRivals(ctx, q)
}

// readRivals reads which other entries have the node's name. The cache must have
// come to the entry's own version, for then it has every entry that is older. Of
// another machine that is not known to have a certificate, the API server tells
// whether it is about to get one.
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

// approvedKeys returns the keys of a token's requests that an approver approved.
// They are there for an hour. An approver of an earlier version wrote the key into the
// token's Secret, and not into its entry.
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

// bind writes the key and the request into the token's entry: from then on the token is
// good for this key alone, and after its end for this request alone. The entry must be as it was read. Whatever else changes it at the same
// time, another approver, a revocation or a new token, comes before this or after it.
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
