package approve

import (
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// Kind is the kind of a kubelet's request.
type Kind uint8

const (
	// Other is not a request of a kubelet.
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
	return [...]string{Other: "other", Client: "client", Renewal: "renewal", Serving: "serving"}[k]
}

// Claim is the requester and the kind of request, as recorded by the API server. The
// requester is authenticated, unlike the content of the request.
type Claim struct {
	Kind Kind
	// TokenID is the public half of the token, for Client.
	TokenID string
	// Node is the name of the node that asks, for Renewal and Serving; empty if the user
	// name has no valid node name.
	Node string
}

// ClaimOf returns the claim of a request. A bootstrap token counts if its user is in
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

// tokenOf returns the id of a user's token, if the token is from this service.
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
		return c.Type == certificatesv1.CertificateApproved || c.Type == certificatesv1.CertificateDenied ||
			c.Type == certificatesv1.CertificateFailed
	})
}
