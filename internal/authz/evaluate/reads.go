package evaluate

import (
	"slices"

	"github.com/node-authorizer/node-authorizer/access"
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
