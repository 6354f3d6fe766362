// Package server is the node-authorizer server: from its configuration it makes
// the listeners that API servers and monitoring call, and what answers them.
//
// A server begins to listen at once and answers /livez from then on. It follows
// the cluster as soon as the API server can be reached, which on a control plane
// may be later: kube-apiserver may be waiting for this very server. Until the
// state of the cluster has been read, /readyz fails, and a question about a node
// that the state could change is answered with an error. Questions about users
// that are not nodes never depend on the cluster, so the server's own requests
// to it do not depend on the server.
//
// Callers of the webhooks show a client certificate. It is checked in the
// handshake and again when the authorities change, so that a caller whose
// authority was removed is refused on connections that are open.
//
// On shutdown, /readyz fails first; then, after a delay, the listeners close and
// requests under way are answered.
package server
