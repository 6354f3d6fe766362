package machines

import (
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/ledger"
)

// Client reads and writes Machines.
type Client = gentype.ClientWithList[*v1alpha1.Machine, *v1alpha1.MachineList]

// NewClient returns a client of a cluster, with the rate limit of [ledger.REST].
func NewClient(config *rest.Config) (*Client, error) {
	client, parameters, err := ledger.REST(config)
	if err != nil {
		return nil, err
	}
	return gentype.NewClientWithList(
		v1alpha1.MachineResource, client, parameters, "",
		func() *v1alpha1.Machine { return &v1alpha1.Machine{} },
		func() *v1alpha1.MachineList { return &v1alpha1.MachineList{} },
	), nil
}
