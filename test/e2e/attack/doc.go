// Package attack holds the requests of an attacker who has the client certificate of the
// kubelet on the node web-1: every attack that the Node authorizer and NodeRestriction
// must stop, and every verb on every resource that they decide by its relation to the
// node, for objects that are related to the node, for objects of the node pay-1, and for
// objects that do not exist.
//
// The requests are data: a method, a path and a body. [Prepare] prepares a cluster, a
// [Sender] sends the requests, and [Markdown] renders the answers of two clusters.
package attack
