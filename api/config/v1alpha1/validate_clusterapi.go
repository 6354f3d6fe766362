package v1alpha1

// ClusterAPI is where Cluster API registers the machines that may join. Without namespaces, it registers none, and the
// evidence alone decides.
type ClusterAPI struct {
	// Namespaces are the namespaces of the Machines. Whoever can write Machines there registers machines.
	Namespaces []string `json:"namespaces"`
	// ClusterName is the name of the Cluster of the Machines.
	ClusterName string `json:"clusterName"`
	// Kubeconfig is the path of a kubeconfig for the management cluster. The default is the cluster of the service.
	Kubeconfig string `json:"kubeconfig"`
}

// Enabled reports whether Cluster API registers the machines.
func (c *ClusterAPI) Enabled() bool { return len(c.Namespaces) > 0 }

func (v *validation) clusterAPI(b *Bootstrap) {
	const field = "bootstrap.clusterAPI"
	c := &b.ClusterAPI
	v.list(field+".namespaces", c.Namespaces, isNamespaceName, "a namespace of the management cluster")
	switch google := b.Attestor == OIDCAttestor && b.OIDC.Preset == GooglePreset; {
	case !c.Enabled():
		if c.ClusterName+c.Kubeconfig != "" {
			v.wrong(field+".namespaces", "required with the other fields of %s: the namespaces of the Machines", field)
		}
		return
	case b.Attestor != AWSAttestor && b.Attestor != ExecAttestor && !google:
		v.wrong(field, "want bootstrap.attestor: aws or exec, or oidc with the preset Google: no other evidence names the provider ID "+
			"by which Machines of Cluster API are found")
	}
	if !isNamespaceName(c.ClusterName) {
		v.wrong(field+".clusterName", "want the name of the Cluster%s: without it, machines of other clusters could join",
			given(c.ClusterName))
	}
}
