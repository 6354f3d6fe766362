package attackpaths

import (
	"errors"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodescope"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// Cluster is what paths are computed from. It must not change while [New] runs.
type Cluster struct {
	// Inventory is what runs and exists.
	Inventory *inventory.Inventory
	// Relations are those between nodes and objects, for what a node's credential reads.
	Relations *graph.Graph
	// RBAC is the roles and bindings.
	RBAC *rbac.Policy
	// Features are the features of the cluster's Kubernetes version.
	Features kubeversion.Features
	// Audiences lists the audiences of tokens that a node may request for a pod, and
	// whether they are restricted: noderestriction's Audiences. It is asked about pods with
	// volumes of CSI drivers; nil stands for no such volumes. It is not asked where
	// Features restrict no audiences.
	Audiences func(namespace, pod string) (audiences []string, restricted bool)
	// Users are identities from which paths start, beside those in bindings.
	Users []Identity
	// EKS is true for clusters that read the ConfigMap kube-system/aws-auth.
	EKS bool
	// Serves reports whether the API server serves a resource; nil if that is unknown.
	Serves func(group, resource string) bool
	// Custom are techniques that the user adds.
	Custom []CustomTechnique
	// NodeScopes are the scopes that kube-apiserver is taken to ask about; nil for none. Those in the
	// mode Observe do not count.
	NodeScopes *nodescope.Policy
	// Policies evaluates admission policies; nil leaves them undecided.
	Policies PolicyEvaluator
}

// Identity is a user with its groups; system:authenticated need not be named.
type Identity struct {
	Name   string
	Groups []string
}

func (c *Cluster) check() error {
	if c.Inventory == nil || c.Relations == nil || c.RBAC == nil {
		return errors.New("attack paths: the cluster has no inventory, relations or RBAC policy")
	}
	return checkCustom(c.Custom)
}

// serves is false only for what is known not to be served.
func (c *Cluster) serves(group, resource string) bool {
	return c.Serves == nil || c.Serves(group, resource)
}
