package controller

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/internal/join/approve"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// request is what the informer keeps of a CertificateSigningRequest: its requester and its result.
// Requesters control the size of their requests, so each text here is limited in length. A
// decision uses the object itself, which is read from the API server.
type request struct {
	metav1.ObjectMeta // name, UID, resource version and creation time

	claim   approve.Claim
	decided bool
	// requester is the user who requests a kubelet's client certificate; empty for requests
	// for other signers, and for users that are neither tokens nor nodes.
	requester string
	// with is the id of the credential with which the request was made; empty if the API
	// server does not name it, or if the ledger cannot store it.
	with string
	// renewed is true if an approver approved the request as a renewal.
	renewed bool
	// key is the public key that an approver approved for a token; empty if none did.
	key string
	// refusal is the last condition Denied or Failed; nil if there is none.
	refusal *certificatesv1.CertificateSigningRequestCondition
	// certificate is the issued certificate; nil if it is not a node's client certificate.
	certificate *certificate
}

// certificate describes a client certificate that was issued to a node.
type certificate struct {
	user, credential string
	end              time.Time
}

// maxUserName is the maximum length of the user name of a node: the name of a node is a DNS
// subdomain. The user name of a token is shorter.
const maxUserName = len(nodeidentity.UserPrefix) + 253

// keep is the transform of the informer.
func keep(object any) (any, error) {
	csr, ok := object.(*certificatesv1.CertificateSigningRequest)
	if !ok {
		return object, nil // it is transformed already
	}
	k := &request{
		ObjectMeta: metav1.ObjectMeta{
			Name: shortened(csr.Name), UID: csr.UID, ResourceVersion: csr.ResourceVersion, CreationTimestamp: csr.CreationTimestamp,
		},
		decided: approve.Decided(csr),
	}
	if len(csr.Spec.Username) > maxUserName {
		return k, nil // the ledger cannot have such a node
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
				Type: c.Type, LastUpdateTime: c.LastUpdateTime,
				Reason: cut(c.Reason, maxConditionMessage), Message: cut(c.Message, maxConditionMessage),
			}
		}
	}
	return k, nil
}

// unreadableKey stands for the key of an approved request that cannot be parsed. It differs from
// every other key.
const unreadableKey = "unreadable"

func approvedKey(csr *certificatesv1.CertificateSigningRequest) string {
	if key := approve.PublicKey(csr.Spec.Request); key != "" {
		return key
	}
	return unreadableKey
}

// issued returns the client certificate of a node that was issued for a request; nil if there is
// none.
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

// of returns the certificate that was issued for a request if it is for this node.
func (r *request) of(node string) *certificate {
	if user, _ := nodeidentity.User(node); r.certificate == nil || r.certificate.user != user {
		return nil
	}
	return r.certificate
}

// cut cuts text to a number of bytes, at the end of a character. The result does not share memory
// with a longer text.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(strings.Clone(text[:most]), "")
}

// shortened limits the length of a request's name, which is its key in the informer. A shortened
// name is still too long for a request that is decided, and different from all other names.
func shortened(name string) string {
	if len(name) <= maxRequestName {
		return name
	}
	hash := sha256.Sum256([]byte(name))
	return strings.Clone(name[:maxRequestName]) + "-" + hex.EncodeToString(hash[:])
}
