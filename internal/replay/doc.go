// Package replay puts the requests of kubelets in an audit log to the evaluators, and
// says which would be refused that were allowed, which were refused and why, and which
// kubelets go by a name that is not a node's.
//
// Whoever asks is found out from what the log notes: a user with a node's name in the
// group of nodes conforms; one in the group without such a name, with such a name
// outside of the group, one that calls itself a kubelet, or that writes a Node's
// status or renews its Lease, is a kubelet that does not. Users with bootstrap tokens
// are on their way to a name. Everybody else is passed over. A request that somebody
// makes in the name of another is the other's.
//
// What a request is about is read from its path, as authorizers see it. The object that the
// log has with it counts only where the path is lost.
//
// The evaluators answer from one state of the cluster; the log is of another time.
// Refusals that could be for want of objects that are gone by now are marked, and
// writes about which the log does not hold what a rule looks at are counted, not
// guessed.
package replay
