package policies

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/scopetools/generate"
	"github.com/node-authorizer/node-authorizer/test/e2e/await"
)

// scopeCluster has two nodes, pods on them, and accounts that RBAC allows everything.
type scopeCluster struct {
	client *kubernetes.Clientset
	// pods are the UIDs of the pods, by name.
	pods map[string]string
	// tokens are clients by the names of their tokens.
	tokens   map[string]rest.Interface
	warnings *warnings
}

const definition = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.x.example"},
  "spec": {"group": "x.example", "scope": "Cluster", "names": {"plural": "things", "kind": "Thing"}, "versions": [{"name": "v1",
  "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}`

func newScopeCluster(t *testing.T) *scopeCluster {
	t.Helper()
	c := &scopeCluster{pods: map[string]string{}, tokens: map[string]rest.Interface{}, warnings: &warnings{}}
	admin := config()
	admin.WarningHandler = c.warnings
	c.client = clientFor(t, admin)
	c.createNodes(t)
	c.createThings(t)
	for _, account := range []string{"agent", "other", "audit", "warn", "deny"} {
		_, err := c.client.CoreV1().ServiceAccounts("team").Create(t.Context(),
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{})
		failOn(t, err)
	}
	for _, p := range []struct{ name, account, node string }{
		{"on-a", "agent", "a"},
		{"on-b", "agent", "b"},
		{"pending", "agent", ""},
		{"other", "other", "a"},
		{"audit", "audit", "a"},
		{"warn", "warn", "a"},
		{"deny", "deny", "a"},
	} {
		c.createPod(t, p.name, p.account, p.node)
	}
	for _, of := range []struct{ token, account, pod string }{
		{"a", "agent", "on-a"},
		{"b", "agent", "on-b"},
		{"pending", "agent", "pending"},
		{"unbound", "agent", ""},
		{"other", "other", "other"},
		{"other-unbound", "other", ""},
		{"audit", "audit", "audit"},
		{"warn", "warn", "warn"},
		{"deny", "deny", "deny"},
	} {
		c.createToken(t, of.token, of.account, of.pod)
	}
	return c
}

func clientFor(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	failOn(t, err)
	return client
}

func failOn(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// createNodes creates the nodes, the namespace and the rights.
func (c *scopeCluster) createNodes(t *testing.T) {
	t.Helper()
	for _, name := range []string{"a", "b"} {
		_, err := c.client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}},
			metav1.CreateOptions{})
		failOn(t, err)
	}
	_, err := c.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}},
		metav1.CreateOptions{})
	failOn(t, err)
	all := []string{"*"}
	_, err = c.client.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "everything"}, Rules: []rbacv1.PolicyRule{{Verbs: all, APIGroups: all, Resources: all}},
	}, metav1.CreateOptions{})
	failOn(t, err)
	_, err = c.client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "everything"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "everything"},
		Subjects: []rbacv1.Subject{
			{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:team"},
			{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "somebody"},
		},
	}, metav1.CreateOptions{})
	failOn(t, err)
}

// createThings defines a custom resource, and creates an object that no node is named after.
func (c *scopeCluster) createThings(t *testing.T) {
	t.Helper()
	admin := c.client.Discovery().RESTClient()
	failOn(t, admin.Post().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").
		SetHeader("Content-Type", "application/json").Body([]byte(definition)).Do(t.Context()).Error())
	failOn(t, await.Until(t.Context(), "the API server serves things", func(ctx context.Context) error {
		return admin.Post().AbsPath(things).SetHeader("Content-Type", "application/json").
			Body([]byte(thingBody(`"name": "own-a"`))).Do(ctx).Error()
	}))
}

func (c *scopeCluster) createPod(t *testing.T, name, account, node string) {
	t.Helper()
	created, err := c.client.CoreV1().Pods("team").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeName: node, ServiceAccountName: account, Containers: []corev1.Container{{Name: "c", Image: "i"}},
		},
	}, metav1.CreateOptions{})
	failOn(t, err)
	c.pods[name] = string(created.UID)
}

// createToken adds a client with a token, which is bound to a pod unless that is empty.
func (c *scopeCluster) createToken(t *testing.T, token, account, pod string) {
	t.Helper()
	request := &authenticationv1.TokenRequest{}
	if pod != "" {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod}
	}
	created, err := c.client.CoreV1().ServiceAccounts("team").CreateToken(t.Context(), account, request, metav1.CreateOptions{})
	failOn(t, err)
	of := rest.AnonymousClientConfig(config())
	of.BearerToken, of.QPS, of.WarningHandler = created.Status.Token, -1, c.warnings
	c.tokens[token] = clientFor(t, of).Discovery().RESTClient()
}

// enforce applies the policies of scopes as the command writes them.
func (c *scopeCluster) enforce(t *testing.T, scopes []*v1alpha1.NodeScope, action admissionv1.ValidationAction) {
	t.Helper()
	for _, s := range scopes {
		policy, binding := generate.Generate(s, action).Objects()
		_, err := c.client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(t.Context(), policy,
			metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
		failOn(t, err)
		_, err = c.client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(t.Context(), binding,
			metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
		failOn(t, err)
	}
}

// readScopes reads a scope without its kind.
func readScopes(t *testing.T, text string) []*v1alpha1.NodeScope {
	t.Helper()
	text = "{apiVersion: policy.node-authorizer.io/v1alpha1, kind: NodeScope, " + strings.TrimPrefix(text, "{")
	scopes, err := generate.Read(t.Context(), []string{"-"}, strings.NewReader(text))
	failOn(t, err)
	return scopes
}

// waitFor waits until a token cannot, or can, create another node's object.
func (c *scopeCluster) waitFor(t *testing.T, token string, refused bool) {
	t.Helper()
	failOn(t, await.Until(t.Context(), fmt.Sprintf("the policy of %s refuses is %v", token, refused), func(context.Context) error {
		err := c.send(t, scopeRequest{token: token, verb: "POST", path: things, body: thingBody(`"name": "c"`)})
		if apierrors.IsForbidden(err) != refused {
			return fmt.Errorf("refused is %v: %w", !refused, err)
		}
		return nil
	}))
}

// send sends a request, as a dry run if it writes.
func (c *scopeCluster) send(t *testing.T, r scopeRequest) error {
	t.Helper()
	token, as, impersonates := strings.Cut(r.token, " as ")
	verb, content := r.verb, "application/json"
	switch verb {
	case "PATCH":
		content = "application/merge-patch+json"
	case "APPLY":
		verb, content = "PATCH", "application/apply-patch+yaml"
	}
	request := c.tokens[token].Verb(verb).RequestURI(r.path).SetHeader("Content-Type", content)
	if verb != "GET" {
		request.Param("dryRun", metav1.DryRunAll)
	}
	if r.verb == "APPLY" {
		request.Param("fieldManager", "test")
	}
	if impersonates {
		request.SetHeader("Impersonate-User", as)
	}
	if r.body != "" {
		request.Body([]byte(r.body))
	}
	return request.Do(t.Context()).Error()
}

// warnings collects the warnings of responses.
type warnings struct {
	mu  sync.Mutex
	all []string
}

func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, text)
}

// take returns the warnings since the last call.
func (w *warnings) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := w.all
	w.all = nil
	return taken
}
