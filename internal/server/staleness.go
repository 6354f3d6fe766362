package server

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/node-authorizer/node-authorizer/chain"
	"github.com/node-authorizer/node-authorizer/internal/freshness"
	"github.com/node-authorizer/node-authorizer/internal/review"
	"github.com/node-authorizer/node-authorizer/internal/source"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// ages say whether the state may be used. The live state of package source does.
type ages interface {
	// Fresh reports whether all of it may. It takes no lock.
	Fresh() bool
	// TooOld returns an error if one of the kinds may not.
	TooOld(source.Kinds) error
}

// tooOldFor is the error for an answer of the Node authorizer that rests on a
// relation, found or missing, of which the state is too old.
func tooOldFor(a ages, code verdict.Code, req *nodeauthz.Request) error {
	if a.Fresh() || code != nodeauthz.PathToObject && code != nodeauthz.NoPathToObject {
		return nil
	}
	kind, known := nodeauthz.KindOf(req.Group, req.Resource)
	if !known {
		return nil
	}
	return a.TooOld(source.KindsAbout(kind))
}

// tooOld is the opinion beside the error of a state that is too old.
func tooOld(opinion review.Opinion) review.Opinion {
	return review.Opinion{
		Decision: verdict.NoOpinion, Code: freshness.StateTooOld, Node: opinion.Node, Authorizer: opinion.Authorizer,
	}
}

// tooOldIn is the error for what an authorizer of a chain said.
func (d *decider) tooOldIn(o *chain.Opinion, req *nodeauthz.Request) error {
	switch {
	case d.ages.Fresh():
		return nil
	case o.Authorizer == chain.NameNode:
		return tooOldFor(d.ages, o.Code, req)
	case o.Authorizer == chain.NameRBAC:
		return d.ages.TooOld(source.RBACKinds())
	}
	return nil
}

// restrictionState is the state as NodeRestriction may see it: what is too old
// is not there, so that nothing is allowed because of it.
type restrictionState struct {
	state *source.State
	ages  ages
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

// refusesUnfound reports whether a code of NodeRestriction is that of a refusal
// because something was not found in the state.
func refusesUnfound(code verdict.Code) bool {
	switch code {
	case noderestriction.PodNotFound, noderestriction.NodeNotFound, noderestriction.ServiceAccountNotFound,
		noderestriction.AudienceNotAllowed, noderestriction.AudienceLookupFailed:
		return true
	}
	return false
}

// restrictionKinds are the kinds that NodeRestriction looks for what it is asked
// about a resource.
func restrictionKinds(req *noderestriction.Request) source.Kinds {
	switch req.Resource {
	case "pods":
		if req.Operation == noderestriction.Create && req.Subresource == "" {
			return source.Nodes // that a mirror pod is owned by
		}
		return source.Pods
	case "serviceaccounts":
		return source.Pods | source.PersistentVolumeClaims | source.PersistentVolumes | source.CSIDrivers
	case "podcertificaterequests":
		return source.Pods | source.Nodes | source.ServiceAccounts
	}
	return 0
}

// stateAge holds while everything is young enough that answers about other
// things depend on.
func (w *webhooks) stateAge() (note string, err error) {
	live := w.live.Load()
	if live == nil {
		return "not known yet", nil
	}
	return stateAge(live.TooOld(^source.Kinds(0)))
}

func stateAge(err error) (string, error) {
	var old *source.AgeError
	if !errors.As(err, &old) {
		return "", nil
	}
	var needed, dispensable []string
	for _, r := range old.Resources {
		line := r.Resource.String() + " (" + r.OldBecause() + ")"
		if standAlone(r.Resource) {
			dispensable = append(dispensable, line)
		} else {
			needed = append(needed, line)
		}
	}
	if len(needed) > 0 {
		return "", fmt.Errorf("older than cluster.maxStaleness, %v, so that what depends on it is an error: %s",
			old.MaxStaleness, strings.Join(slices.Concat(needed, dispensable), ", "))
	}
	return fmt.Sprintf("older than %v, so that questions about these have no answer: %s", old.MaxStaleness, strings.Join(dispensable, ", ")), nil
}

// staleChanged logs that a resource is too old, and that it is so no more.
func (w *webhooks) staleChanged(r source.Watched, stale bool) {
	if !stale {
		w.logger.Info("the state of a resource is young enough again", "resource", r.Resource.String())
		return
	}
	w.logger.Error(errors.New(r.OldBecause()), "the state of a resource is too old: answers that depend on it are errors",
		"resource", r.Resource.String(), "maxStaleness", w.config.Cluster.MaxStaleness.Duration.String())
}

// stateReset logs that the state is read anew.
func (w *webhooks) stateReset(cause string) {
	w.logger.Error(errors.New(cause), "the state of the cluster was dropped and is read anew: answers that depend on it are errors until then")
}
