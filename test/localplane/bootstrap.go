package localplane

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BootstrapGroup is the group of all bootstrap tokens in kube-apiserver.
const BootstrapGroup = "system:bootstrappers"

// bootstrapTokenLife is longer than any test.
const bootstrapTokenLife = 24 * time.Hour

// bindBootstrapRoles lets bootstrap tokens request client certificates of nodes, lets
// nodes renew them, and has both approved.
func (p *Plane) bindBootstrapRoles(ctx context.Context) error {
	const approve = "system:certificates.k8s.io:certificatesigningrequests:"
	for _, binding := range []struct{ name, role, group string }{
		{"localplane:node-bootstrapper", "system:node-bootstrapper", BootstrapGroup},
		{"localplane:approve-node-client", approve + "nodeclient", BootstrapGroup},
		{"localplane:approve-node-client-renewal", approve + "selfnodeclient", "system:nodes"},
	} {
		_, err := p.client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: binding.name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: binding.role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: binding.group}},
		}, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("bind the role %s to the group %s: %w", binding.role, binding.group, err)
		}
	}
	return nil
}

// CreateBootstrapToken creates the Secret of a new bootstrap token and returns the token,
// "id.secret". It is in [BootstrapGroup] and in the given groups, each of which must
// begin with "system:bootstrappers:".
func (p *Plane) CreateBootstrapToken(ctx context.Context, groups ...string) (string, error) {
	random := make([]byte, 11)
	if _, err := rand.Read(random); err != nil {
		return "", fmt.Errorf("make a bootstrap token: %w", err)
	}
	id, secret := hex.EncodeToString(random[:3]), hex.EncodeToString(random[3:])
	data := map[string]string{
		"token-id":                       id,
		"token-secret":                   secret,
		"usage-bootstrap-authentication": "true",
		"expiration":                     time.Now().Add(bootstrapTokenLife).UTC().Format(time.RFC3339),
	}
	if len(groups) > 0 {
		data["auth-extra-groups"] = strings.Join(groups, ",")
	}
	_, err := p.client.CoreV1().Secrets(metav1.NamespaceSystem).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id},
		Type:       corev1.SecretTypeBootstrapToken,
		StringData: data,
	}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("create the Secret of a bootstrap token: %w", err)
	}
	return id + "." + secret, nil
}

// waitForDefaultServiceAccount waits until kube-controller-manager has created the
// default service account, which pods need.
func (p *Plane) waitForDefaultServiceAccount(ctx context.Context) error {
	ctx, cancel := withStartTimeout(ctx)
	defer cancel()
	err := poll(ctx, func(ctx context.Context) error {
		_, err := p.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("wait until kube-controller-manager has made the default service account: %w; its log is %s",
			err, p.layout.log(string(ControllerManager)))
	}
	return nil
}
