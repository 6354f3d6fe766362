// Package ec2instances looks up EC2 instances for all parts of a program.
//
// EC2 limits the requests of an account in a region. So a program has one [Client]. All
// callers share its rate limit, its limit of requests in flight and the requests
// themselves, each per region. Questions about the same instance are coalesced. Questions
// that arrive while requests are in flight are batched; otherwise a question does not
// wait. The number of waiting questions is bounded: further ones are [Throttled]. When EC2
// throttles, the rate limit decreases. It increases again with each answer.
//
// An instance does not exist only if EC2 says so in answer to a request about this
// instance alone. The answer to a batch omits unknown instances, and may be truncated. So
// each instance that it omits gets a request of its own. An answer to that request without
// the instance is an error.
//
// Sources: DescribeInstances
// (https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstances.html) and
// "Request throttling for the Amazon EC2 API"
// (https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html).
package ec2instances
