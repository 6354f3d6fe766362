package cli

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/access"
	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// readersCluster is an API server on which the user is in the group of deploy/reader. It serves
// every resource of Kubernetes, decides requests by RBAC, and records them.
type readersCluster struct {
	server *fakeapiserver.Server
	policy *rbac.Policy

	mu      sync.Mutex
	asked   map[string]bool
	refused map[string]bool
}

const readersGroup = "node-authorizer:readers"

// newReadersCluster applies the manifests of folders of deploy/reader.
func newReadersCluster(t *testing.T, folders ...string) *readersCluster {
	t.Helper()
	c := &readersCluster{policy: rbac.NewPolicy(), asked: map[string]bool{}, refused: map[string]bool{}}
	for _, folder := range folders {
		for _, document := range readerDocuments(t, folder) {
			c.apply(t, document)
		}
	}
	c.server = fakeapiserver.New(fakeapiserver.Options{
		Resources: allResources(), Version: func() string { return "v1.37.0" }, Fault: c.decide,
	})
	t.Cleanup(c.server.Close)
	return c
}

func readerDocuments(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "deploy", "reader", folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests in %q: %v", folder, err)
	}
	var documents []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, strings.Split(string(text), "\n---\n")...)
	}
	return documents
}

func (c *readersCluster) apply(t *testing.T, document string) {
	t.Helper()
	var header metav1.TypeMeta
	err := yaml.Unmarshal([]byte(document), &header)
	into := func(object any) {
		if err == nil {
			err = yaml.UnmarshalStrict([]byte(document), object)
		}
	}
	switch header.Kind {
	case "ClusterRole":
		role := &rbacv1.ClusterRole{}
		into(role)
		c.policy.SetClusterRole(role)
	case "ClusterRoleBinding":
		binding := &rbacv1.ClusterRoleBinding{}
		into(binding)
		c.policy.SetClusterRoleBinding(binding)
	case "Role":
		role := &rbacv1.Role{}
		into(role)
		c.policy.SetRole(role)
	case "RoleBinding":
		binding := &rbacv1.RoleBinding{}
		into(binding)
		c.policy.SetRoleBinding(binding)
	case "Kustomization":
	default:
		t.Fatalf("kind %q in deploy/reader", header.Kind)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// allResources are all resources of Kubernetes, and those that commands read besides.
func allResources() map[string]map[string]string {
	all := map[string]map[string]string{
		"apiregistration.k8s.io/v1":         {"apiservices": "APIService"},
		"iamauthenticator.k8s.aws/v1alpha1": {"iamidentitymappings": "IAMIdentityMapping"},
		policyv1alpha1.GroupVersion().String(): {
			policyv1alpha1.NodeScopeResource:  policyv1alpha1.NodeScopeKind,
			policyv1alpha1.QuarantineResource: policyv1alpha1.QuarantineKind,
		},
	}
	for _, gv := range scheme.Scheme.PrioritizedVersionsAllGroups() {
		kinds := map[string]string{}
		for kind := range scheme.Scheme.KnownTypes(gv) {
			resource, _ := meta.UnsafeGuessKindToResource(gv.WithKind(kind))
			kinds[resource.Resource] = kind
		}
		all[gv.String()] = kinds
	}
	return all
}

// decide refuses requests that RBAC does not allow. Discovery is allowed to all users of a cluster.
func (c *readersCluster) decide(r *http.Request) fakeapiserver.Fault {
	resolver := request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	info, err := resolver.NewRequestInfo(r)
	if err != nil {
		return fakeapiserver.Internal
	}
	if !info.IsResourceRequest {
		return fakeapiserver.NoFault
	}
	req := &access.Request{
		User: "jane", Groups: []string{readersGroup, "system:authenticated"}, Verb: info.Verb, ResourceRequest: true,
		Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource, Subresource: info.Subresource,
		Namespace: info.Namespace, Name: info.Name,
	}
	what := strings.TrimSuffix(req.Verb+" "+req.Resource+"."+req.Group, ".")
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.policy.Evaluate(req).Allowed {
		c.refused[what] = true
		return fakeapiserver.Forbidden
	}
	c.asked[what] = true
	return fakeapiserver.NoFault
}

// readersCommands are the commands for which deploy/reader is made, with arguments that make them
// read everything that they may read.
var readersCommands = [][]string{
	{"can-i", "get", "secrets/db", "-n", "shop", "--node", "worker-1"},
	{"can-i", "create", "serviceaccounts/api", "--subresource", "token", "-n", "shop", "--node", "worker-1"},
	{"can-i", "get", "secrets/db", "-n", "shop", "--as", "bob"},
	{"can-i", "get", "secrets/db", "-n", "shop", "--node", "worker-2"},
	{"explain", "get", "secrets/none", "-n", "shop", "--node", "worker-1"},
	{"explain", "get", "resourceslices/x", "--node", "worker-1"},
	{"reach", "worker-1"},
	{"reach", "worker-1", "--in-total"},
	{"who-can", "get", "secrets/db", "-n", "shop"},
	{"attack-paths", "node/worker-1"},
	{"attack-paths", "--all-nodes", "--what-to-change"},
	{"diff", "--without", "clusterrolebinding/none"},
	{"doctor"},
	{"doctor", "--plan"},
	{"snapshot", "-o", "-"},
}

// run runs the commands. Their output and decisions do not matter.
func (c *readersCluster) run(t *testing.T) {
	t.Helper()
	c.runAll(t, readersCommands)
}

func (c *readersCluster) runAll(t *testing.T, commands [][]string) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for _, args := range commands {
		var out, errOut bytes.Buffer
		Main(append(append([]string{binaryName}, args...), "--server", c.server.URL()), strings.NewReader(""), &out, &errOut)
		if text := errOut.String(); strings.Contains(text, "error:") && !strings.Contains(text, "unknown node") &&
			!strings.Contains(text, "snapshot is incomplete") {
			t.Errorf("%s: %s", args, &errOut)
		}
	}
}

// fill adds objects that lead the commands to others.
func (c *readersCluster) fill(t *testing.T) {
	t.Helper()
	for path, object := range map[string]string{
		"/api/v1/nodes/worker-1": `{"metadata":{"name":"worker-1"}}`,
		"/api/v1/namespaces/shop/pods/api": `{"metadata":{"name":"api","namespace":"shop"},"spec":{"nodeName":"worker-1",
			"serviceAccountName":"api","containers":[{"name":"c"}],
			"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"data"}}]}}`,
		"/api/v1/namespaces/kube-system/pods/kube-apiserver-a": `{
			"metadata":{"name":"kube-apiserver-a","namespace":"kube-system","labels":{"component":"kube-apiserver"}},
			"spec":{"containers":[{"name":"kube-apiserver","command":["kube-apiserver","--authorization-mode=RBAC"]}]}}`,
		"/api/v1/namespaces/shop/persistentvolumeclaims/data": `{"metadata":{"name":"data","namespace":"shop"},
			"spec":{"volumeName":"pv"}}`,
		"/api/v1/persistentvolumes/pv": `{"metadata":{"name":"pv"},"spec":{"claimRef":{"namespace":"shop","name":"data"},
			"csi":{"driver":"d","volumeHandle":"h","nodeStageSecretRef":{"namespace":"shop","name":"disk"}}}}`,
		"/api/v1/namespaces/kube-system/configmaps/aws-auth": `{"metadata":{"name":"aws-auth","namespace":"kube-system"},
			"data":{"mapRoles":"[]"}}`,
		"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/none": `{"metadata":{"name":"none"},
			"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"none"}}`,
	} {
		if err := c.server.Put(path, json.RawMessage(object)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestReadersMayReadWhatTheCommandsRead(t *testing.T) {
	c := newReadersCluster(t, "", "secrets", "openshift")
	c.fill(t)
	c.run(t)
	if len(c.refused) > 0 {
		t.Errorf("deploy/reader does not allow %v", slices.Sorted(maps.Keys(c.refused)))
	}
	t.Run("nothing else", func(t *testing.T) {
		for _, role := range c.policy.Roles() {
			if role.Role.Namespace == "openshift-kube-apiserver" {
				continue // read only of OpenShift
			}
			for _, rule := range role.Rules {
				ofPolicy := slices.Equal(rule.APIGroups, []string{policyv1alpha1.Group})
				for _, right := range rights(rule) {
					if ofPolicy && !strings.HasPrefix(right, "list ") {
						continue // for people, with kubectl
					}
					if !c.asked[right] {
						t.Errorf("no command needs %s of %s", right, role.Role)
					}
				}
			}
		}
	})
	t.Run("each kind of a state", func(t *testing.T) {
		for _, resource := range source.AllKinds().Resources() {
			if !c.asked["list "+resource.String()] {
				t.Errorf("no command was seen to list %s", resource)
			}
		}
	})
}

func TestReadersMayReadNodeScopesAndQuarantines(t *testing.T) {
	c := newReadersCluster(t, "")
	for _, resource := range []string{policyv1alpha1.NodeScopeResource, policyv1alpha1.QuarantineResource} {
		for _, verb := range []string{"get", "list", "watch", "update", "delete"} {
			allowed := c.policy.Evaluate(&access.Request{
				User: "jane", Groups: []string{readersGroup}, Verb: verb, ResourceRequest: true,
				Group: policyv1alpha1.Group, Resource: resource, Name: "agent",
			}).Allowed
			if allowed != (verb != "update" && verb != "delete") {
				t.Errorf("%s %s: %v", verb, resource, allowed)
			}
		}
	}
}

func TestReadersWithoutSecretsMissOnlySecrets(t *testing.T) {
	c := newReadersCluster(t, "")
	c.fill(t)
	c.run(t)
	if refused := slices.Sorted(maps.Keys(c.refused)); !slices.Equal(refused, []string{"list secrets"}) {
		t.Errorf("refused are %v, want only secrets", refused)
	}
}

func TestReadersMayReadTheAPIServersOfOpenShift(t *testing.T) {
	c := newReadersCluster(t, "", "openshift")
	if err := c.server.Put("/api/v1/namespaces/openshift-kube-apiserver/pods/kube-apiserver-a", json.RawMessage(`{
		"metadata":{"name":"kube-apiserver-a","namespace":"openshift-kube-apiserver"},
		"spec":{"containers":[{"name":"kube-apiserver","command":["hyperkube","kube-apiserver","--openshift-config=/x"]}]}}`)); err != nil {
		t.Fatal(err)
	}
	c.runAll(t, [][]string{{"doctor", "--checks", "admission"}})
	if !c.asked["get configmaps"] || len(c.refused) > 0 {
		t.Errorf("asked %v, refused %v", c.asked, c.refused)
	}
}

// rights lists the pairs of verb and resource of a rule.
func rights(rule rbacv1.PolicyRule) []string {
	var all []string
	for _, verb := range rule.Verbs {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				all = append(all, strings.TrimSuffix(verb+" "+resource+"."+group, "."))
			}
		}
	}
	return all
}
