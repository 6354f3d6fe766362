package v1alpha1

import "github.com/node-authorizer/node-authorizer/verdict"

// The reasons of both the bootstrap service and the approver. Both use the ledger.
const (
	AttestationRevoked verdict.Code = "AttestationRevoked"
	NameTaken          verdict.Code = "NameTaken"
)
