// Package server implements the node-authorizer server. It creates the listeners that API servers,
// machines and monitoring call, and their handlers, from the configuration.
//
// It has up to four parts, and each works without the others: webhooks that
// decide about nodes for API servers, the webhook that authenticates AWS IAM
// tokens, the bootstrap service that lets machines join, and the approver of their
// certificates. A server reads only what its parts need: only the webhooks that decide watch the
// cluster's pods.
//
// A server starts to listen at once and answers /livez from then on. It watches the cluster as soon
// as the API server answers, which may be later on a control plane: kube-apiserver may be waiting
// for this server. Until the state of the cluster has been read, /readyz fails, and a question about
// a node that depends on the state is answered with an error. Questions about users that are not
// nodes never depend on the cluster, so the server's own requests to the API server do not depend on
// the server. Machines are asked to retry until the ledger has been read and the cloud has answered
// where the server itself runs.
//
// Until every source of mappings has been read, the answer about a token is an error:
// neither an authentication nor a refusal. After that, a source that becomes unreadable
// keeps its last valid mappings.
//
// Callers of the webhooks send a client certificate. It is checked in the handshake and again when
// the authorities change, so that a caller whose authority was removed is refused on open
// connections. Certificates of machines are checked for each request and not in the handshake, so
// that the answer can say what is wrong with a certificate.
//
// On shutdown, /readyz fails first, and the approver releases its lease. After a delay, the listeners
// close and requests in flight are completed.
package server
