package aws

import "github.com/node-authorizer/node-authorizer/verdict"

// The codes of refusals because of the instance or the source address. See
// docs/reference/reasons.
const (
	// WrongAccount: the instance is in an account whose machines may not join.
	WrongAccount verdict.Code = "WrongAccount"
	// WrongRegion: the instance is in a region whose machines may not join.
	WrongRegion verdict.Code = "WrongRegion"
	// InstanceNotFound: EC2 has no such instance.
	InstanceNotFound verdict.Code = "InstanceNotFound"
	// InstanceTerminated: the instance is terminated or shutting down.
	InstanceTerminated verdict.Code = "InstanceTerminated"
	// InstanceNotRunning: the instance is stopped, or changes its state.
	InstanceNotRunning verdict.Code = "InstanceNotRunning"
	// DocumentContradicted: EC2 contradicts the document.
	DocumentContradicted verdict.Code = "DocumentContradicted"
	// WrongVPC: the instance is in a VPC whose machines may not join.
	WrongVPC verdict.Code = "WrongVPC"
	// WrongCluster: the instance does not have the cluster's tag.
	WrongCluster verdict.Code = "WrongCluster"
	// WrongInstanceProfile: the instance has none of the required instance profiles.
	WrongInstanceProfile verdict.Code = "WrongInstanceProfile"
	// WrongSourceAddress: the source address is not one that the instance sends from.
	WrongSourceAddress verdict.Code = "WrongSourceAddress"
	// CallerIdentityMissing: a signed request to STS is required and missing.
	CallerIdentityMissing verdict.Code = "CallerIdentityMissing"
	// CallerIdentityInvalid: the signed request to STS is malformed, or not signed by the
	// instance.
	CallerIdentityInvalid verdict.Code = "CallerIdentityInvalid"
)
