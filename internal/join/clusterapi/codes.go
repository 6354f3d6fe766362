package clusterapi

import "github.com/node-authorizer/node-authorizer/verdict"

// The codes of refusals. See docs/reference/reasons.
const (
	MachineNotFound  verdict.Code = "ClusterAPIMachineNotFound"
	MachineAmbiguous verdict.Code = "ClusterAPIMachineAmbiguous"
	MachineDeleting  verdict.Code = "ClusterAPIMachineDeleting"
	NodeMismatch     verdict.Code = "ClusterAPINodeMismatch"
	AddressMismatch  verdict.Code = "ClusterAPIAddressMismatch"
)
