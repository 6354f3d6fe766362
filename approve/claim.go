package approve

import (
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// Kind is which of a kubelet's requests it is.
type Kind uint8

const (
	// Other is no request of a kubelet.
	Other Kind = iota
	// Client is a machine's first request, with its bootstrap token.
	Client
	// Renewal is a node's request for its next client certificate.
	Renewal
	// Serving is a node's request for the certificate of its serving port.
	Serving
)

// String returns "other", "client", "renewal" or "serving".
func (k Kind) String() string {
	switch k {
	case Client:
		return "client"
	case Renewal:
		return "renewal"
	case Serving:
		return "serving"
	case Other:
	}
	return "other"
}

// Claim is who asks for what, as the API server wrote it down: the requester is
// authenticated, unlike what the request itself says.
type Claim struct {
	Kind Kind
	// TokenID is the public half of the token, of Client.
	TokenID string
	// Node is the name of the node that asks, of Renewal and Serving. It is empty
	// for a node that cannot be named.
	Node string
}

// ClaimOf says whose request it is. A bootstrap token counts if its user is in
// [v1alpha1.TokenGroup], a node if its user is in the group of nodes.
func ClaimOf(csr *certificatesv1.CertificateSigningRequest) Claim {
	client := csr.Spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName
	serving := csr.Spec.SignerName == certificatesv1.KubeletServingSignerName
	if !client && !serving {
		return Claim{}
	}
	if id, ok := tokenOf(csr.Spec.Username, csr.Spec.Groups); ok {
		return Claim{Kind: Client, TokenID: id}
	}
	identity := nodeidentity.Of(csr.Spec.Username, csr.Spec.Groups)
	switch {
	case !identity.IsNode:
		return Claim{}
	case client:
		return Claim{Kind: Renewal, Node: identity.Name}
	default:
		return Claim{Kind: Serving, Node: identity.Name}
	}
}

// tokenOf returns the id of the token of ours behind a user.
func tokenOf(user string, groups []string) (id string, ok bool) {
	id, ok = v1alpha1.TokenIDOf(user)
	return id, ok && slices.Contains(groups, v1alpha1.TokenGroup)
}

// Decided reports whether a request has been approved or denied, or its
// certificate has been issued or has failed.
func Decided(csr *certificatesv1.CertificateSigningRequest) bool {
	if len(csr.Status.Certificate) > 0 {
		return true
	}
	return slices.ContainsFunc(csr.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateApproved || c.Type == certificatesv1.CertificateDenied || c.Type == certificatesv1.CertificateFailed
	})
}
