// Package generate makes clusters, their histories and questions about them,
// each from a seed: the same seed and options always give the same objects in
// the same order.
//
// The clusters are small, and their names are easy to confuse. Every kind of object and
// every kind of reference that the Node authorizer follows occurs, next to the
// ones that it must not follow; names are prefixes of each other; the same
// names occur in many namespaces and under many kinds; some objects are
// referenced from most pods, and some nodes have no pods at all. References may
// name objects that do not exist, and may be empty where the Kubernetes API lets them be.
//
// The questions aim at both outcomes: about half of them ask for an object that
// something on the asking node mentions, the rest miss it by a name, a
// namespace, a verb, a group, a selector or an identity.
//
// States and writes are the same for admission: a State is what NodeRestriction
// looks at, and a Writer draws writes about it. Each begins as one that is fine
// and is then, mostly, mutated once: the kind of the request and the mutation
// are its aim, so that a test knows which combinations it has tried.
//
// The package depends on the Kubernetes API types alone, so that tests and
// benchmarks of any authorizer can use it.
package generate
