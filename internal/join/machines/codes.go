package machines

import "github.com/node-authorizer/node-authorizer/verdict"

// The codes of refusals. See docs/reference/reasons.
const (
	MachineNotRegistered verdict.Code = "MachineNotRegistered"
	PendingApproval      verdict.Code = "PendingApproval"
	TooManyPending       verdict.Code = "TooManyPending"
	MachineExpired       verdict.Code = "MachineExpired"
	AddressNotRegistered verdict.Code = "AddressNotRegistered"
	MachineAmbiguous     verdict.Code = "MachineAmbiguous"
)
