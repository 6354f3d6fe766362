package installed

import (
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const tokenGroup = "system:bootstrappers:node-authorizer"

// token is a Secret as the service writes it.
func token(id string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: "bootstrap-token-" + id, Namespace: metav1.NamespaceSystem,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "node-authorizer.io/v1alpha1", Kind: "NodeAttestation", Name: "aws-i-1",
				UID: types.UID("4c8c3b8f-5a4e-4a57-8f0a-6a5f6f4f3b11"),
			}},
		},
		Type: corev1.SecretTypeBootstrapToken,
		Data: map[string][]byte{
			"token-id": []byte(id), "token-secret": []byte("0123456789abcdef"),
			"expiration":                     []byte(time.Now().Add(time.Hour).UTC().Format(time.RFC3339)),
			"usage-bootstrap-authentication": []byte("true"),
			"auth-extra-groups":              []byte(tokenGroup),
			"description":                    []byte("for node worker-1"),
		},
	}
}

// stolenAccount requests a token of an account with all rights from the API server.
func stolenAccount() *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: "stolen", Namespace: metav1.NamespaceSystem,
			Annotations: map[string]string{corev1.ServiceAccountNameKey: "clusterrole-aggregation-controller"},
		},
		Type: corev1.SecretTypeServiceAccountToken,
	}
}

// refused checks that the policy refuses a request, with a reason.
func refused(t *testing.T, err error, why string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'node-authorizer-bootstrap'") ||
		!strings.Contains(err.Error(), why) {
		t.Errorf("error is %v, want the policy's refusal %q", err, why)
	}
}

func TestServiceCreatesItsOwnTokensOnly(t *testing.T) {
	service, _ := clients(t)
	secrets := service.CoreV1().Secrets(metav1.NamespaceSystem)
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	if _, err := secrets.Create(t.Context(), token("aaaaa1"), dryRun); err != nil {
		t.Errorf("a token of its own: %v", err)
	}
	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "node-authorizer-key"}, Data: map[string][]byte{"key": make([]byte, 32)}}
	if _, err := secrets.Create(t.Context(), key, dryRun); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Errorf("its key: %v", err)
	}
	for name, c := range map[string]struct {
		change func(*corev1.Secret)
		why    string
	}{
		"the token of a service account": {func(s *corev1.Secret) { *s = *stolenAccount() }, "bootstrap tokens and its key only"},
		"any other secret": {
			func(s *corev1.Secret) { s.Type = corev1.SecretTypeOpaque }, "bootstrap tokens and its key only",
		},
		"a token of kubeadm's": {func(s *corev1.Secret) {
			s.Data["auth-extra-groups"] = []byte("system:bootstrappers:kubeadm:default-node-token")
		}, "no other"},
		"a token with an additional group": {func(s *corev1.Secret) {
			s.Data["auth-extra-groups"] = []byte(tokenGroup + ",system:bootstrappers:kubeadm:default-node-token")
		}, "no other"},
		"a token without a group": {func(s *corev1.Secret) { delete(s.Data, "auth-extra-groups") }, "no other"},
		"a token for signing": {
			func(s *corev1.Secret) { s.Data["usage-bootstrap-signing"] = []byte("true") }, "no other usage",
		},
		"a token without an expiry":        {func(s *corev1.Secret) { delete(s.Data, "expiration") }, "expires"},
		"a token without an owner":         {func(s *corev1.Secret) { s.OwnerReferences = nil }, "owned"},
		"a token of another kind of owner": {func(s *corev1.Secret) { s.OwnerReferences[0].Kind = "Node" }, "owned"},
		"a token with two owners": {func(s *corev1.Secret) {
			other := s.OwnerReferences[0]
			other.UID = "5c8c3b8f-5a4e-4a57-8f0a-6a5f6f4f3b11"
			s.OwnerReferences = append(s.OwnerReferences, other)
		}, "owned"},
		"a token given as plain text": {func(s *corev1.Secret) {
			s.StringData = map[string]string{"auth-extra-groups": "system:bootstrappers:other"}
		}, "no other"},
	} {
		t.Run(name, func(t *testing.T) {
			secret := token("aaaaa2")
			c.change(secret)
			_, err := secrets.Create(t.Context(), secret, dryRun)
			refused(t, err, c.why)
		})
	}
}

