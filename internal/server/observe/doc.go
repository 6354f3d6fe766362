// Package observe wraps evaluators to count and log their decisions. The evaluators
// themselves do neither.
//
// Metrics have a registry of their own. Their labels have few values, which no request can
// add to: codes, resources from a table, endpoints. Names of nodes and objects are never
// labels. docs/reference/metrics.md lists all metrics.
//
// The log of refusals has one line for each refusal, with the user, the request and the
// reason. It contains only names and reasons, never an object, token or header. It has a
// rate limit, and reports how many lines it dropped.
package observe
