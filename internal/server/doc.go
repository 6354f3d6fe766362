// Package server is the node-authorizer server. From its configuration it makes the
// listeners that API servers, machines and monitoring call, and their handlers.
//
// It has up to four parts, and each works without the others: webhooks that
// decide about nodes for API servers, the webhook that authenticates AWS IAM
// tokens, the bootstrap service that lets machines join, and the approver of their
// certificates. A server reads only what its parts need: only the webhooks that
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
// Until every source of mappings has been read, the answer about a token is an error:
// neither an authentication nor a refusal. After that, a source that becomes unreadable
// keeps its last valid mappings.
//
// Callers of the webhooks show a client certificate. It is checked in the
// handshake and again when the authorities change, so that a caller whose
// authority was removed is refused on connections that are open. Certificates of
// machines are checked for each request and not in the handshake, so that the answer can
// say what is wrong with a certificate.
//
// On shutdown, /readyz fails first, and the approver gives its lease to others;
// then, after a delay, the listeners close and requests under way are answered.
package server
