// Package observe counts and logs what evaluators decide, as wrappers around
// them. The evaluators themselves do neither.
//
// Metrics have a registry of their own. Their labels have few values whatever
// is asked: codes, resources from a table, endpoints. Names of nodes and objects
// are never labels. docs/metrics.md lists all metrics.
//
// The log of refusals has one line for each refusal that names who asked for
// what and why it was refused. It holds names and reasons only: no object, token
// or header ever reaches it. It is limited in rate, and says how much it left
// out.
package observe
