package v1alpha1

import "github.com/node-authorizer/node-authorizer/verdict"

// The reasons that both who gives tokens and who approves certificates may have,
// because both ask the ledger.
const (
	// AttestationRevoked: somebody revoked the machine.
	AttestationRevoked verdict.Code = "AttestationRevoked"
	// NameTaken: another machine has the node name.
	NameTaken verdict.Code = "NameTaken"
)
