// Package approve decides the CertificateSigningRequests of kubelets.
//
// Put a request into a [Question] with what is known of its machine; [Decide] says
// whether to approve it, to deny it or to leave it alone, and why.
//
// A kubelet asks three times: with the bootstrap token of its machine for its
// first client certificate, with that certificate for the next one, and with it
// for the certificate of its own serving port. Each kind has an ordered list of
// checks, all rows of one table ([Rules] shows them): those of the request
// itself first, then those against what is known of the machine. The first check
// that is not passed decides, and names its code.
//
// A request is approved only when all checks of its kind are passed. What is not
// a kubelet's, or has been decided already, is left alone. What the signers of
// kube-controller-manager would take is only the beginning: they look at the
// shape of a request, not at whose name it bears, and they copy what they do not
// look at. Therefore a request may hold nothing here that a kubelet's does not.
//
// The package is pure. Whoever calls it looks things up, and a look-up that
// failed must not be put here as "there is none".
//
// Sources: https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/#kubernetes-signers,
// RFC 2986 (requests), RFC 5280 section 4.2.1.6 (subject alternative names).
package approve
