// Package bootstrap lets machines join a cluster: it exchanges a machine's evidence for one
// bootstrap token for one node name.
//
// Create a [Service] with [New] from an attestor and the ledger, and serve
// [Service.Handler] over TLS.
//
// A machine without a credential sends evidence. An attestor identifies the machine and its
// node name. The ledger, a custom resource in the API server, has one entry for each
// machine. The request that creates the entry is the first one. The entry holds the id of
// the token before the token exists. The secret half of the token is derived from the entry
// and a key that all replicas share. So any number of requests, to any number of replicas,
// result in one Secret with one token, and the next request completes what a crash
// interrupted. The service keeps no state of its own, lists nothing, and reads no Secret
// except the Secret of its key.
//
// The entry also says whether the token was used: the approver writes the public key to it.
// A token is useless from the moment when its entry names another one.
//
// A machine that has used its token gets no other one, unless the policy for attesting again
// allows it: everybody who can reach the machine's metadata service has its evidence.
//
// The wire protocol is the protocol of the node-authorizer of kops:
//
//	POST /authorize/{nodeName}
//	GET /health
package bootstrap
