package machines

import "github.com/node-authorizer/node-authorizer/verdict"

// The codes of refusals. See docs/reference/reasons.
const (
	// MachineNotRegistered: no Machine has what was proved.
	MachineNotRegistered verdict.Code = "MachineNotRegistered"
	// PendingApproval: a person has to approve the Machine.
	PendingApproval verdict.Code = "PendingApproval"
	// TooManyPending: no further machine may wait for approval.
	TooManyPending verdict.Code = "TooManyPending"
	// MachineExpired: the registration has ended.
	MachineExpired verdict.Code = "MachineExpired"
	// AddressNotRegistered: the request comes from another address than the registered ones.
	AddressNotRegistered verdict.Code = "AddressNotRegistered"
	// MachineAmbiguous: several Machines have what was proved.
	MachineAmbiguous verdict.Code = "MachineAmbiguous"
)
