// Package instances looks EC2 instances up, many at once, and remembers them for a
// while.
//
// EC2 throttles an account after some twenty requests a second, and nodes come in
// crowds: when a cluster grows, after a power failure, when a control plane is
// replaced. So questions are gathered, one request is about as many instances as may
// be, the requests are limited in rate, and an answer is used for some minutes. Who
// has no turn soon is told to come again ([iam.Throttled]).
//
// That there is no such instance, that one does not run, or that one has no name or
// no profile yet, can be otherwise a moment later, so that such answers are used for
// seconds only. What could not be found out is an error, and is not remembered.
//
// The roles of an instance are those of its instance profile, which IAM knows and EC2
// does not. IAM has no request about several of them; there are few.
//
// Sources: the pages of DescribeInstances
// (https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstances.html),
// GetInstanceProfile
// (https://docs.aws.amazon.com/IAM/latest/APIReference/API_GetInstanceProfile.html)
// and "Request throttling for the Amazon EC2 API".
package instances
