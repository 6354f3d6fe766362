// Package approve decides the CertificateSigningRequests of kubelets.
//
// Put a request into a [Question] with the facts about its machine. [Decide] says whether to
// approve it, to deny it or to leave it to others, and why.
//
// A kubelet sends three kinds of requests: with the bootstrap token of its machine for its
// first client certificate, with that certificate for the next one, and with that certificate
// for the certificate of its serving port. Each kind has an ordered list of checks, which are
// rows of one table: first the checks of the request itself, then the
// checks against the facts. The first check that fails decides, and gives the code.
//
// A request is approved only if all checks of its kind pass. Requests that are not from
// kubelets or are decided already are left to other approvers. The signers of
// kube-controller-manager check less: they check the form of a request, not whose
// name it contains, and copy what they do not check. Therefore a request must not contain
// anything that a kubelet's request does not.
//
// The names in the serving certificate of a node that was never attested are compared with the
// sources that the operator lists ([Source]). One source must vouch for all of them.
//
// The package makes no requests. The caller looks up the facts, and must not treat a failed
// look-up as "there is none".
//
// Sources: https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/#kubernetes-signers,
// RFC 2986 (requests), RFC 5280 section 4.2.1.6 (subject alternative names).
package approve
