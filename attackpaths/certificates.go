package attackpaths

import "slices"

// The signers of client certificates.
const (
	clientSigner  = "kubernetes.io/kube-apiserver-client"
	kubeletSigner = "kubernetes.io/kube-apiserver-client-kubelet"
)

// certificates: a request, its approval or signature, and the certificate read from it.
func (c *combiner) certificates() {
	requests := c.rightVertex(createSigningRequests, "", "")
	for _, status := range c.have(updateApprovals) {
		for _, signer := range c.have(approveSigners) {
			c.certificate(ApproveCertificate, status, signer, requests, c.guardsOf(updateApprovals, ""))
		}
	}
	for _, status := range c.have(updateSigningStatus) {
		for _, signer := range c.have(signSigners) {
			c.certificate(SignCertificate, status, signer, requests, dependsOnCA, c.guardsOf(updateSigningStatus, ""))
		}
	}
	for _, auto := range c.have(autoApprove) {
		for _, request := range c.have(createSigningRequests) {
			for _, name := range c.readableRequests("") {
				read := c.rightVertex(readSigningRequests, "", name)
				c.pair(ApproveCertificate, c.fact(everyNodeUser, ""), c.guardsOf(createSigningRequests, ""), auto, request, read)
			}
		}
	}
}

func (c *combiner) certificate(code Code, status, signer held, requests vertex, conditions ...string) {
	dependsOn := allOf(append(conditions, c.guardsOf(createSigningRequests, ""))...)
	for _, name := range c.readableRequests(status.name) {
		read := c.rightVertex(readSigningRequests, "", name)
		if signs(signer, clientSigner) {
			for _, to := range [...]string{everyUser, everyGroup, everyNodeUser, everyIdentity} {
				c.pair(code, c.fact(to, ""), dependsOn, status, signer, c.fact(clientRequests, ""), read)
			}
		}
		if signs(signer, kubeletSigner) {
			c.pair(code, c.fact(everyNodeUser, ""), dependsOn, status, signer, requests, read)
		}
	}
}

// readableRequests are the names of rights to read requests that let the certificate of a
// request with some name be read; the attacker chooses the name if the right to write its
// status has none.
func (c *combiner) readableRequests(name string) []string {
	if name != "" {
		return []string{"", name}
	}
	names := []string{""}
	for _, k := range c.requestReads {
		names = append(names, k.name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// signs reports whether a right is one for a signer: by its name, or by its domain.
func signs(h held, signer string) bool {
	return h.name == "" || h.name == signer || h.name == "kubernetes.io/*"
}
