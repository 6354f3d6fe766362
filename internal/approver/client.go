package approver

import (
	"context"
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/approve"
	"github.com/node-authorizer/node-authorizer/internal/ledger"
)

const kindSecret = "secret"

// errBehind says that the cache has not seen yet what the API server has.
var errBehind = errors.New("the ledger's cache is behind")

// settleClient decides the request of a bootstrap token. The token is bound to
// the request's key before the approval is written.
func (c *Controller) settleClient(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) (approve.Answer, error) {
	q := &approve.Question{Request: csr, Now: c.opts.Clock(), Options: c.policy}
	secret, err := c.readToken(ctx, q, approve.ClaimOf(csr).TokenID)
	if err != nil {
		return approve.Answer{}, err
	}
	if q.Entry != nil {
		lock := c.named(q.Entry.Spec.NodeName)
		lock.Lock()
		defer lock.Unlock()
		if err := c.readRivals(ctx, q); err != nil {
			return approve.Answer{}, err
		}
		if q.Approved, err = c.approvedKeys(q.Entry.Spec.TokenID); err != nil {
			return approve.Answer{}, err
		}
	}
	answer := approve.Decide(q)
	if answer.Outcome == approve.Approve {
		if err := c.bind(ctx, secret, q); err != nil {
			return answer, err
		}
	}
	return answer, c.write(ctx, csr, &answer)
}

// readToken reads a token's Secret and the entry of the ledger that owns it. If
// the Secret does not exist, it takes the entry that the cache knows.
func (c *Controller) readToken(ctx context.Context, q *approve.Question, id string) (*corev1.Secret, error) {
	name := ledger.TokenSecretName(id)
	secret, err := c.opts.Client.CoreV1().Secrets(ledger.TokenNamespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		if known := c.opts.Known.ByToken(id); len(known) > 0 {
			q.Entry = known[0]
		}
		return nil, nil
	}
	if err != nil {
		return nil, wrap(err, "read", kindSecret, ledger.TokenNamespace+"/"+name)
	}
	q.Token = &approve.Token{ID: id, Ended: secret.DeletionTimestamp != nil}
	token, err := ledger.ParseToken(secret)
	if err != nil {
		return secret, nil // a Secret of another form is a token that nobody owns
	}
	q.Token.Owner, q.Token.Expiration, q.Token.PublicKey = token.EntryUID, token.Expiration, token.PublicKey
	entry, err := c.opts.Ledger.Get(ctx, token.Entry)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	if err == nil {
		q.Entry = entry
	}
	return secret, nil
}

// readRivals reads which other entries have the node's name. The cache must have
// come to the entry's own version, for then it has every entry that is older. Of
// another machine whose status does not say that it has a certificate, the token
// tells whether it is about to get one.
func (c *Controller) readRivals(ctx context.Context, q *approve.Question) error {
	if q.Token == nil || q.Entry.UID != q.Token.Owner {
		return nil // it will be denied whoever else there is
	}
	cached, known := c.opts.Known.Get(q.Entry.Name)
	if !known || cached.UID != q.Entry.UID || cached.ResourceVersion != q.Entry.ResourceVersion {
		return fmt.Errorf("look for other machines with the name of node %s: %w", q.Entry.Spec.NodeName, errBehind)
	}
	q.Entries = c.opts.Known.ByNode(q.Entry.Spec.NodeName)
	q.Bound = map[types.UID]bool{}
	for _, rival := range q.Entries {
		if rival.UID == q.Entry.UID || rival.Phase() != v1alpha1.Issued {
			continue
		}
		name := ledger.TokenSecretName(rival.Spec.TokenID)
		secret, err := c.opts.Client.CoreV1().Secrets(ledger.TokenNamespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return wrap(err, "read", kindSecret, ledger.TokenNamespace+"/"+name)
		}
		if err == nil && metav1.IsControlledBy(secret, rival) {
			key := secret.Annotations[ledger.PublicKeyAnnotation]
			q.Bound[rival.UID] = key != "" && key != ledger.NoPublicKey
		}
		keys, err := c.approvedKeys(rival.Spec.TokenID)
		if err != nil {
			return err
		}
		q.Bound[rival.UID] = q.Bound[rival.UID] || len(keys) > 0
	}
	return nil
}

// approvedKeys returns the keys of a token's requests that an approver approved.
// They are there for an hour; the token's Secret may be deleted earlier, by the
// token cleaner or by people, and the bootstrap service makes it anew while the
// ledger knows of no certificate.
func (c *Controller) approvedKeys(token string) ([]string, error) {
	requests, err := c.requestsOf(byApproved, v1alpha1.TokenUser(token))
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, csr := range requests {
		keys = append(keys, approve.PublicKey(csr.Spec.Request))
	}
	return keys, nil
}

// bind writes the key into the token's Secret, which is from then on good for
// this key alone, and not for long. A token that was bound to the key before and
// would end while its kubelet waits gets its short time anew, within what the
// ledger gave it.
func (c *Controller) bind(ctx context.Context, secret *corev1.Secret, q *approve.Question) error {
	end := q.Now.Add(c.opts.BoundTokenLife)
	if limit := q.Entry.Spec.TokenExpiration.Time; limit.Before(end) {
		end = limit
	}
	if q.Token.PublicKey != "" {
		if q.Token.Expiration.Sub(q.Now) >= min(c.opts.BoundTokenLife/2, end.Sub(q.Now)) {
			return nil
		}
	} else if q.Token.Expiration.Before(end) {
		end = q.Token.Expiration
	}
	bound := secret.DeepCopy()
	metav1.SetMetaDataAnnotation(&bound.ObjectMeta, ledger.PublicKeyAnnotation, approve.PublicKey(q.Request.Spec.Request))
	bound.Data[ledger.ExpirationKey] = []byte(end.UTC().Format(time.RFC3339))
	if _, err := c.opts.Client.CoreV1().Secrets(ledger.TokenNamespace).Update(ctx, bound, metav1.UpdateOptions{}); err != nil {
		return wrap(err, "bind to a key the token in", kindSecret, secret.Namespace+"/"+secret.Name)
	}
	return nil
}
