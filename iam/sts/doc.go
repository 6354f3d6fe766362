// Package sts finds out whose an AWS IAM token is, by sending the request that it
// consists of to STS.
//
// Only [Hosts] are asked: those that STS has in one partition, by the endpoint rules
// of the AWS SDK, and others that are named. Answers are remembered for a short
// while, the same token is asked about once at a time, and no more requests are under
// way, or sent within a second, than the limits of [Options] allow. Anybody can show
// tokens that have to be asked about, so that these limits are shared out: who got a user
// lately comes before strangers, and a host that does not answer holds up no other.
//
// Only an answer of STS, in STS's form, decides about a token. Whatever else comes
// is an error.
package sts
