package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// TestAudiencesByRBAC lets nodes request tokens for audiences that no pod has, as the
// page "Request service account token audience" of the Kubernetes documentation
// describes: the audience is the resource of a rule, and the service account the name.
func TestAudiencesByRBAC(t *testing.T) {
	const space, node = "audiences", "web-2"
	admin := client(t, ours.Plane)
	namespace(t, admin, space)
	pods := map[string]*corev1.Pod{}
	for _, account := range []string{"robot", "clerk"} {
		pods[account] = createPodOf(t, admin, space, account, node)
	}
	const verb = "request-serviceaccounts-token-audience"
	type request struct{ account, audience string }
	// Each rule has its own audiences, because the server caches answers for some seconds.
	for _, test := range []struct {
		name             string
		rule             rbacv1.PolicyRule
		allowed, refused []request
	}{
		{
			"an audience of one service account",
			rbacv1.PolicyRule{Verbs: []string{verb}, Resources: []string{"mint.example.com"}, ResourceNames: []string{"robot"}},
			[]request{{"robot", "mint.example.com"}},
			[]request{{"clerk", "mint.example.com"}, {"robot", "mill.example.com"}},
		},
		{
			"an audience of every service account",
			rbacv1.PolicyRule{Verbs: []string{verb}, Resources: []string{"bank.example.com"}},
			[]request{{"robot", "bank.example.com"}, {"clerk", "bank.example.com"}},
			[]request{{"robot", "bank.example.org"}},
		},
		{
			"every audience of one service account",
			rbacv1.PolicyRule{Verbs: []string{verb}, Resources: []string{"*"}, ResourceNames: []string{"robot"}},
			[]request{{"robot", "post.example.com"}, {"robot", "https://post.example.com/letters"}},
			[]request{{"clerk", "post.example.com"}},
		},
		{
			"every audience of every service account",
			rbacv1.PolicyRule{Verbs: []string{verb}, Resources: []string{"*"}},
			[]request{{"robot", "yard.example.com"}, {"clerk", "yard.example.com"}, {"clerk", ""}},
			nil,
		},
		{
			"another verb",
			rbacv1.PolicyRule{Verbs: []string{"create"}, Resources: []string{"*"}},
			nil,
			[]request{{"robot", "dock.example.com"}, {"clerk", "dock.example.com"}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			grantNodes(t, admin, space, node, test.rule)
			for _, r := range test.allowed {
				if err := requestToken(t.Context(), ours.as(t, node), pods[r.account], r.audience); err != nil {
					t.Errorf("%s for %q: %v", r.account, r.audience, err)
				}
			}
			for _, r := range test.refused {
				if err := refusal(requestToken(t.Context(), ours.as(t, node), pods[r.account], r.audience)); err != nil {
					t.Errorf("%s for %q: %v", r.account, r.audience, err)
				}
			}
		})
	}
}

// createPodOf creates a service account and a pod of it without a token.
func createPodOf(t *testing.T, admin kubernetes.Interface, space, account, node string) *corev1.Pod {
	t.Helper()
	meta := metav1.ObjectMeta{Name: account, Namespace: space}
	if _, err := admin.CoreV1().ServiceAccounts(space).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: meta},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod, err := admin.CoreV1().Pods(space).Create(t.Context(), &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
		NodeName: node, ServiceAccountName: account, AutomountServiceAccountToken: new(bool), TerminationGracePeriodSeconds: new(int64),
		Containers: []corev1.Container{{Name: "app", Image: "registry.example.com/app:1.0"}},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

// grantNodes binds a role with one rule to all nodes until the test ends. It waits until
// the API server applies the creation and the deletion.
func grantNodes(t *testing.T, admin kubernetes.Interface, space, node string, rule rbacv1.PolicyRule) {
	t.Helper()
	rule.APIGroups = []string{""}
	meta := metav1.ObjectMeta{Name: "audience", Namespace: space}
	if _, err := admin.RbacV1().Roles(space).Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := admin.RbacV1().RoleBindings(space).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:nodes"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	known := func(ctx context.Context, want bool) error {
		request := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:node:" + node, Groups: []string{"system:nodes"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: rule.Verbs[0], Version: "v1", Resource: rule.Resources[0], Namespace: space, Name: "robot",
			},
		}}
		review, err := admin.AuthorizationV1().SubjectAccessReviews().Create(ctx, request, metav1.CreateOptions{})
		if err == nil && review.Status.Allowed != want {
			err = fmt.Errorf("the review says %t", review.Status.Allowed)
		}
		return err
	}
	eventually(t, "the API server knows the role", func(ctx context.Context) error { return known(ctx, true) })
	t.Cleanup(func() {
		ctx := context.Background()
		err := errors.Join(
			admin.RbacV1().RoleBindings(space).Delete(ctx, meta.Name, metav1.DeleteOptions{}),
			admin.RbacV1().Roles(space).Delete(ctx, meta.Name, metav1.DeleteOptions{}),
			wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true,
				func(ctx context.Context) (bool, error) { return known(ctx, false) == nil, nil }),
		)
		if err != nil {
			t.Errorf("take the role away: %v", err)
		}
	})
}

func requestToken(ctx context.Context, node kubernetes.Interface, pod *corev1.Pod, audience string) error {
	_, err := node.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			Audiences:      []string{audience},
			BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
		},
	}, metav1.CreateOptions{})
	return err
}

// refusal returns nil when an error says that a request is forbidden.
func refusal(err error) error {
	switch {
	case apierrors.IsForbidden(err):
		return nil
	case err == nil:
		return errAllowed
	default:
		return err
	}
}
