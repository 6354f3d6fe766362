// Package approver decides the CertificateSigningRequests of kubelets in a cluster, by the rules
// of package approve, and updates the status of the machines in the ledger.
//
// Decisions are based on the current state of the API server:
//
//   - A bootstrap token is bound to the key of the first request that passes, before that request
//     is approved. The binding is an update of the token's entry in the ledger, under its resource
//     version. So with any number of approvers, one token leads to certificates for one key only.
//     If a service gives the machine another token at the same time, which is an update of the same
//     entry, one of the two updates fails.
//   - A request is read from the API server when it is decided. The informer keeps a part of each
//     request, of limited size: its requester and its result. The key of an approved request and
//     the issued certificate are parsed once, when the request changes.
//   - A request is approved or denied by an update under its resource version. The decisions of
//     other approvers are not changed.
//   - Whether the node or the credential is quarantined is looked up last.
//   - A failed look-up or update is retried with backoff. It is never a reason to deny.
//
// Of all approvers of a cluster, one leads, by a Lease. That saves work; the guarantees above do
// not depend on it.
//
// The status of the ledger is derived from the existing requests, certificates and nodes. So an
// approver that was killed between two steps leaves nothing that the next one cannot find.
package controller
