// Package approver decides the CertificateSigningRequests of kubelets in a
// cluster, by the rules of package approve, and writes into the ledger what
// became of its machines.
//
// What is decided rests on the API server's own state, read when it matters:
//
//   - A bootstrap token is bound to the key of the first request that passes, by
//     an update of its entry in the ledger under its resource version, before that
//     request is approved. However many approvers decide at once, one token yields
//     certificates for one key; and while a service gives the machine another token,
//     which is an update of the same entry, one of the two comes first.
//   - A request is read from the API server when it is decided. The informer keeps of
//     each only a bounded part: whose it is and what became of it. The key of an approved
//     request and the certificate that was issued are parsed once, when it changes.
//   - A request is approved or denied by an update under its resource version.
//     What somebody else decided stays.
//   - A look-up or an update that failed is tried again with backoff. Only an
//     answer is a reason to deny.
//
// One approver of a cluster leads, by a Lease. That saves work; it is not what
// makes the above true.
//
// The ledger's status follows from the requests, the certificates and the nodes
// that exist, so that an approver which was killed between two steps leaves
// nothing that the next one does not find.
package approver
