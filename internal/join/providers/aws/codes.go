package aws

import "github.com/node-authorizer/node-authorizer/verdict"

// The codes of refusals because of the instance or the source address. See
// docs/reference/reasons.
const (
	WrongAccount          verdict.Code = "WrongAccount"
	WrongRegion           verdict.Code = "WrongRegion"
	InstanceNotFound      verdict.Code = "InstanceNotFound"
	InstanceTerminated    verdict.Code = "InstanceTerminated"
	InstanceNotRunning    verdict.Code = "InstanceNotRunning"
	DocumentContradicted  verdict.Code = "DocumentContradicted"
	WrongVPC              verdict.Code = "WrongVPC"
	WrongCluster          verdict.Code = "WrongCluster"
	WrongInstanceProfile  verdict.Code = "WrongInstanceProfile"
	WrongSourceAddress    verdict.Code = "WrongSourceAddress"
	CallerIdentityMissing verdict.Code = "CallerIdentityMissing"
	CallerIdentityInvalid verdict.Code = "CallerIdentityInvalid"
)
