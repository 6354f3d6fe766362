package attackpaths

import "slices"

// The signers of client certificates.
const (
	clientSigner  = "kubernetes.io/kube-apiserver-client"
	kubeletSigner = "kubernetes.io/kube-apiserver-client-kubelet"
)

// certificates: a request, and its approval or signature. The API server answers a second, empty patch
// of the approval with the request and its certificate; who signs has the certificate. A request that
// is approved by itself has to be read.
func (c *combiner) certificates() {
	for _, status := range c.have(updateApprovals) {
		for _, signer := range c.have(approveSigners) {
			c.certificate(ApproveCertificate, status, signer, c.guardsOf(updateApprovals, ""))
		}
	}
	for _, status := range c.have(updateSigningStatus, patchSigningStatus) {
		for _, signer := range c.have(signSigners) {
			c.certificate(SignCertificate, status, signer, dependsOnCA, c.guardsOf(status.right, ""))
		}
	}
	names := []string{""} // of requests that can be read; the attacker chooses the name of its own
	for _, k := range c.requestReads {
		names = append(names, k.name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	for _, auto := range c.have(autoApprove) {
		for _, request := range c.have(createSigningRequests) {
			for _, name := range names {
				if request.name != "" && name != "" && name != request.name {
					continue
				}
				read := c.rightVertex(readSigningRequests, "", name)
				c.pair(ApproveCertificate, c.fact(everyNodeUser, ""), c.guardsOf(createSigningRequests, ""), auto, request, read)
			}
		}
	}
}

func (c *combiner) certificate(code Code, status, signer held, conditions ...string) {
	dependsOn := allOf(append(conditions, c.guardsOf(createSigningRequests, ""))...)
	if signs(signer, clientSigner) {
		for _, to := range [...]string{everyUser, everyAccountName, everyGroup, everyNodeUser, everyIdentity} {
			c.pair(code, c.fact(to, ""), dependsOn, status, signer, c.fact(clientRequests, ""))
		}
	}
	if signs(signer, kubeletSigner) {
		c.pair(code, c.fact(everyNodeUser, ""), dependsOn, status, signer, c.rightVertex(createSigningRequests, "", ""))
	}
}

// signs reports whether a right is one for a signer: by its name, or by its domain.
func signs(h held, signer string) bool {
	return h.name == "" || h.name == signer || h.name == "kubernetes.io/*"
}
