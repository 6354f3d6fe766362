// Package bootstrap lets machines join: it turns a machine's evidence into one
// bootstrap token for one node name.
//
// Make a [Service] with [New] from an attestor and the ledger, and serve
// [Service.Handler] over TLS.
//
// A machine without any credential sends evidence. An attestor says which
// machine it is and which name it has. The ledger, a custom resource in the API
// server, has one entry for each machine: creating it is what makes a request
// the first, and it holds the id of the token before the token exists. The secret
// half of the token follows from that entry and a key that all replicas share. So any
// number of requests, at any number of replicas, end in one Secret with one
// token, and what a crash interrupts, the next request completes. The service
// keeps no state of its own, lists nothing, and reads no Secret but that of its key.
//
// Whether a token was used, its entry says: the approver writes there which key it
// was used for. A token that is replaced is good for nothing from the moment on when
// its entry names another.
//
// A machine that has used its token gets no other, unless the policy for
// attesting again says so: evidence alone is known to everybody who can reach the
// machine's metadata service.
//
// The wire protocol is that of the node-authorizer of kops:
//
//	POST /authorize/{nodeName}
//	GET /health
package bootstrap
