package containment

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/test/localplane/manifests"
)

// agent is an agent with a NodeScope in the folder scopes.
type agent struct {
	// name is the name of the files.
	name    string
	scope   *v1alpha1.NodeScope
	account v1alpha1.Subject
	// objects are the account with its roles and bindings.
	objects []*unstructured.Unstructured
	// rights are the rights that the roles give the account.
	rights []right
}

// right is a rule of a role, in a namespace or everywhere.
type right struct {
	namespace string
	rule      rbacv1.PolicyRule
}

// readAgents reads the folder scopes.
func readAgents() ([]*agent, error) {
	paths, err := filepath.Glob(filepath.Join(root, "scopes", "*.yaml"))
	if err != nil {
		return nil, err
	}
	var agents []*agent
	for _, path := range paths {
		a, err := readAgent(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		agents = append(agents, a)
	}
	return agents, nil
}

func readAgent(path string) (*agent, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	a := &agent{name: strings.TrimSuffix(filepath.Base(path), ".yaml"), scope: &v1alpha1.NodeScope{}}
	if err := yaml.UnmarshalStrict(text, a.scope); err != nil {
		return nil, err
	}
	objects, err := manifests.Read(filepath.Join(filepath.Dir(path), "rbac", filepath.Base(path)))
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		switch o.GetKind() {
		case "Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding":
			a.objects = append(a.objects, o)
		}
	}
	a.account = a.scope.Spec.Subjects[0]
	return a, a.readRights()
}

// readRights reads the rules of the roles that bindings give the account.
func (a *agent) readRights() error {
	rules := map[string][]rbacv1.PolicyRule{}
	for _, o := range a.objects {
		if o.GetKind() == "ClusterRole" || o.GetKind() == "Role" {
			var role rbacv1.ClusterRole
			if err := convert(o, &role); err != nil {
				return err
			}
			rules[o.GetKind()+"/"+o.GetNamespace()+"/"+o.GetName()] = role.Rules
		}
	}
	for _, o := range a.objects {
		if o.GetKind() != "ClusterRoleBinding" && o.GetKind() != "RoleBinding" {
			continue
		}
		var binding rbacv1.RoleBinding
		if err := convert(o, &binding); err != nil {
			return err
		}
		if !slices.ContainsFunc(binding.Subjects, a.is) {
			continue
		}
		in := binding.Namespace
		if binding.RoleRef.Kind == "ClusterRole" {
			in = ""
		}
		for _, rule := range rules[binding.RoleRef.Kind+"/"+in+"/"+binding.RoleRef.Name] {
			a.rights = append(a.rights, right{binding.Namespace, rule})
		}
	}
	return nil
}

func (a *agent) is(s rbacv1.Subject) bool {
	return s.Kind == rbacv1.ServiceAccountKind && s.Namespace == a.account.Namespace && s.Name == a.account.Name
}

func convert(from *unstructured.Unstructured, to any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, to)
}

// install makes the account, its roles and its pods.
func (a *agent) install(ctx context.Context, w *world) error {
	if err := w.namespace(ctx, a.account.Namespace); err != nil {
		return err
	}
	for _, o := range a.objects {
		if o.GetNamespace() != "" {
			if err := w.namespace(ctx, o.GetNamespace()); err != nil {
				return err
			}
		}
	}
	if err := manifests.Apply(ctx, w.AdminConfig(), a.objects, func(*unstructured.Unstructured) {}); err != nil {
		return err
	}
	return w.placeAgent(ctx, a.account.Namespace, a.account.Name)
}

// granted returns a right that the account needs for a verb on a resource; ok is false if there is none. One in
// the whole cluster comes first.
func (a *agent) granted(group, resource, verb string) (found right, ok bool) {
	for _, r := range a.rights {
		if !names(r.rule.APIGroups, group) || !namesResource(r.rule.Resources, resource) || !names(r.rule.Verbs, verb) {
			continue
		}
		if !ok || found.namespace != "" && r.namespace == "" || len(found.rule.ResourceNames) > 0 && len(r.rule.ResourceNames) == 0 {
			found, ok = r, true
		}
	}
	return found, ok
}

func names(list []string, value string) bool {
	return slices.Contains(list, value) || slices.Contains(list, "*")
}

func namesResource(list []string, value string) bool {
	_, subresource, _ := strings.Cut(value, "/")
	return names(list, value) || subresource != "" && slices.Contains(list, "*/"+subresource) ||
		strings.HasPrefix(value, "pods") && slices.Contains(list, "pods/*")
}
