package approver

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"strings"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/node-authorizer/node-authorizer/approve"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// request is what the informer keeps of a CertificateSigningRequest: what became of it,
// and whose it is. Anybody who may create requests chooses how large they are, so each
// text in it is bounded. A request is decided by the object itself, which is read from
// the API server then.
type request struct {
	metav1.ObjectMeta // name, UID, resource version and creation time

	claim   approve.Claim
	decided bool
	// requester is the user who asks for a kubelet's client certificate; empty for
	// requests of other signers, and for users that are neither tokens nor nodes.
	requester string
	// with names the credential with which it was asked for; empty if the API server
	// does not say, or if the ledger cannot hold it.
	with string
	// renewed tells that an approver approved it as a renewal.
	renewed bool
	// key is the public key that an approver approved for a token; empty if none did.
	key string
	// refusal is the last condition Denied or Failed; nil if there is none.
	refusal *certificatesv1.CertificateSigningRequestCondition
	// certificate is what was issued; nil if that is no node's client certificate.
	certificate *certificate
}

// certificate is what is known of a client certificate that was issued to a node.
type certificate struct {
	user, credential string
	end              time.Time
}

// maxUserName is how long the user name of a node is at most: a node's name is a DNS
// subdomain. That of a token is shorter.
const maxUserName = len(nodeidentity.UserPrefix) + 253

// keep makes what the informer keeps of an object.
func keep(object any) (any, error) {
	csr, ok := object.(*certificatesv1.CertificateSigningRequest)
	if !ok {
		return object, nil // it is kept already
	}
	k := &request{
		ObjectMeta: metav1.ObjectMeta{Name: csr.Name, UID: csr.UID, ResourceVersion: csr.ResourceVersion, CreationTimestamp: csr.CreationTimestamp},
		decided:    approve.Decided(csr),
	}
	if len(csr.Spec.Username) > maxUserName {
		return k, nil // it is no node that the ledger can have
	}
	k.claim = approve.ClaimOf(csr)
	if csr.Spec.SignerName != certificatesv1.KubeAPIServerClientKubeletSignerName {
		return k, nil
	}
	k.requester, k.certificate = csr.Spec.Username, issued(csr)
	if with := approve.CredentialOf(csr); approve.IsCertificate(with) {
		k.with = with
	}
	for i := range csr.Status.Conditions {
		switch c := &csr.Status.Conditions[i]; {
		case c.Type == certificatesv1.CertificateApproved && c.Reason == string(approve.ClientCertificateApproved):
			k.key = approvedKey(csr)
		case c.Type == certificatesv1.CertificateApproved && c.Reason == string(approve.RenewalApproved):
			k.renewed = true
		case c.Type != certificatesv1.CertificateDenied && c.Type != certificatesv1.CertificateFailed:
		case k.refusal == nil || k.refusal.LastUpdateTime.Before(&c.LastUpdateTime):
			k.refusal = &certificatesv1.CertificateSigningRequestCondition{
				Type: c.Type, Reason: cut(c.Reason, maxConditionMessage), Message: cut(c.Message, maxConditionMessage), LastUpdateTime: c.LastUpdateTime,
			}
		}
	}
	return k, nil
}

// unreadableKey stands for the key of an approved request that cannot be read: it is no
// other request's.
const unreadableKey = "unreadable"

func approvedKey(csr *certificatesv1.CertificateSigningRequest) string {
	if key := approve.PublicKey(csr.Spec.Request); key != "" {
		return key
	}
	return unreadableKey
}

// issued returns the client certificate of a node that a request led to; nil if there
// is none.
func issued(csr *certificatesv1.CertificateSigningRequest) *certificate {
	block, _ := pem.Decode(csr.Status.Certificate)
	if block == nil {
		return nil
	}
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil || len(parsed.Subject.CommonName) > maxUserName {
		return nil
	}
	return &certificate{user: parsed.Subject.CommonName, credential: approve.CredentialID(parsed), end: parsed.NotAfter}
}

// of returns the certificate that a request led to if it is one of this node.
func (r *request) of(node string) *certificate {
	if user, _ := nodeidentity.User(node); r.certificate == nil || r.certificate.user != user {
		return nil
	}
	return r.certificate
}

// cut shortens text to a number of bytes, and to whole characters. It holds no longer
// text in memory.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(strings.Clone(text[:most]), "")
}

// shorten bounds a request's name, by which the informer keeps it. A name that was
// shortened is longer still than those of requests that are decided, and no other
// request's.
func shorten(csr *certificatesv1.CertificateSigningRequest) {
	if len(csr.Name) > maxRequestName {
		hash := sha256.Sum256([]byte(csr.Name))
		csr.Name = strings.Clone(csr.Name[:maxRequestName]) + "-" + hex.EncodeToString(hash[:])
	}
}

// shortWatch is a watch of requests whose names are bounded.
type shortWatch struct {
	watch.Interface
	events chan watch.Event
	done   chan struct{}
	stop   func()
}

func newShortWatch(of watch.Interface) *shortWatch {
	w := &shortWatch{Interface: of, events: make(chan watch.Event), done: make(chan struct{})}
	w.stop = sync.OnceFunc(func() { close(w.done); of.Stop() })
	go w.follow()
	return w
}

func (w *shortWatch) ResultChan() <-chan watch.Event { return w.events }

func (w *shortWatch) Stop() { w.stop() }

func (w *shortWatch) follow() {
	defer close(w.events)
	for event := range w.Interface.ResultChan() {
		if csr, ok := event.Object.(*certificatesv1.CertificateSigningRequest); ok {
			shorten(csr)
		}
		select {
		case w.events <- event:
		case <-w.done:
			return
		}
	}
}
