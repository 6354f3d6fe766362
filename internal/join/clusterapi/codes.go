package clusterapi

import "github.com/node-authorizer/node-authorizer/verdict"

// The codes of refusals. See docs/reference/reasons.
const (
	// MachineNotFound: no Machine of Cluster API has the provider ID of the machine.
	MachineNotFound verdict.Code = "ClusterAPIMachineNotFound"
	// MachineAmbiguous: several Machines of Cluster API have the provider ID.
	MachineAmbiguous verdict.Code = "ClusterAPIMachineAmbiguous"
	// MachineDeleting: the Machine is being deleted.
	MachineDeleting verdict.Code = "ClusterAPIMachineDeleting"
	// NodeMismatch: the Machine has another node.
	NodeMismatch verdict.Code = "ClusterAPINodeMismatch"
	// AddressMismatch: the Machine has none of the addresses of the machine.
	AddressMismatch verdict.Code = "ClusterAPIAddressMismatch"
)
