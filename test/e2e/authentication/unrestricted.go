package authentication

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/node-authorizer/node-authorizer/test/e2e/audit"
	"github.com/node-authorizer/node-authorizer/test/e2e/await"
	"github.com/node-authorizer/node-authorizer/test/localplane"
)

// legacyUser is the user name of a kubelet that does not authenticate as its node.
const legacyUser = "kubelet"

// Unrestricted is a control plane without the Node authorizer. RBAC is its only
// authorizer, and a binding gives all nodes the rights of the role for nodes. Its audit
// log has the requests of nodes.
type Unrestricted struct {
	*localplane.Plane
	Audit  *audit.Log
	Client kubernetes.Interface
	// Worker authenticates as its node, Legacy as legacyUser.
	Worker, Legacy *localplane.Node

	dir string
}

// StartUnrestricted starts the plane with two nodes.
func StartUnrestricted(ctx context.Context, options Options) (*Unrestricted, error) {
	dir, err := os.MkdirTemp("", "node-authorizer-unrestricted-")
	if err != nil {
		return nil, fmt.Errorf("start an unrestricted cluster: %w", err)
	}
	u := &Unrestricted{dir: dir}
	if err := u.start(ctx, options); err != nil {
		return nil, errors.Join(fmt.Errorf("start an unrestricted cluster: %w", err), u.Stop())
	}
	return u, nil
}

func (u *Unrestricted) start(ctx context.Context, options Options) error {
	var err error
	if u.Audit, err = audit.In(u.dir); err != nil {
		return err
	}
	u.Plane, err = localplane.Start(ctx, localplane.Options{
		Authorization: localplane.RBACOnly,
		ExtraArgs:     map[localplane.Component][]string{localplane.APIServer: u.Audit.APIServerArgs()},
		Progress:      options.Progress,
	})
	if err != nil {
		return err
	}
	if u.Client, err = kubernetes.NewForConfig(u.AdminConfig()); err != nil {
		return err
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: systemNode},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: systemNode},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:nodes"}},
	}
	if _, err := u.Client.RbacV1().ClusterRoleBindings().Update(ctx, binding, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("bind nodes to the role of nodes: %w", err)
	}
	if u.Worker, err = u.AddNode(ctx, "worker-1", localplane.NodeOptions{}); err != nil {
		return err
	}
	certificate, key, err := u.ClientCertificate("legacy", legacyUser, "system:nodes")
	if err != nil {
		return err
	}
	u.Legacy, err = u.AddNode(ctx, "worker-2", localplane.NodeOptions{
		Credential: &clientcmdapi.AuthInfo{ClientCertificate: certificate, ClientKey: key},
	})
	return err
}

// systemNode is the role of nodes, and its binding to all of them.
const systemNode = "system:node"

// Run creates a pod that reads a secret on a node, and waits until it runs.
func (u *Unrestricted) Run(ctx context.Context, node, pod, secret string) error {
	_, err := u.Client.CoreV1().Secrets(metav1.NamespaceDefault).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: secret}, StringData: map[string]string{"password": "swordfish"},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = u.Client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: pod},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Name: "app", Image: "registry.example.com/app:1.0",
			EnvFrom: []corev1.EnvFromSource{
				{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: secret}}},
			},
		}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return await.Until(ctx, pod+" runs", func(ctx context.Context) error {
		object, err := u.Client.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, pod, metav1.GetOptions{})
		if err == nil && object.Status.Phase != corev1.PodRunning {
			err = fmt.Errorf("it is %s", object.Status.Phase)
		}
		return err
	})
}

// AuditLog returns the path of the log.
func (u *Unrestricted) AuditLog() string { return filepath.Join(u.dir, "audit.log") }

// Stop stops everything.
func (u *Unrestricted) Stop() error {
	var errs []error
	if u.Plane != nil {
		errs = append(errs, u.Plane.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(u.dir))...)
}
