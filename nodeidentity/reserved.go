package nodeidentity

import (
	"slices"
	"strings"
)

// Reserved reports whether pods and machines use a DNS name to reach services of the
// cluster, or themselves. A node with such a name could impersonate them, so no node
// may have one.
//
// Source: https://kubernetes.io/docs/concepts/services-networking/dns-pod-service/
func Reserved(name string) bool {
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	labels := strings.Split(name, ".")
	return labels[len(labels)-1] == "localhost" || labels[0] == "kubernetes" ||
		slices.Contains(labels, "svc") || strings.HasSuffix(name, ".cluster.local")
}
