package inventory

import (
	"slices"
	"strings"
)

// eksLabels begin the labels of nodes in EKS. Sources: EKS' documentation of managed node groups, Fargate and Auto Mode; eksctl.
var eksLabels = []string{"eks.amazonaws.com/", "alpha.eksctl.io/"}

// EKSVersion reports whether a version of an API server or kubelet is one of EKS.
func EKSVersion(version string) bool { return strings.Contains(version, "-eks-") }

// NoteMappings notes that there is the ConfigMap with which EKS maps identities, kube-system/aws-auth.
func (i *Inventory) NoteMappings() { i.mappings = true }

// EKS reports whether the objects show that the cluster is one of EKS: the ConfigMap aws-auth, the version of a kubelet, or a
// label of a node.
func (i *Inventory) EKS() bool {
	return i.mappings || slices.ContainsFunc(i.Nodes(), func(n Node) bool {
		if EKSVersion(n.KubeletVersion) {
			return true
		}
		for label := range n.Labels {
			if slices.ContainsFunc(eksLabels, func(prefix string) bool { return strings.HasPrefix(label, prefix) }) {
				return true
			}
		}
		return false
	})
}
