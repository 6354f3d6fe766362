package inventory

import "strings"

// eksLabels begin the labels of nodes in EKS. Sources: EKS' documentation of managed node groups, Fargate and Auto Mode; eksctl.
var eksLabels = []string{"eks.amazonaws.com/", "alpha.eksctl.io/"}

// EKSVersion reports whether a version of an API server or kubelet is one of EKS.
func EKSVersion(version string) bool { return strings.Contains(version, "-eks-") }

// EKS reports whether a node shows that the cluster is one of EKS: by the version of its kubelet, or by a label.
func (i *Inventory) EKS() bool {
	for _, n := range i.nodes {
		if EKSVersion(n.KubeletVersion) {
			return true
		}
		for label := range n.Labels {
			for _, prefix := range eksLabels {
				if strings.HasPrefix(label, prefix) {
					return true
				}
			}
		}
	}
	return false
}
