// Package attack holds the requests that somebody makes who has broken into the
// node web-1 and holds its kubelet's client certificate: every attack that the
// Node authorizer and NodeRestriction are there to stop, and every verb on every
// resource that they judge by its relation to the node, for objects that are the
// node's own, for those of the node pay-1, and for objects that do not exist.
//
// The requests are data: a method, a path and a body. [Prepare] brings a cluster
// into the state they are about, a [Sender] sends them, and [Markdown] writes
// down what two clusters answered.
package attack
