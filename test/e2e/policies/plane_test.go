package policies

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/internal/admissionpolicy"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/test/e2e/audit"
	"github.com/node-authorizer/node-authorizer/test/e2e/await"
	"github.com/node-authorizer/node-authorizer/test/e2e/testmain"
	"github.com/node-authorizer/node-authorizer/test/localplane"
)

var (
	plane    *localplane.Plane
	auditLog *audit.Log
)

func TestMain(m *testing.M) {
	start := func(ctx context.Context, dir string) (err error) {
		if auditLog, err = audit.In(dir, "system:serviceaccount:team:audit"); err != nil {
			return err
		}
		plane, err = localplane.Start(ctx, localplane.Options{
			Progress: os.Stderr, WithoutControllers: true, WithoutBootstrapRBAC: true,
			ExtraArgs: map[localplane.Component][]string{localplane.APIServer: auditLog.APIServerArgs()},
		})
		return err
	}
	stop := func() error {
		if plane == nil {
			return nil
		}
		return plane.Stop()
	}
	os.Exit(testmain.Run(m, 10*time.Minute, start, stop))
}

// accounts are the service accounts of each namespace.
var accounts = []string{"attacker", "db", "default"}

// labelsOf are the labels of the namespace of a policy.
func labelsOf(name string) map[string]string {
	return map[string]string{corev1.LabelMetadataName: name, "env": "prod"}
}

func config() *rest.Config {
	c := rest.CopyConfig(plane.AdminConfig())
	c.QPS = -1
	return c
}

// apply creates the policies with a namespace for each, and waits until all are enforced.
func apply(t *testing.T, policies []*admissionv1.ValidatingAdmissionPolicy, bindings []*admissionv1.ValidatingAdmissionPolicyBinding) {
	t.Helper()
	client, err := kubernetes.NewForConfig(config())
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { remove(t, client) })
	// The last policy shows that the API server knows all.
	last := policies[1].DeepCopy()
	last.Name = "last"
	bound := bindings[1].DeepCopy()
	bound.Name, bound.Spec.PolicyName = "last", "last"
	bound.Spec.MatchResources.NamespaceSelector.MatchLabels[corev1.LabelMetadataName] = "last"
	for i, p := range append(append([]*admissionv1.ValidatingAdmissionPolicy{}, policies...), last) {
		b := append(append([]*admissionv1.ValidatingAdmissionPolicyBinding{}, bindings...), bound)[i]
		_, err := client.CoreV1().Namespaces().Create(ctx,
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.Name, Labels: labelsOf(p.Name)}}, metav1.CreateOptions{})
		check(err)
		for _, name := range accounts {
			_, err := client.CoreV1().ServiceAccounts(p.Name).Create(ctx,
				&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
			check(err)
		}
		_, err = client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(ctx, p, metav1.CreateOptions{})
		check(err)
		_, err = client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(ctx, b, metav1.CreateOptions{})
		check(err)
	}
	check(await.Until(ctx, "the API server enforces the last policy", func(ctx context.Context) error {
		if err := probe(ctx, client); !apierrors.IsInvalid(err) {
			return fmt.Errorf("want a refusal, got %v", err)
		}
		return nil
	}))
}

// probe is refused by the last policy.
func probe(ctx context.Context, client kubernetes.Interface) error {
	_, err := client.CoreV1().ConfigMaps("last").Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "probe"}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// remove removes all bindings, and waits until none is enforced: a selector of namespaces selects every
// object that is in none. They are deleted by name, and "last" comes after the others.
func remove(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	err := client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().DeleteCollection(ctx, metav1.DeleteOptions{},
		metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	err = await.Until(ctx, "the API server enforces no policy", func(ctx context.Context) error { return probe(ctx, client) })
	if err != nil {
		t.Fatal(err)
	}
}

// asked is a question that attack paths put to a policy, with the answer.
type asked struct {
	policy  string
	request *attackpaths.Request
	answer  attackpaths.PolicyAnswer
}

// recorder notes all questions.
type recorder struct {
	*admissionpolicy.Evaluator
	all []asked
}

func (r *recorder) Review(policy *inventory.Admission, request *attackpaths.Request) attackpaths.PolicyAnswer {
	answer := r.Evaluator.Review(policy, request)
	r.all = append(r.all, asked{policy.Name, request, answer})
	return answer
}

// reviews are the questions about an account that may write everything that attack paths follow
// in the namespace of each policy.
func reviews(
	t *testing.T, policies []*admissionv1.ValidatingAdmissionPolicy, bindings []*admissionv1.ValidatingAdmissionPolicyBinding,
) []asked {
	t.Helper()
	record := &recorder{Evaluator: admissionpolicy.New()}
	c := &attackpaths.Cluster{
		Inventory: inventory.New(), Relations: graph.New(), RBAC: rbac.NewPolicy(),
		Features: kubeversion.For(kubeversion.Latest), Policies: record,
	}
	c.RBAC.SetClusterRole(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "view"}})
	for i, p := range policies {
		c.Inventory.Set(p)
		c.Inventory.Set(bindings[i])
		c.Inventory.Set(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.Name, Labels: labelsOf(p.Name)}})
		c.Inventory.Set(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.Name, Name: "password"}})
		for _, name := range accounts {
			c.Inventory.Set(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: p.Name, Name: name}})
		}
		all := []string{"*"}
		meta := metav1.ObjectMeta{Namespace: p.Name, Name: "all"}
		c.RBAC.SetRole(&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
			{Verbs: all, APIGroups: []string{"", "apps", "batch"}, Resources: all},
			{Verbs: []string{"create", "bind"}, APIGroups: []string{rbacv1.GroupName}, Resources: []string{"rolebindings", "clusterroles"}},
		}})
		c.RBAC.SetRoleBinding(&rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "all"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: p.Name, Name: "attacker"}},
		})
	}
	if _, err := attackpaths.New(c); err != nil {
		t.Fatal(err)
	}
	return record.all
}

// create sends an object as a dry run.
func create(t *testing.T, r *attackpaths.Request, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	t.Helper()
	client, err := dynamic.NewForConfig(config())
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(r.Resource).Namespace(r.Namespace).Create(t.Context(), object,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}
