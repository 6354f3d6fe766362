package fakeapiserver

import (
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kindOf returns the kind of a resource.
func (s *Server) kindOf(at *place) string {
	if kind := s.opts.Resources[at.version][at.resource]; kind != "" {
		return kind
	}
	return map[string]string{
		"certificatesigningrequests": "CertificateSigningRequest", "nodeattestations": "NodeAttestation", "machines": "Machine",
		"nodes": "Node", "secrets": "Secret", "leases": "Lease", "configmaps": "ConfigMap", "pods": "Pod",
		"events": "Event", "iamidentitymappings": "IAMIdentityMapping",
		"clusterroles": "ClusterRole", "clusterrolebindings": "ClusterRoleBinding", "roles": "Role", "rolebindings": "RoleBinding",
		"mutatingwebhookconfigurations": "MutatingWebhookConfiguration",
		"nodescopes":                    "NodeScope", "quarantines": "Quarantine",
	}[at.resource]
}

func (s *Server) serveVersion(w http.ResponseWriter) {
	version := s.opts.Version()
	major, minor, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	reply(w, http.StatusOK, Object{"major": major, "minor": minor, "gitVersion": version})
}

// discovery lists the resources, if the path is one of discovery.
func (s *Server) discovery(w http.ResponseWriter, path string) bool {
	version := strings.TrimPrefix(strings.TrimPrefix(path, "/apis/"), "/api/")
	switch {
	case path == "/api":
		reply(w, http.StatusOK, metav1.APIVersions{Versions: []string{"v1"}})
	case path == "/apis":
		list := metav1.APIGroupList{}
		for gv := range s.opts.Resources {
			if group, version, ok := strings.Cut(gv, "/"); ok {
				v := metav1.GroupVersionForDiscovery{GroupVersion: gv, Version: version}
				list.Groups = append(list.Groups, metav1.APIGroup{
					Name: group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v,
				})
			}
		}
		reply(w, http.StatusOK, list)
	case s.opts.Resources[version] != nil:
		list := metav1.APIResourceList{GroupVersion: version}
		for name, kind := range s.opts.Resources[version] {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: name, SingularName: strings.ToLower(kind), Kind: kind, Namespaced: namespaced(name),
				Verbs: metav1.Verbs{"list", "watch"},
			})
		}
		reply(w, http.StatusOK, list)
	default:
		return false
	}
	return true
}

// namespaced reports whether the objects of a resource that discovery lists have a namespace.
func namespaced(resource string) bool {
	return slices.Contains([]string{
		"pods", "secrets", "configmaps", "serviceaccounts", "persistentvolumeclaims", "services", "events", "endpoints", "leases",
		"resourceclaims", "podcertificaterequests", "roles", "rolebindings", "deployments",
	}, resource)
}
