package probes

import (
	"context"
	"fmt"
	"os"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/node-authorizer/node-authorizer/test/e2e/audit"
	"github.com/node-authorizer/node-authorizer/test/e2e/await"
	"github.com/node-authorizer/node-authorizer/test/e2e/webhookcluster"
	"github.com/node-authorizer/node-authorizer/test/localplane"
)

const (
	// prober is the user who runs the doctor, and constrained the one who does with constrained
	// impersonation. The API server remembers for some seconds what it let a user impersonate so.
	prober      = "prober"
	constrained = "constrained"
	web1        = "web-1"
)

// world is a control plane with one node and one pod on it, neither of which runs.
type world struct {
	*localplane.Plane
	audit *audit.Log
	admin kubernetes.Interface
	// kubeconfigs are the kubeconfigs of the two users.
	kubeconfigs map[string]string
	stop        func() error
}

func start(ctx context.Context, dir string, authorization localplane.Authorization, args ...string) (*world, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	log, err := audit.In(dir, prober, constrained, "system:anonymous")
	if err != nil {
		return nil, err
	}
	plane, err := localplane.Start(ctx, localplane.Options{
		Authorization: authorization, WithoutControllers: true, Progress: os.Stderr,
		ExtraArgs: map[localplane.Component][]string{localplane.APIServer: append(log.APIServerArgs(), args...)},
	})
	if err != nil {
		return nil, err
	}
	w := &world{Plane: plane, audit: log, kubeconfigs: map[string]string{}, stop: plane.Stop}
	return w, w.populate(ctx)
}

// startOurs starts a control plane that asks node-authorizer's server in the place of the Node
// authorizer and NodeRestriction. Its controllers change nothing.
func startOurs(ctx context.Context, dir string) (*world, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	log, err := audit.In(dir, prober, constrained, "system:anonymous")
	if err != nil {
		return nil, err
	}
	c, err := webhookcluster.Start(ctx, webhookcluster.Options{
		Root: "../../..", Replicas: 1, APIServerArgs: log.APIServerArgs(), Progress: os.Stderr,
		ControllerManagerArgs: []string{"--controllers=serviceaccount-controller"},
	})
	if err != nil {
		return nil, err
	}
	w := &world{Plane: c.Plane, audit: log, kubeconfigs: map[string]string{}, stop: c.Stop}
	return w, w.populate(ctx)
}

func (w *world) populate(ctx context.Context) error {
	config := w.AdminConfig()
	config.QPS = -1
	var err error
	if w.admin, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	for _, user := range []string{prober, constrained} {
		if w.kubeconfigs[user], err = w.UserKubeconfig(user, user); err != nil {
			return err
		}
	}
	for _, space := range []string{"default", "shop"} {
		if err := w.namespace(ctx, space); err != nil {
			return err
		}
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: web1}}
	if _, err := w.admin.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return err
	}
	pod, err := w.admin.CoreV1().Pods("shop").Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: corev1.PodSpec{
			NodeName: web1, ServiceAccountName: "default",
			Containers: []corev1.Container{{Name: "web", Image: "registry.example.com/web:1.0"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	pod.Status.Phase = corev1.PodRunning
	_, err = w.admin.CoreV1().Pods("shop").UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}

// namespace makes a namespace with the service account that a controller would make.
func (w *world) namespace(ctx context.Context, name string) error {
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := w.admin.CoreV1().Namespaces().Create(ctx, space, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	_, err = w.admin.CoreV1().ServiceAccounts(name).Create(ctx, account, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

// bind binds a cluster role to a subject.
func (w *world) bind(ctx context.Context, name, role string, subject rbacv1.Subject) error {
	subject.APIGroup = rbacv1.GroupName
	_, err := w.admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{subject},
	}, metav1.CreateOptions{})
	return err
}

// until waits until an access review has an answer, because authorizers follow the objects with a delay.
func (w *world) until(ctx context.Context, want bool, spec authorizationv1.SubjectAccessReviewSpec) error {
	return await.Until(ctx, "the authorizers know it", func(ctx context.Context) error {
		review, err := w.admin.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec},
			metav1.CreateOptions{})
		if err == nil && review.Status.Allowed != want {
			err = fmt.Errorf("allowed is %t", review.Status.Allowed)
		}
		return err
	})
}
