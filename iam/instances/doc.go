// Package instances looks EC2 instances and their roles up, and remembers them for a
// while.
//
// EC2 is asked through package ec2instances, in batches and within a rate limit. Nodes
// come many at once: when a cluster grows, after a power failure, when a control plane is
// replaced. So an answer is used for some minutes as well. A question that the rate limit
// leaves no room for is [iam.Throttled].
//
// That there is no such instance, that one does not run, or that one has no name or
// no profile yet, can be otherwise a moment later, so that such answers are used for
// seconds only. What could not be found out is an error, and is not remembered.
//
// The roles of an instance are those of its instance profile, which IAM knows and EC2
// does not. IAM has no request about several of them; there are few.
//
// Source: GetInstanceProfile
// (https://docs.aws.amazon.com/IAM/latest/APIReference/API_GetInstanceProfile.html).
package instances
