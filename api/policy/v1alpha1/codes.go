package v1alpha1

import "github.com/node-authorizer/node-authorizer/verdict"

// The reasons for which a quarantined node or credential is refused: its requests, its
// certificate requests, its bootstrap token and its user.
const (
	// NodeQuarantined: a Quarantine cuts off the node.
	NodeQuarantined verdict.Code = "NodeQuarantined"
	// CredentialQuarantined: a Quarantine cuts off the credential.
	CredentialQuarantined verdict.Code = "CredentialQuarantined"
)
