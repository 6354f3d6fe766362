package v1alpha1

import "github.com/node-authorizer/node-authorizer/verdict"

// The reasons of both the bootstrap service and the approver. Both use the ledger.
const (
	// AttestationRevoked: the machine was revoked.
	AttestationRevoked verdict.Code = "AttestationRevoked"
	// NameTaken: another machine has the node name.
	NameTaken verdict.Code = "NameTaken"
)
