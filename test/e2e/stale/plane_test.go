package stale

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/node-authorizer/node-authorizer/test/e2e/await"
	"github.com/node-authorizer/node-authorizer/test/e2e/server"
	"github.com/node-authorizer/node-authorizer/test/e2e/testmain"
	"github.com/node-authorizer/node-authorizer/test/localplane"
	"github.com/node-authorizer/node-authorizer/test/localplane/manifests"
)

const root = "../../.."

// space is the namespace of pods and of the servers' accounts.
const space = "default"

var (
	// reached is the control plane whose API server works, and stopped the one whose API server does not always. second
	// has two API servers and one store.
	reached, stopped, second *plane
	// program is the server.
	program string
)

// plane is a control plane with its clients.
type plane struct {
	*localplane.Plane
	admin kubernetes.Interface
	dir   string
	// other is the second API server; nil if there is none.
	other *localplane.OtherAPIServer
	// alone is held by a test that stops the shared API server or store.
	alone sync.Mutex
}

func TestMain(m *testing.M) {
	// The tests mostly wait, so that all of them can run at once.
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	os.Exit(testmain.Run(m, 10*time.Minute, startPlanes, stopPlanes))
}

func startPlanes(ctx context.Context, dir string) error {
	program = filepath.Join(dir, "node-authorizer")
	if err := server.Build(ctx, root, program); err != nil {
		return err
	}
	return testmain.StartAll(ctx,
		func(ctx context.Context) (err error) {
			reached, err = start(ctx, filepath.Join(dir, "reached"))
			return err
		},
		func(ctx context.Context) (err error) {
			stopped, err = start(ctx, filepath.Join(dir, "stopped"))
			return err
		},
		func(ctx context.Context) (err error) {
			if second, err = start(ctx, filepath.Join(dir, "second")); err != nil {
				return err
			}
			second.other, err = second.AddAPIServer(ctx, "kube-apiserver-2")
			return err
		})
}

func start(ctx context.Context, dir string) (*plane, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	p := &plane{dir: dir}
	var err error
	if p.Plane, err = localplane.Start(ctx,
		localplane.Options{Progress: os.Stderr, WithoutControllers: true, WithoutBootstrapRBAC: true}); err != nil {
		return nil, err
	}
	if p.admin, err = kubernetes.NewForConfig(p.AdminConfig()); err != nil {
		return p, err
	}
	for _, file := range []string{
		"deploy/rbac/role.yaml", "deploy/iam/rbac/role.yaml", "deploy/containment/nodescopes.yaml", "deploy/containment/quarantines.yaml",
		"deploy/containment/role.yaml",
	} {
		objects, err := manifests.Read(filepath.Join(root, file))
		if err != nil {
			return p, err
		}
		if err := manifests.Apply(ctx, p.AdminConfig(), objects, func(*unstructured.Unstructured) {}); err != nil {
			return p, err
		}
	}
	mappings := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "aws-auth", Namespace: metav1.NamespaceSystem},
		Data:       map[string]string{"mapRoles": "[]"},
	}
	if _, err := p.admin.CoreV1().ConfigMaps(mappings.Namespace).Create(ctx, mappings, metav1.CreateOptions{}); err != nil {
		return p, err
	}
	// Pods need a service account. No controller creates it here.
	return p, await.Until(ctx, "pods can be created", func(ctx context.Context) error {
		_, err := p.admin.CoreV1().ServiceAccounts(space).Create(ctx,
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}

func stopPlanes() error {
	var errs []error
	for _, p := range []*plane{reached, stopped, second} {
		if p != nil {
			errs = append(errs, p.Stop())
		}
	}
	return errors.Join(errs...)
}

// roles are the cluster roles of a server.
var roles = []string{"node-authorizer", "node-authorizer:containment"}

// allow gives a server's account its rights.
func (p *plane) allow(ctx context.Context, name string) error {
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: space, Name: name}}
	for _, role := range roles {
		_, err := p.admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name + ":" + role}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
	}
	_, err := p.admin.RbacV1().RoleBindings(metav1.NamespaceSystem).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "node-authorizer-iam"},
	}, metav1.CreateOptions{})
	return err
}

// forbid removes them.
func (p *plane) forbid(ctx context.Context, name string) error {
	var errs []error
	for _, role := range roles {
		errs = append(errs, p.admin.RbacV1().ClusterRoleBindings().Delete(ctx, name+":"+role, metav1.DeleteOptions{}))
	}
	return errors.Join(append(errs, p.admin.RbacV1().RoleBindings(metav1.NamespaceSystem).Delete(ctx, name, metav1.DeleteOptions{}))...)
}

// newToken creates a server's account and returns a token of it.
func (p *plane) newToken(ctx context.Context, name string) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := p.admin.CoreV1().ServiceAccounts(space).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	token, err := p.admin.CoreV1().ServiceAccounts(space).CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return token.Status.Token, nil
}

// relate creates a node with a pod that names a secret. All three have the same name.
func (p *plane) relate(ctx context.Context, name string) error {
	if _, err := p.admin.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}},
		metav1.CreateOptions{}); err != nil {
		return err
	}
	return p.pod(ctx, name, name)
}

// pod creates a pod on a node, which names a secret of the pod's name.
func (p *plane) pod(ctx context.Context, name, node string) error {
	no := false
	_, err := p.admin.CoreV1().Pods(space).Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		NodeName: node, AutomountServiceAccountToken: &no,
		Containers: []corev1.Container{{Name: "it", Image: "example.com/it"}},
		Volumes: []corev1.Volume{
			{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}}},
		},
		// Nodes here have no kubelet and are not ready.
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
	}}, metav1.CreateOptions{})
	return err
}

// deletePod deletes the pod.
func (p *plane) deletePod(ctx context.Context, name string) error {
	now := int64(0)
	return p.admin.CoreV1().Pods(space).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now})
}
