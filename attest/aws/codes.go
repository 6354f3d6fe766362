package aws

import "github.com/node-authorizer/node-authorizer/verdict"

// The codes of refusals for which the instance, or where the request came from, is
// the reason. See docs/reasons.md.
const (
	// WrongAccount: the instance is of an account whose machines may not join.
	WrongAccount verdict.Code = "WrongAccount"
	// WrongRegion: the instance is in a region whose machines may not join.
	WrongRegion verdict.Code = "WrongRegion"
	// InstanceNotFound: EC2 knows no such instance.
	InstanceNotFound verdict.Code = "InstanceNotFound"
	// InstanceTerminated: the instance has ended, or is about to.
	InstanceTerminated verdict.Code = "InstanceTerminated"
	// InstanceNotRunning: the instance is stopped, or between two states.
	InstanceNotRunning verdict.Code = "InstanceNotRunning"
	// DocumentContradicted: EC2 says something else of the instance than the
	// document.
	DocumentContradicted verdict.Code = "DocumentContradicted"
	// WrongVPC: the instance is in a VPC whose machines may not join.
	WrongVPC verdict.Code = "WrongVPC"
	// WrongCluster: the instance has not the cluster's tag.
	WrongCluster verdict.Code = "WrongCluster"
	// WrongInstanceProfile: the instance has none of the instance profiles that are
	// asked for.
	WrongInstanceProfile verdict.Code = "WrongInstanceProfile"
	// WrongSourceAddress: the request came from an address that the instance does not
	// send from.
	WrongSourceAddress verdict.Code = "WrongSourceAddress"
	// CallerIdentityMissing: a signed request to STS is asked for, and none was sent.
	CallerIdentityMissing verdict.Code = "CallerIdentityMissing"
	// CallerIdentityInvalid: the signed request to STS is not as it must be, or is
	// not the instance's.
	CallerIdentityInvalid verdict.Code = "CallerIdentityInvalid"
	// ChallengeInvalid: the challenge in the signed request to STS is not the
	// server's, or no longer good.
	ChallengeInvalid verdict.Code = "ChallengeInvalid"
)
