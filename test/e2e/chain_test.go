package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/node-authorizer/node-authorizer/test/e2e/server"
	"github.com/node-authorizer/node-authorizer/test/localplane"
	"github.com/node-authorizer/node-authorizer/test/localplane/manifests"
)

// TestServerDecidesForAllUsers runs a kube-apiserver without an authorizer of its own.
// The server answers for Node and RBAC, with the file of deploy/chain, including for the
// controllers, the scheduler and a node that joins with a bootstrap token.
func TestServerDecidesForAllUsers(t *testing.T) {
	c := newChained(t)
	plane, err := localplane.Start(t.Context(), localplane.Options{
		AuthorizationConfig: c.path("authorization.yaml"),
		Prepare:             c.prepare,
		OnAPIServer:         c.serve,
		Progress:            os.Stderr,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { orFatal(t, plane.Stop()) })
	admin := client(t, plane)

	if _, err := plane.AddNode(t.Context(), "web-1", localplane.NodeOptions{}); err != nil {
		t.Fatalf("a node joins: %v", err)
	}
	jane := as(t, plane, "jane")
	if got := mayI(t, jane, "list", "configmaps"); got.Allowed || got.Denied {
		t.Errorf("jane without a grant: %+v", got)
	}
	grant(t, admin, "jane", "configmaps")
	eventually(t, "jane is allowed what RBAC grants her", func(ctx context.Context) error {
		_, err := jane.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
		return err
	})
	if got := mayI(t, jane, "list", "configmaps"); !got.Allowed || !strings.Contains(got.Reason, `RoleBinding "default/jane"`) {
		t.Errorf("jane with the grant: %+v", got)
	}
	node := as(t, plane, "system:node:web-1", "system:nodes")
	if got := mayI(t, node, "get", "nodes"); got.Allowed ||
		!strings.Contains(got.Reason, "Node: a node may read only its own Node object; RBAC: ") {
		t.Errorf("a node lists all nodes: %+v", got)
	}
	if _, err := node.CoreV1().Nodes().Get(t.Context(), "web-1", metav1.GetOptions{}); err != nil {
		t.Errorf("a node reads itself: %v", err)
	}
	if _, err := node.CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{}); refusal(err) != nil {
		t.Errorf("a node lists all secrets: %v", err)
	}
}

// chained is a server that makes all decisions for a plane.
type chained struct {
	*server.Server
	dir, program string
}

func newChained(t *testing.T) *chained {
	t.Helper()
	c := &chained{dir: t.TempDir()}
	c.program = c.path("node-authorizer")
	if err := server.Build(t.Context(), "../..", c.program); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *chained) path(name string) string { return filepath.Join(c.dir, name) }

const (
	onlyWebhook = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- type: Webhook
  name: node-authorizer
  webhook:
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: %q}
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    timeout: 3s
    failurePolicy: Deny
    authorizedTTL: 1ms
    unauthorizedTTL: 1ms
`
	chainServer = `apiVersion: config.node-authorizer.io/v1alpha1
kind: ServerConfiguration
cluster: {kubeconfig: %q}
webhook: {address: %q, certificateFile: %q, keyFile: %q, clientCAFile: %q, allowedClientNames: [kube-apiserver]}
metrics: {address: %q}
authorization: {mode: Chain, configFile: %q}
`
)

// prepare writes the files of kube-apiserver.
func (c *chained) prepare(p *localplane.Plane) error {
	var err error
	if c.Server, err = server.New(p, "node-authorizer", c.path("server")); err != nil {
		return err
	}
	certificate, key, err := p.ClientCertificate("kube-apiserver-to-webhook", "kube-apiserver")
	if err != nil {
		return err
	}
	kubeconfig := c.path("authorize.kubeconfig")
	user := &clientcmdapi.AuthInfo{ClientCertificate: certificate, ClientKey: key}
	if err := server.WriteKubeconfig(kubeconfig, "https://"+c.Address+"/authorize", p.CAFile(), user); err != nil {
		return err
	}
	return os.WriteFile(c.path("authorization.yaml"), []byte(fmt.Sprintf(onlyWebhook, kubeconfig)), 0o600)
}

// serve starts the server. It reads the cluster as a user in system:masters, whom
// kube-apiserver allows everything without an authorizer.
func (c *chained) serve(ctx context.Context, p *localplane.Plane) error {
	if err := copyDefaultRoles(ctx, shop.Plane, p); err != nil {
		return err
	}
	authorizers, err := filepath.Abs("../../deploy/chain/authorization.yaml")
	if err != nil {
		return err
	}
	config := fmt.Sprintf(chainServer, p.AdminKubeconfig(), c.Address, c.File("tls.crt"), c.File("tls.key"), c.File("ca.crt"),
		c.MetricsAddress, authorizers)
	if err := c.WriteConfig(config); err != nil {
		return err
	}
	return c.Run(ctx, server.Command{Program: c.program})
}

// copyDefaultRoles creates the default roles and bindings, which kube-apiserver creates
// only if RBAC is one of its authorizers.
func copyDefaultRoles(ctx context.Context, from, to *localplane.Plane) error {
	source, err := dynamic.NewForConfig(from.AdminConfig())
	if err != nil {
		return err
	}
	var defaults []*unstructured.Unstructured
	for _, resource := range []string{"clusterroles", "clusterrolebindings", "roles", "rolebindings"} {
		list, err := source.Resource(rbacv1.SchemeGroupVersion.WithResource(resource)).
			List(ctx, metav1.ListOptions{LabelSelector: "kubernetes.io/bootstrapping=rbac-defaults"})
		if err != nil {
			return err
		}
		for _, item := range list.Items {
			item.SetResourceVersion("")
			item.SetUID("")
			item.SetManagedFields(nil)
			defaults = append(defaults, &item)
		}
	}
	return manifests.Apply(ctx, to.AdminConfig(), defaults, func(*unstructured.Unstructured) {})
}

// as returns a client with a certificate for a user.
func as(t *testing.T, plane *localplane.Plane, user string, groups ...string) kubernetes.Interface {
	t.Helper()
	path, err := plane.UserKubeconfig(strings.ReplaceAll(user, ":", "-"), user, groups...)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	return clientFor(t, config)
}

// mayI sends a SelfSubjectAccessReview in namespace default.
func mayI(t *testing.T, c kubernetes.Interface, verb, resource string) authorizationv1.SubjectAccessReviewStatus {
	t.Helper()
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: "default", Verb: verb, Resource: resource},
	}}
	answer, err := c.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status
}

// grant lets a user list a resource in namespace default.
func grant(t *testing.T, admin kubernetes.Interface, user, resource string) {
	t.Helper()
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{resource}}},
	}
	if _, err := admin.RbacV1().Roles("default").Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if _, err := admin.RbacV1().RoleBindings("default").Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
