package machines

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/ledger"
	"github.com/node-authorizer/node-authorizer/internal/scope/containment"
	"github.com/node-authorizer/node-authorizer/test/e2e/quarantines"
	"github.com/node-authorizer/node-authorizer/test/localplane/manifests"
)

// TestServiceHasTheRightsThatItNeedsAndNoOthers compares the requests of the replicas to
// kube-apiserver, in every test before this one, with the rights of deploy/bootstrap and of
// deploy/containment/bootstrap.
func TestServiceHasTheRightsThatItNeedsAndNoOthers(t *testing.T) {
	m := launch(t, blue)
	issued(t, blue, certified(t, blue, m), servingRequest(m.NodeName(), m.Address.String()), newKey(t))
	inPhase(t, blue, m, v1alpha1.Certified)
	// An expired token is replaced, which updates the entry.
	TestTokensThatNobodyUsesEnd(t)
	quarantineTwo(t, m.NodeName())

	events, err := blue.Audit.Events(0)
	orFatal(t, err)
	used, allowed, forbidden := map[string]bool{}, map[string]bool{}, map[string]string{}
	for _, event := range events {
		if event.User.Username != ServiceUser || event.ObjectRef == nil || event.ResponseStatus == nil {
			continue
		}
		if event.ObjectRef.Resource != v1alpha1.MachineResource { // read and written by other tests' servers, with roles of their own
			used[right(&event)] = true
		}
		if event.ObjectRef.Resource == "secrets" && event.Verb != "create" && event.ObjectRef.Name != ledger.KeySecretName {
			t.Errorf("the service did %s %s", right(&event), event.ObjectRef.Name)
		}
		what := right(&event) + " " + event.ObjectRef.Namespace + "/" + event.ObjectRef.Name
		// An informer sends a list after a watch that was forbidden.
		what = strings.Replace(what, "list ", "watch ", 1)
		if event.ResponseStatus.Code == http.StatusForbidden {
			forbidden[what] = event.ResponseStatus.Message
		} else {
			allowed[what] = true
		}
	}
	for what, why := range forbidden {
		// A restarted kube-apiserver forbids everything until it has read its roles. Only
		// requests that were never allowed count.
		if !allowed[what] {
			t.Errorf("%s was forbidden: %s", what, why)
		}
	}
	granted := map[string]bool{}
	for _, rule := range rules(t) {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				granted[verb+" "+resource] = true
			}
		}
	}
	for what := range used {
		if !granted[what] {
			t.Errorf("the service did %q, which the roles do not name", what)
		}
	}
	for what := range granted {
		verb, resource, _ := strings.Cut(what, " ")
		switch {
		case used[what]:
		case what == "approve signers", what == "write bootstraptokens":
			// kube-apiserver checks these itself: when an approval is written, and in the
			// admission policy.
		case what == "get quarantines", what == "create events":
			// The service does both only if there are too many Quarantines.
		case verb == "list" && used["watch "+resource]:
			// Informers list if kube-apiserver does not support streaming lists.
		default:
			t.Errorf("the roles grant %q, which nothing did", what)
		}
	}
	for _, reading := range []string{"list secrets", "watch secrets", "update secrets", "patch secrets", "delete secrets"} {
		if used[reading] || granted[reading] {
			t.Errorf("the service may %s", reading)
		}
	}
}

// quarantineTwo quarantines a node and another one until the service has recorded that they are two. The limit is a tenth
// of the nodes, so there are twenty more meanwhile, which the replicas count when they start.
func quarantineTwo(t *testing.T, node string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // the test's own context ends before cleanups
	nodes := blue.Client.CoreV1().Nodes()
	const counted = "counted"
	labels := map[string]string{counted: ""}
	t.Cleanup(func() {
		if err := nodes.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: counted}); err != nil {
			t.Error(err)
		}
		recovered(t)
	})
	for i := range 20 {
		more := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(counted, "-", i), Labels: labels}}
		_, err := nodes.Create(ctx, more, metav1.CreateOptions{})
		orFatal(t, err)
	}
	for _, replica := range blue.Replicas {
		orFatal(t, replica.Stop())
		orFatal(t, replica.Start(ctx))
	}
	first := quarantine(t, policyv1alpha1.QuarantineSpec{Node: node})
	second, err := quarantines.Create(ctx, blue.AdminConfig(), "incident-8", policyv1alpha1.QuarantineSpec{Node: counted + "-0"})
	orFatal(t, err)
	t.Cleanup(func() {
		if err := second.Delete(ctx); err != nil {
			t.Error(err)
		}
	})
	eventually(t, "the service records two quarantined nodes", func(ctx context.Context) error {
		record, err := blue.Client.CoreV1().ConfigMaps(containment.RecordNamespace).Get(ctx, containment.RecordName, metav1.GetOptions{})
		if err == nil && record.Data[containment.RecordKey] != "2" {
			err = fmt.Errorf("the record is %v", record.Data)
		}
		return err
	})
	orFatal(t, second.Delete(ctx))
	first.end(t)
}

// right returns the right for a request in the form of a rule.
func right(event *auditv1.Event) string {
	resource := event.ObjectRef.Resource
	if event.ObjectRef.Subresource != "" {
		resource += "/" + event.ObjectRef.Subresource
	}
	return event.Verb + " " + resource
}

// rules returns the rules of the service's roles in deploy.
func rules(t *testing.T) []rbacv1.PolicyRule {
	t.Helper()
	var objects []*unstructured.Unstructured
	for _, path := range []string{"cluster/role.yaml", quarantinesRole} {
		read, err := manifests.Read(filepath.Join(blue.deploy(), path))
		orFatal(t, err)
		objects = append(objects, read...)
	}
	var all []rbacv1.PolicyRule
	for _, object := range objects {
		// A ClusterRole and a Role have the same rules, and a binding has none.
		var role rbacv1.ClusterRole
		orFatal(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role))
		all = append(all, role.Rules...)
	}
	if len(all) == 0 || slices.ContainsFunc(all, func(r rbacv1.PolicyRule) bool { return len(r.NonResourceURLs) > 0 }) {
		t.Fatalf("the rules are %v", all)
	}
	return all
}
