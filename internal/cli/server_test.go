package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// startServer starts an API server for a script and sets $SERVER, or another variable, to its address:
//
//	apiserver VERSION DIR [VARIABLE]
//
// It serves the list in DIR/RESOURCE.json, or an empty list without the file, and single
// objects of these lists. A resource with a file DIR/RESOURCE.forbidden may not be read.
func startServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: apiserver VERSION DIR [VARIABLE]")
	}
	server := httptest.NewServer(&fileServer{version: args[0], dir: ts.MkAbs(args[1])})
	ts.Defer(server.Close)
	ts.Setenv(append(args, "SERVER")[2], server.URL)
}

// fileServer serves the part of the API that commands read.
type fileServer struct{ version, dir string }

// served is the API of a fileServer: kinds by resource, and these by group and version.
var served = map[string]map[string]string{
	"v1": {
		"pods": "Pod", "nodes": "Node", "secrets": "Secret", "configmaps": "ConfigMap", "persistentvolumes": "PersistentVolume",
		"persistentvolumeclaims": "PersistentVolumeClaim", "serviceaccounts": "ServiceAccount",
	},
	"storage.k8s.io/v1": {"volumeattachments": "VolumeAttachment", "csidrivers": "CSIDriver"},
	"rbac.authorization.k8s.io/v1": {
		"roles": "Role", "rolebindings": "RoleBinding", "clusterroles": "ClusterRole", "clusterrolebindings": "ClusterRoleBinding",
	},
	"certificates.k8s.io/v1": {"certificatesigningrequests": "CertificateSigningRequest"},
	"alpha.example.com/v1":   {"gadgets": "Gadget"},
	"beta.example.com/v1":    {"gizmos": "Gizmo"},
}

func (s *fileServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	gv := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/apis/"), "/api/")
	switch {
	case r.URL.Path == "/version":
		reply(w, map[string]string{"major": "1", "minor": strings.Split(s.version, ".")[1], "gitVersion": s.version})
	case r.URL.Path == "/api":
		reply(w, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case r.URL.Path == "/apis":
		reply(w, groups())
	case served[gv] != nil:
		reply(w, resourceList(gv))
	default:
		s.object(w, gv)
	}
}

// object serves a list, or one object of it.
func (s *fileServer) object(w http.ResponseWriter, resourcePath string) {
	resource, name := path.Base(resourcePath), ""
	if parent := path.Base(path.Dir(resourcePath)); parent == "configmaps" {
		resource, name = parent, resource
	}
	gv, _, _ := strings.Cut(path.Dir(resourcePath), "/namespaces")
	if s.forbidden(w, resource) {
		return
	}
	items := []json.RawMessage{}
	if text, err := os.ReadFile(path.Join(s.dir, resource+".json")); err == nil {
		if err := json.Unmarshal(text, &items); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	if name == "" {
		reply(w, map[string]any{
			"kind": served[gv][resource] + "List", "apiVersion": gv, "metadata": map[string]string{"resourceVersion": "1"}, "items": items,
		})
		return
	}
	for _, item := range items {
		var object metav1.PartialObjectMetadata
		if err := json.Unmarshal(item, &object); err == nil && object.Name == name {
			reply(w, item)
			return
		}
	}
	refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, resource, name+" not found")
}

func groups() metav1.APIGroupList {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for gv := range served {
		if group, version, ok := strings.Cut(gv, "/"); ok {
			v := metav1.GroupVersionForDiscovery{GroupVersion: gv, Version: version}
			list.Groups = append(list.Groups, metav1.APIGroup{
				Name: group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v,
			})
		}
	}
	return list
}

// resourceList gives the two custom resources the same short name.
func resourceList(gv string) metav1.APIResourceList {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv}
	for name, kind := range served[gv] {
		r := metav1.APIResource{
			Name: name, SingularName: strings.ToLower(kind), Kind: kind, Namespaced: true, Verbs: metav1.Verbs{"get", "list", "watch"},
		}
		if strings.HasSuffix(gv, "example.com/v1") {
			r.ShortNames = []string{"g"}
		}
		list.APIResources = append(list.APIResources, r)
	}
	return list
}

func (s *fileServer) forbidden(w http.ResponseWriter, resource string) bool {
	_, err := os.Stat(path.Join(s.dir, resource+".forbidden"))
	if err == nil {
		refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, resource, resource+" is forbidden")
	}
	return err == nil
}

func refuse(w http.ResponseWriter, status int, reason metav1.StatusReason, resource, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Reason: reason, Code: int32(status), Message: message, Details: &metav1.StatusDetails{Kind: resource},
	})
}

func reply(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}
