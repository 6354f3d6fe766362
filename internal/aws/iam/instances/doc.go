// Package instances looks up EC2 instances and their roles, and caches them.
//
// Requests to EC2 go through package ec2instances, in batches and within a rate limit.
// Many nodes authenticate at once when a cluster grows, after a power failure, or when a
// control plane is replaced. So answers are also cached for some minutes. A look-up beyond
// the rate limit fails with [iam.Throttled].
//
// Some answers may change soon: the instance does not exist, does not run, or has no name
// or profile yet. They are cached for seconds only. Errors are not cached.
//
// The roles of an instance are the roles of its instance profile. IAM returns them, one
// profile per request; EC2 does not. There are few profiles.
//
// Source: GetInstanceProfile
// (https://docs.aws.amazon.com/IAM/latest/APIReference/API_GetInstanceProfile.html).
package instances
