package probes

import (
	"context"
	"errors"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/internal/doctor/probe"
	"github.com/node-authorizer/node-authorizer/test/e2e/await"
)

// TestPoliciesAreNotNodeRestriction: a refusal by a policy shows nothing about NodeRestriction, which
// refuses before policies are asked.
func TestPoliciesAreNotNodeRestriction(t *testing.T) {
	const message = "pods of nodes are not welcome"
	for _, test := range []struct {
		rule  string
		world *world
		want  probe.Outcome
		why   string
	}{
		{"with NodeRestriction", standard, probe.Holds, corev1.MirrorPodAnnotationKey},
		{"without", rbacOnly, probe.Undetermined, message},
	} {
		t.Run(test.rule, func(t *testing.T) {
			w := test.world
			w.grant(t, "nodes", grant{group, asNodesBefore()})
			w.grant(t, documented, grant{rbacv1.Subject{Kind: rbacv1.UserKind, Name: prober}, roleOf(t, documented)})
			w.refusePods(t, message)
			report, _ := w.doctor(t, prober)
			asked := (&probe.Results{Probes: report.Probes}).Get(probe.WritePod)
			if asked.Outcome != test.want || !strings.Contains(asked.Why, test.why) {
				t.Errorf("%s: %s", asked.Outcome, asked.Why)
			}
		})
	}
}

// refusePods has a policy refuse the pods that nodes create, until the test ends.
func (w *world) refusePods(t *testing.T, message string) {
	t.Helper()
	const name = "no-pods-of-nodes"
	policies := w.admin.AdmissionregistrationV1()
	meta := metav1.ObjectMeta{Name: name}
	fail := admissionregistrationv1.Fail
	_, err := policies.ValidatingAdmissionPolicies().Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: meta,
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionregistrationv1.MatchResources{
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: createPods()}},
			},
			Validations: []admissionregistrationv1.Validation{{
				Expression: "!('system:nodes' in request.userInfo.groups)", Message: message,
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = policies.ValidatingAdmissionPolicyBindings().Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: meta,
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.Background()
		err := errors.Join(
			policies.ValidatingAdmissionPolicyBindings().Delete(ctx, name, metav1.DeleteOptions{}),
			policies.ValidatingAdmissionPolicies().Delete(ctx, name, metav1.DeleteOptions{}),
		)
		if err != nil {
			t.Error(err)
		}
	})
	w.untilRefused(t)
}

func createPods() admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
	}
}

// untilRefused waits until the policy refuses a pod of a user in the group of nodes.
func (w *world) untilRefused(t *testing.T) {
	t.Helper()
	config := w.AdminConfig()
	config.Impersonate = rest.ImpersonationConfig{UserName: "someone", Groups: []string{"system:nodes"}}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "refused"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "registry.example.com/web:1.0"}}},
	}
	err = await.Until(t.Context(), "the policy refuses pods", func(ctx context.Context) error {
		_, err := client.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsInvalid(err) {
			return nil
		}
		return errors.Join(errors.New("not refused by the policy"), err)
	})
	if err != nil {
		t.Fatal(err)
	}
}
