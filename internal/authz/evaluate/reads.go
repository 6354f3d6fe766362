package evaluate

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// authorizationReads returns the kinds that an answer of the Node authorizer depends on. An
// answer about a path, found or missing, depends on the kinds that relate objects to nodes.
func authorizationReads(code verdict.Code, req *access.Request) source.Kinds {
	if code != nodeauthz.PathToObject && code != nodeauthz.NoPathToObject {
		return 0
	}
	kind, known := nodeauthz.KindOf(req.Group, req.Resource)
	if !known {
		return 0
	}
	return source.KindsAbout(kind)
}

// admissionReads returns the kinds that an answer of NodeRestriction depends on.
func admissionReads(req *noderestriction.Request, code verdict.Code) source.Kinds {
	switch code {
	case noderestriction.RestrictionsMet:
		return checkedKinds(req)
	case noderestriction.PodNotFound, noderestriction.PodUIDMismatch, noderestriction.PodNotOnNode,
		noderestriction.PodUsesOtherServiceAccount, noderestriction.CertificateForMirrorPod:
		return source.Pods
	case noderestriction.NodeNotFound, noderestriction.NodeUIDMismatch:
		return source.Nodes
	case noderestriction.ServiceAccountNotFound, noderestriction.ServiceAccountUIDMismatch:
		return source.ServiceAccounts
	case noderestriction.AudienceNotAllowed, noderestriction.AudienceLookupFailed:
		return source.Pods | source.PersistentVolumeClaims | source.PersistentVolumes | source.CSIDrivers
	}
	return 0
}

// checkedKinds returns the kinds that NodeRestriction looks up before it allows a write.
func checkedKinds(req *noderestriction.Request) source.Kinds {
	switch req.Resource {
	case "pods":
		if req.Operation == noderestriction.Create && req.Subresource == "" {
			return source.Nodes // the owner of a mirror pod
		}
		return source.Pods
	case "serviceaccounts":
		return source.Pods | source.PersistentVolumeClaims | source.PersistentVolumes | source.CSIDrivers
	case "podcertificaterequests":
		return source.Pods | source.Nodes | source.ServiceAccounts
	}
	return 0
}

// asksAuthorizers reports whether an answer of NodeRestriction depends on an access review.
func asksAuthorizers(code verdict.Code) bool {
	return code == noderestriction.AudienceNotAllowed || code == noderestriction.SignerNotAllowed ||
		code == noderestriction.AuthorizationFailed
}

// unread returns the resources of the given kinds that could not be read.
func unread(state *source.State, on source.Kinds) []source.Missing {
	missing := state.Missing()
	if on == 0 || len(missing) == 0 {
		return nil
	}
	return slices.DeleteFunc(missing, func(m source.Missing) bool { return m.Kind&on == 0 })
}

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

// ifKnown looks an object up, unless a kind is too old.
func ifKnown[O any](s *restrictionState, on source.Kinds, lookUp func() (*O, bool)) (*O, bool) {
	if !s.ages.Fresh() && s.ages.TooOld(on) != nil {
		return nil, false
	}
	return lookUp()
}

// Pod implements noderestriction.Pods.
func (s *restrictionState) Pod(namespace, name string) (*corev1.Pod, bool) {
	return ifKnown(s, source.Pods, func() (*corev1.Pod, bool) { return s.state.Pod(namespace, name) })
}

// Node implements noderestriction.Nodes.
func (s *restrictionState) Node(name string) (*corev1.Node, bool) {
	return ifKnown(s, source.Nodes, func() (*corev1.Node, bool) { return s.state.Node(name) })
}

// ServiceAccount implements noderestriction.ServiceAccounts.
func (s *restrictionState) ServiceAccount(namespace, name string) (*corev1.ServiceAccount, bool) {
	return ifKnown(s, source.ServiceAccounts, func() (*corev1.ServiceAccount, bool) { return s.state.ServiceAccount(namespace, name) })
}

// PersistentVolumeClaim implements noderestriction.Volumes.
func (s *restrictionState) PersistentVolumeClaim(namespace, name string) (*corev1.PersistentVolumeClaim, bool) {
	return ifKnown(s, source.PersistentVolumeClaims, func() (*corev1.PersistentVolumeClaim, bool) {
		return s.state.PersistentVolumeClaim(namespace, name)
	})
}

// PersistentVolume implements noderestriction.Volumes.
func (s *restrictionState) PersistentVolume(name string) (*corev1.PersistentVolume, bool) {
	return ifKnown(s, source.PersistentVolumes, func() (*corev1.PersistentVolume, bool) { return s.state.PersistentVolume(name) })
}

// CSIDriver implements noderestriction.Volumes.
func (s *restrictionState) CSIDriver(name string) (*storagev1.CSIDriver, bool) {
	return ifKnown(s, source.CSIDrivers, func() (*storagev1.CSIDriver, bool) { return s.state.CSIDriver(name) })
}