// The policy denies changes of Secrets even if the service has the right from another
// role, for example an old one.
func TestServiceChangesNoSecret(t *testing.T) {
	service, admin := clients(t)
	ours, key := token("bbbbb1"), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "node-authorizer-key"}, Data: map[string][]byte{"key": make([]byte, 32)},
	}
	// With an owner that does not exist, it would be garbage-collected.
	entry := createEntry(t, "alwaysallow", "policy-1", "worker-policy")
	ours.OwnerReferences[0].Name, ours.OwnerReferences[0].UID = entry.GetName(), entry.GetUID()
	for _, s := range []*corev1.Secret{ours, key} {
		if _, err := admin.CoreV1().Secrets(metav1.NamespaceSystem).Create(t.Context(), s, metav1.CreateOptions{}); err != nil &&
			!apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	update := func(client kubernetes.Interface, name string) error {
		secret, err := admin.CoreV1().Secrets(metav1.NamespaceSystem).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		secret.Annotations = map[string]string{"changed": "true"}
		_, err = client.CoreV1().Secrets(metav1.NamespaceSystem).Update(t.Context(), secret,
			metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	for _, name := range []string{ours.Name, key.Name} {
		if err := update(service, name); !apierrors.IsForbidden(err) || strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
			t.Errorf("update %s: %v", name, err)
		}
	}
	widened := boundAs(t, "node-authorizer-widened", "Role", "node-authorizer:bootstrap", func(client kubernetes.Interface) error {
		_, err := client.CoreV1().Secrets(metav1.NamespaceSystem).Get(t.Context(), "node-authorizer-key", metav1.GetOptions{})
		return err
	})
	mayUpdateSecrets(t, "node-authorizer-widened")
	eventually(t, "the policy refuses what the old role grants", func() (bool, error) {
		err := update(widened, ours.Name)
		return err != nil && strings.Contains(err.Error(), "changes no secret"), nil
	})
	refused(t, update(widened, key.Name), "changes no secret")
}

// mayUpdateSecrets gives a user the right of earlier versions of the service.
func mayUpdateSecrets(t *testing.T, user string) {
	t.Helper()
	_, admin := clients(t)
	name := metav1.ObjectMeta{Name: user + "-update"}
	_, err := admin.RbacV1().Roles(metav1.NamespaceSystem).Create(t.Context(), &rbacv1.Role{
		ObjectMeta: name, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"update"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = admin.RbacV1().RoleBindings(metav1.NamespaceSystem).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// boundAs returns a client of a user with a role of deploy/bootstrap, like a static pod
// with its certificate.
func boundAs(t *testing.T, user, kind, role string, try func(kubernetes.Interface) error) kubernetes.Interface {
	t.Helper()
	_, admin := clients(t)
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role}
	var err error
	if kind == "Role" {
		_, err = admin.RbacV1().RoleBindings(metav1.NamespaceSystem).Create(t.Context(),
			&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
	} else {
		_, err = admin.RbacV1().ClusterRoleBindings().Create(t.Context(),
			&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	config := plane.AdminConfig()
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	client := clientFor(t, config)
	eventually(t, user+" has its rights", func() (bool, error) {
		err := try(client)
		return err == nil || apierrors.IsNotFound(err), nil
	})
	return client
}

// TestPolicyAppliesToEveryUserOfTheService shows that the policy applies to every user
// with the service's role, and not to users with all rights.
func TestPolicyAppliesToEveryUserOfTheService(t *testing.T) {
	create := func(client kubernetes.Interface, secret *corev1.Secret) error {
		_, err := client.CoreV1().Secrets(metav1.NamespaceSystem).Create(t.Context(), secret,
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	readKey := func(client kubernetes.Interface) error {
		_, err := client.CoreV1().Secrets(metav1.NamespaceSystem).Get(t.Context(), "node-authorizer-key", metav1.GetOptions{})
		return err
	}
	static := boundAs(t, "node-authorizer-static-pod", "Role", "node-authorizer:bootstrap", readKey)
	if err := create(static, token("ddddd1")); err != nil {
		t.Errorf("a token of its own: %v", err)
	}
	refused(t, create(static, stolenAccount()), "bootstrap tokens and its key only")

	approver := boundAs(t, "node-authorizer-approver-alone", "Role", "node-authorizer:approver", func(client kubernetes.Interface) error {
		_, err := client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(t.Context(), "node-authorizer-approver", metav1.GetOptions{})
		return err
	})
	if err := create(approver, token("ddddd2")); !apierrors.IsForbidden(err) || strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
		t.Errorf("the approver creates a token: %v", err)
	}
	if err := readKey(approver); !apierrors.IsForbidden(err) {
		t.Errorf("the approver reads the key of the service: %v", err)
	}
	if err := create(boundAs(t, "another-administrator", "ClusterRole", "cluster-admin", readKey), stolenAccount()); err != nil {
		t.Errorf("the policy applies to an administrator: %v", err)
	}
}

// The policy applies only to users who run the service.
func TestPolicyDoesNotApplyToOthers(t *testing.T) {
	_, admin := clients(t)
	if _, err := admin.CoreV1().Secrets(metav1.NamespaceSystem).Create(t.Context(), stolenAccount(),
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Error(err)
	}
}

// The API server compiles the expressions against the types of Secrets, and reports
// warnings in the status.
func TestPolicyHasNoWarnings(t *testing.T) {
	_, admin := clients(t)
	eventually(t, "the policy is checked", func() (bool, error) {
		policy, err := admin.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(t.Context(), "node-authorizer-bootstrap",
			metav1.GetOptions{})
		if err != nil || policy.Status.TypeChecking == nil {
			return false, err
		}
		for _, w := range policy.Status.TypeChecking.ExpressionWarnings {
			t.Errorf("%s: %s", w.FieldRef, w.Warning)
		}
		return true, nil
	})
}

func TestServiceReadsOnlyItsKey(t *testing.T) {
	service, _ := clients(t)
	secrets := service.CoreV1().Secrets(metav1.NamespaceSystem)
	_, list := secrets.List(t.Context(), metav1.ListOptions{})
	_, named := secrets.List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=bootstrap-token-cccccc"})
	_, watch := secrets.Watch(t.Context(), metav1.ListOptions{})
	_, elsewhere := service.CoreV1().Secrets(metav1.NamespaceDefault).Get(t.Context(), "node-authorizer-key", metav1.GetOptions{})
	_, tokens := secrets.Get(t.Context(), "bootstrap-token-cccccc", metav1.GetOptions{})
	_, certificate := secrets.Get(t.Context(), "node-authorizer-bootstrap-tls", metav1.GetOptions{})
	_, patch := secrets.Patch(t.Context(), "node-authorizer-key", types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
	for what, err := range map[string]error{
		"list": list, "list one": named, "watch": watch, "get in another namespace": elsewhere,
		"get a token": tokens, "get its own certificate": certificate, "patch its key": patch,
		"delete": secrets.Delete(t.Context(), "any", metav1.DeleteOptions{}), "delete its key": secrets.Delete(t.Context(),
			"node-authorizer-key", metav1.DeleteOptions{}),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := secrets.Get(t.Context(), "node-authorizer-key", metav1.GetOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Errorf("get its key: %v", err)
	}
}

// mayCreateRequests returns the answer of `kubectl auth can-i`.
func mayCreateRequests(t *testing.T, who rest.ImpersonationConfig, subresource string) bool {
	t.Helper()
	config := plane.AdminConfig()
	config.Impersonate = who
	request := &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "create", Group: "certificates.k8s.io", Resource: "certificatesigningrequests", Subresource: subresource,
		}},
	}
	reviews := clientFor(t, config).AuthorizationV1().SelfSubjectAccessReviews()
	review, err := reviews.Create(t.Context(), request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}
