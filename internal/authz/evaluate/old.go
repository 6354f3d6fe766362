package evaluate

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
)

// Ages reports whether the state is fresh enough to use. The live state of package source
// implements it.
type Ages interface {
	// Fresh reports whether all of the state is fresh enough. It takes no lock.
	Fresh() bool
	// TooOld returns an error if one of the kinds is too old.
	TooOld(source.Kinds) error
}

// noAges is for a state that does not age: one that comes from files, or from one list.
type noAges struct{}

func (noAges) Fresh() bool { return true }

func (noAges) TooOld(source.Kinds) error { return nil }

// tooOldIn returns an error if the state that an authorizer's opinion comes from is too old.
func (e *Evaluator) tooOldIn(o *chain.Opinion, req *access.Request) error {
	switch {
	case e.ages.Fresh():
		return nil
	case o.Authorizer == chain.NameNode:
		return e.ages.TooOld(authorizationReads(o.Code, req))
	case o.Authorizer == chain.NameRBAC:
		return e.ages.TooOld(source.RBACKinds())
	}
	return nil
}

// restrictionState is the state that NodeRestriction reads. It hides kinds that are too old,
// so that they allow nothing.
type restrictionState struct {
	state *source.State
	ages  Ages
}

func (s *restrictionState) known(on source.Kinds) bool {
	return s.ages.Fresh() || s.ages.TooOld(on) == nil
}

// Pod implements noderestriction.Pods.
func (s *restrictionState) Pod(namespace, name string) (*corev1.Pod, bool) {
	if !s.known(source.Pods) {
		return nil, false
	}
	return s.state.Pod(namespace, name)
}

// Node implements noderestriction.Nodes.
func (s *restrictionState) Node(name string) (*corev1.Node, bool) {
	if !s.known(source.Nodes) {
		return nil, false
	}
	return s.state.Node(name)
}

// ServiceAccount implements noderestriction.ServiceAccounts.
func (s *restrictionState) ServiceAccount(namespace, name string) (*corev1.ServiceAccount, bool) {
	if !s.known(source.ServiceAccounts) {
		return nil, false
	}
	return s.state.ServiceAccount(namespace, name)
}

// PersistentVolumeClaim implements noderestriction.Volumes.
func (s *restrictionState) PersistentVolumeClaim(namespace, name string) (*corev1.PersistentVolumeClaim, bool) {
	if !s.known(source.PersistentVolumeClaims) {
		return nil, false
	}
	return s.state.PersistentVolumeClaim(namespace, name)
}

// PersistentVolume implements noderestriction.Volumes.
func (s *restrictionState) PersistentVolume(name string) (*corev1.PersistentVolume, bool) {
	if !s.known(source.PersistentVolumes) {
		return nil, false
	}
	return s.state.PersistentVolume(name)
}

// CSIDriver implements noderestriction.Volumes.
func (s *restrictionState) CSIDriver(name string) (*storagev1.CSIDriver, bool) {
	if !s.known(source.CSIDrivers) {
		return nil, false
	}
	return s.state.CSIDriver(name)
}
