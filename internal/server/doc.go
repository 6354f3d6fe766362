// Package server is the node-authorizer server: from its configuration it makes
// the listeners that API servers, machines and monitoring call, and what answers
// them.
//
// It has up to four parts, and each works without the others: webhooks that
// decide about nodes for API servers, the webhook that says whose AWS IAM tokens
// are, the bootstrap service that lets machines join, and the approver of their
// certificates. What a server does not do, it does not read: only the webhooks that
// decide follow the cluster's pods.
//
// A server begins to listen at once and answers /livez from then on. It follows
// the cluster as soon as the API server can be reached, which on a control plane
// may be later: kube-apiserver may be waiting for this very server. Until the
// state of the cluster has been read, /readyz fails, and a question about a node
// that the state could change is answered with an error. Questions about users
// that are not nodes never depend on the cluster, so the server's own requests
// to it do not depend on the server. Machines are told to try again, until the
// ledger has been read and the cloud has said where the server itself is.
//
// Nobody is authenticated by a token, and nobody is refused for it, before every source
// of mappings has been read; until then that is an error. From then on a source is
// as it was when it was good last.
//
// Callers of the webhooks show a client certificate. It is checked in the
// handshake and again when the authorities change, so that a caller whose
// authority was removed is refused on connections that are open. Certificates of
// machines are not checked in the handshake, for a machine should be told what is
// wrong with its own: each request is checked.
//
// On shutdown, /readyz fails first, and the approver gives its lease to others;
// then, after a delay, the listeners close and requests under way are answered.
package server
