// Package sts verifies AWS IAM tokens: it sends the request that a token contains to STS,
// which answers with the caller's identity.
//
// Requests go only to [Hosts]: the endpoints of STS in one partition, by the endpoint
// rules of the AWS SDK, and extra ones from the configuration. Answers are cached for a
// short time, and concurrent requests for the same token are coalesced. [Options] limit
// the requests in flight and the requests per second. Because anybody can make tokens
// that only STS can check, known callers have priority over unknown callers, and a host
// that does not answer delays no other host.
//
// Only an answer of STS, in STS's form, decides about a token. Anything else is an error.
package sts
