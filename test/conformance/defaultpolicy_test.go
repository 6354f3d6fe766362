package conformance

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
	"sigs.k8s.io/yaml"
)

// defaultPolicyFile is the policy for which the doctor must have no findings.
const defaultPolicyFile = "../../internal/doctor/testdata/default/kubernetes-1.37.yaml"

// TestDefaultPolicy compares the file with the roles and bindings that Kubernetes creates
// in every cluster.
func TestDefaultPolicy(t *testing.T) {
	file, err := os.ReadFile(defaultPolicyFile)
	if err != nil {
		t.Fatal(err)
	}
	if errPolicy != nil {
		t.Fatal(errPolicy)
	}
	head, _, _ := strings.Cut(string(file), "---\n")
	want := head + policyAtStart
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(defaultPolicyFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(file) != want {
		t.Errorf("%s differs from Kubernetes' default policy; write it with UPDATE_GOLDEN=1", defaultPolicyFile)
	}
}

// policyAtStart is made before any test, because others set feature gates on which the
// policy depends.
var policyAtStart, errPolicy = defaultPolicy()

// defaultPolicy is the policy as YAML documents, in order.
func defaultPolicy() (string, error) {
	documents := map[string]string{}
	var errs []error
	add := func(kind, namespace, name string, object runtime.Object) {
		object.GetObjectKind().SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(kind))
		text, err := yaml.Marshal(object)
		errs = append(errs, err)
		documents[kind+"/"+namespace+"/"+name] = "---\n" + string(text)
	}
	for _, r := range slices.Concat(bootstrappolicy.ClusterRoles(), bootstrappolicy.ControllerRoles()) {
		add("ClusterRole", "", r.Name, &r)
	}
	for _, b := range slices.Concat(bootstrappolicy.ClusterRoleBindings(), bootstrappolicy.ControllerRoleBindings()) {
		add("ClusterRoleBinding", "", b.Name, &b)
	}
	for namespace, roles := range bootstrappolicy.NamespaceRoles() {
		for _, r := range roles {
			r.Namespace = namespace
			add("Role", namespace, r.Name, &r)
		}
	}
	for namespace, bindings := range bootstrappolicy.NamespaceRoleBindings() {
		for _, b := range bindings {
			b.Namespace = namespace
			add("RoleBinding", namespace, b.Name, &b)
		}
	}
	keys := make([]string, 0, len(documents))
	for key := range documents {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	var all strings.Builder
	for _, key := range keys {
		all.WriteString(documents[key])
	}
	return all.String(), errors.Join(errs...)
}
