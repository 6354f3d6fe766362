package approve

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
)

// credentialKey is the key of a user's extra in which API servers of Kubernetes 1.32 and later
// name the credential of the user (KEP-4193).
const credentialKey = "authentication.kubernetes.io/credential-id"

// certificatePrefix is the prefix of the ids of client certificates.
const certificatePrefix = "X509SHA256="

// CredentialID returns the id that API servers give a client certificate.
func CredentialID(certificate *x509.Certificate) string {
	digest := sha256.Sum256(certificate.Raw)
	return certificatePrefix + hex.EncodeToString(digest[:])
}

// IsCertificate reports whether a text is the id of a client certificate, in the only form that
// API servers write and the ledger accepts.
func IsCertificate(id string) bool {
	digest, ok := strings.CutPrefix(id, certificatePrefix)
	return ok && len(digest) == 2*sha256.Size && strings.Trim(digest, "0123456789abcdef") == ""
}

// CredentialOf returns the id of the credential with which a request was made; empty if the
// API server does not name it.
func CredentialOf(csr *certificatesv1.CertificateSigningRequest) string {
	if ids := csr.Spec.Extra[credentialKey]; len(ids) == 1 {
		return ids[0]
	}
	return ""
}

// CredentialsOf returns the ids of all credentials that the API server names for a request. There
// is more than one only if the requester was impersonated.
func CredentialsOf(csr *certificatesv1.CertificateSigningRequest) []string {
	return csr.Spec.Extra[credentialKey]
}

// credentialOfAnother returns a failure if the certificate with which the request was made
// belongs, or may belong, to another machine; nil if it is the node's own as far as is known.
// Two machines can have one name in succession, and a certificate of the first is valid until
// it expires. A certificate that no entry has is refused while another machine that has or had
// the name may have a valid certificate.
func (s *subject) credentialOfAnother() *failure {
	credential := CredentialOf(s.Request)
	if credential == "" {
		return nil
	}
	holder, _ := s.holder()
	otherEntries := slices.DeleteFunc(slices.Clone(s.Others), func(e *v1alpha1.NodeAttestation) bool {
		return holder != nil && e.UID == holder.UID
	})
	for _, other := range otherEntries {
		if slices.Contains(other.Status.Credentials, credential) {
			return denied("node %s asks with the certificate of NodeAttestation %s, which had the name before",
				printable(s.claim.Node), other.Name)
		}
	}
	if holder == nil || slices.Contains(holder.Status.Credentials, credential) {
		return nil
	}
	for _, other := range otherEntries {
		if other.Spec.NodeName == s.claim.Node && MayHaveCertificate(other, s.Now) {
			return denied("node %s asks with a certificate that no NodeAttestation has, and that may be one of NodeAttestation %s",
				printable(s.claim.Node), other.Name)
		}
	}
	return nil
}

// MayHaveCertificate reports whether the machine of an entry may have a client certificate
// that is still valid.
func MayHaveCertificate(entry *v1alpha1.NodeAttestation, now time.Time) bool {
	if end := entry.Status.CertificateExpiration; end != nil {
		return now.Before(end.Time)
	}
	return entry.Status.Binding != nil || hadCertificate(entry) || len(entry.Status.Credentials) > 0
}
