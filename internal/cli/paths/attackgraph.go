package paths

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/internal/admissionpolicy"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
)

func AttackGraph(s *command.Session, f *AttackPathsFlags) (*attackpaths.Graph, error) {
	return attackpaths.New(attackCluster(s, f))
}

// attackCluster is the state as attack paths need it.
func attackCluster(s *command.Session, f *AttackPathsFlags) *attackpaths.Cluster {
	c := &attackpaths.Cluster{
		Inventory: s.State.Inventory, Relations: s.State.Graph, RBAC: s.State.RBAC, Features: s.Features,
		Audiences: func(namespace, name string) ([]string, bool) { return audiencesOfPod(s, namespace, name) },
		EKS:       inventory.EKSVersion(s.State.ServerVersion) || s.State.Inventory.EKS(), Serves: serves(s),
		Custom: f.custom, Policies: admissionpolicy.New(),
	}
	if s.Scopes != nil {
		c.NodeScopes = s.Scopes.Policy()
	}
	for _, start := range f.starts {
		if start.Kind == attackpaths.User {
			c.Users = append(c.Users, attackpaths.Identity{Name: start.Name, Groups: f.groups})
		}
	}
	return c
}

// audiencesOfPod lists the audiences that a pod's volumes of CSI drivers need. The inventory has
// the audiences of its projected volumes.
func audiencesOfPod(s *command.Session, namespace, name string) ([]string, bool) {
	pod, ok := s.State.Pod(namespace, name)
	if !ok {
		return nil, true
	}
	pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Projected != nil })
	return s.Restriction.Audiences(pod)
}

// serves says which resources the API server serves; nil if that is unknown.
func serves(s *command.Session) func(group, resource string) bool {
	if s.State.Resources == nil {
		return nil
	}
	served := map[[2]string]bool{}
	for _, r := range s.State.Resources {
		served[[2]string{r.Group, r.Name}] = true
	}
	return func(group, resource string) bool { return served[[2]string{group, resource}] }
}
