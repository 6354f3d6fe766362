package approve

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
)

// credentialKey is the key of a user's extra under which API servers of
// Kubernetes 1.32 and later say with which credential it authenticated (KEP-4193).
const credentialKey = "authentication.kubernetes.io/credential-id"

// certificatePrefix begins the names of client certificates.
const certificatePrefix = "X509SHA256="

// CredentialID names a client certificate as API servers do.
func CredentialID(certificate *x509.Certificate) string {
	digest := sha256.Sum256(certificate.Raw)
	return certificatePrefix + hex.EncodeToString(digest[:])
}

// IsCertificate reports whether a text names a client certificate in the one form that
// API servers give it, and that the ledger takes.
func IsCertificate(id string) bool {
	digest, ok := strings.CutPrefix(id, certificatePrefix)
	return ok && len(digest) == 2*sha256.Size && strings.Trim(digest, "0123456789abcdef") == ""
}

// CredentialOf names the credential with which a request was made; empty if the
// API server does not say.
func CredentialOf(csr *certificatesv1.CertificateSigningRequest) string {
	if ids := csr.Spec.Extra[credentialKey]; len(ids) == 1 {
		return ids[0]
	}
	return ""
}

// ownerOfCredential returns the entry of another machine whose certificate the
// request was made with. Two machines can have one name after each other, and
// the certificate of the first is valid until it ends.
func (s *subject) ownerOfCredential() *v1alpha1.NodeAttestation {
	credential := CredentialOf(s.Request)
	holder, _ := s.holder()
	if credential == "" || holder == nil {
		return nil
	}
	for _, other := range s.Others {
		if other.UID != holder.UID && slices.Contains(other.Status.Credentials, credential) {
			return other
		}
	}
	return nil
}
