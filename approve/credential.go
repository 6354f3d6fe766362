package approve

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
)

// credentialKey is the key of a user's extra under which API servers of
// Kubernetes 1.32 and later say with which credential it authenticated (KEP-4193).
const credentialKey = "authentication.kubernetes.io/credential-id"

// CredentialID names a client certificate as API servers do.
func CredentialID(certificate *x509.Certificate) string {
	digest := sha256.Sum256(certificate.Raw)
	return "X509SHA256=" + hex.EncodeToString(digest[:])
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
