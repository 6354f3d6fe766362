// Package ec2instances asks EC2 about instances, for all parts of a program that need
// to know of them.
//
// EC2 limits the requests of an account in a region. So a program has one [Client], and
// whoever asks shares what it has per region: one rate limit, a number of requests in
// flight, and the requests themselves. A question that is in flight already is not asked
// again. Questions that come while others are asked are put together in a batch. One that
// comes alone does not wait. Which questions wait is bounded: those beyond the bound are
// [Throttled]. When EC2 throttles, the rate limit falls, and rises again with each answer.
//
// That EC2 has no such instance is known only when it says so about this instance alone.
// An answer about a batch leaves out the instances that EC2 does not know, and may be cut
// off, so that every instance that it does not name is asked for again by its id. An
// answer to that without the instance is an error.
//
// Sources: DescribeInstances
// (https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstances.html) and
// "Request throttling for the Amazon EC2 API"
// (https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html).
package ec2instances
