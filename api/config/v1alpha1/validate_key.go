package v1alpha1

// Key is how machines prove a key that a Machine registers.
type Key struct {
	// ClusterID is the cluster in the message that machines sign.
	ClusterID string `json:"clusterID"`
	// CertificateAuthorityFile is the path of a PEM file with the authorities of machines that are registered with the
	// subject of their certificate. It is empty if there are none.
	CertificateAuthorityFile string `json:"certificateAuthorityFile"`
}

func (v *validation) approval(b *Bootstrap) {
	oneOf(v, "bootstrap.approval", b.Approval, RegisteredApproval, ManualApproval)
	if b.Approval == ManualApproval && !b.UsesMachines() {
		v.wrong("bootstrap.approval", "Manual has no effect with bootstrap.attestor: %s, which asks for no registered machines", b.Attestor)
	}
}

func (v *validation) key(b *Bootstrap) {
	if !isClusterID(b.Key.ClusterID) {
		v.wrong("bootstrap.key.clusterID", "want a name of the cluster that no other cluster has: up to 63 letters, digits, dots, dashes "+
			"and underscores%s", given(b.Key.ClusterID))
	}
	if b.Reattestation == ReattestNewerEvidence {
		v.alwaysNewer(b.Attestor)
	}
}
