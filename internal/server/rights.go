package server

import (
	"fmt"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/node-authorizer/node-authorizer/internal/state/source"
)

// isDispensable reports whether only questions about a resource itself depend on it, or, for CSI drivers,
// only tokens for their own audiences. If it may not be read, only those questions have no answer, and
// the server is ready: a newer Kubernetes may serve a resource that an older role does not grant.
func isDispensable(resource schema.GroupResource) bool {
	switch resource {
	case schema.GroupResource{Group: storagev1.GroupName, Resource: "volumeattachments"},
		schema.GroupResource{Group: storagev1.GroupName, Resource: "csidrivers"},
		schema.GroupResource{Group: resourcev1.GroupName, Resource: "resourceslices"},
		schema.GroupResource{Group: certificatesv1.GroupName, Resource: "podcertificaterequests"}:
		return true
	}
	return false
}

// rights returns an error if a resource may not be read that other answers depend on. Without pods, for
// example, the server would refuse most requests of kubelets.
func rights(missing []source.Missing) (note string, err error) {
	var needed, dispensable []string
	for _, m := range missing {
		line := m.Resource.String() + ": " + m.Reason
		if isDispensable(m.Resource) {
			dispensable = append(dispensable, line)
		} else {
			needed = append(needed, line)
		}
	}
	if len(needed) > 0 {
		return "", fmt.Errorf("cannot read what decisions depend on: %s", strings.Join(needed, "; "))
	}
	if len(dispensable) > 0 {
		return "questions about these have no answer: " + strings.Join(dispensable, "; "), nil
	}
	return "", nil
}
