// Package scopes_test keeps the NodeScopes of the folder scopes true: each must let the requests of its agent pass,
// and refuse the same about another node.
package scopes_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// folder has the files.
const folder = "../../../scopes"

// agent has the content of the files of one agent.
type agent struct {
	// name is the name of the files, without extension.
	name string
	// comment is the first comment of the scope.
	comment string
	scope   *v1alpha1.NodeScope
	day     *day
	// rights are the rules that the account has, and policy evaluates them.
	rights []right
	policy *rbac.Policy
	// workloads are the objects with a pod template.
	workloads []*appsv1.DaemonSet
}

// user is the user name of the agent's account.
func (a *agent) user() string {
	return nodeidentity.ServiceAccountUser(a.day.Account.Namespace, a.day.Account.Name)
}

// right is one rule of RBAC that an account has, in a namespace or everywhere.
type right struct {
	namespace string
	rule      rbacv1.PolicyRule
}

// day has the requests of an agent on one node in a day: a file of requests/.
type day struct {
	Agent   string           `json:"agent"`
	Release string           `json:"release"`
	Project string           `json:"project"`
	Account v1alpha1.Subject `json:"account"`
	// Requests are in no order.
	Requests []dayRequest `json:"requests"`
	// NotNeeded are rights of the release that the agent does not use, which the scope refuses.
	NotNeeded []notNeeded `json:"notNeeded"`
}

// dayRequest is one request. In names, selectors and namespaces, NODE is the node, POD a pod of the
// node, AGENT the agent's own pod, and OTHER an object that belongs to no node.
type dayRequest struct {
	Verb        string `json:"verb"`
	Group       string `json:"group,omitempty"`
	Resource    string `json:"resource,omitempty"`
	Subresource string `json:"subresource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name,omitempty"`
	// Creates is the name of the object of a create, which only admission knows.
	Creates string `json:"creates,omitempty"`
	// Field and Label are selectors. Label is for readers: no rule reads it.
	Field string `json:"field,omitempty"`
	Label string `json:"label,omitempty"`
	// Path is the path of a request that is not for a resource.
	Path string `json:"path,omitempty"`
	// Count is how often in a day.
	Count int `json:"count"`
	// Source is the file of the agent that makes the request.
	Source string `json:"source"`
}

// notNeeded are rights that the agent does not use.
type notNeeded struct {
	APIGroups []string `json:"apiGroups"`
	Resources []string `json:"resources"`
	Verbs     []string `json:"verbs"`
	Why       string   `json:"why"`
}

// readAgents reads all agents, by name.
func readAgents(t *testing.T) []*agent {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("there are no scopes: %v", err)
	}
	var agents []*agent
	for _, path := range paths {
		agents = append(agents, readAgent(t, strings.TrimSuffix(filepath.Base(path), ".yaml")))
	}
	return agents
}

func readAgent(t *testing.T, name string) *agent {
	t.Helper()
	a := &agent{name: name, scope: &v1alpha1.NodeScope{}, day: &day{}, policy: rbac.NewPolicy()}
	a.comment = readStrict(t, filepath.Join(folder, name+".yaml"), a.scope)
	readStrict(t, filepath.Join(folder, "requests", name+".yaml"), a.day)
	objects := readObjects(t, filepath.Join(folder, "rbac", name+".yaml"))
	a.addRoles(append(objects, readObjects(t, filepath.Join(folder, "rbac", "kubernetes.yaml"))...))
	a.rights = a.rightsOf(objects)
	for _, object := range objects {
		if w, ok := object.(*appsv1.DaemonSet); ok {
			a.workloads = append(a.workloads, w)
		}
	}
	return a
}

// readStrict decodes a file and returns its first comment.
func readStrict(t *testing.T, path string, into any) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	var comment []string
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			break
		}
		comment = append(comment, strings.TrimSpace(strings.TrimPrefix(line, "#")))
	}
	return strings.Join(comment, "\n")
}

func readObjects(t *testing.T, path string) []runtime.Object {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	var objects []runtime.Object
	for documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if object := map[string]any{}; yaml.Unmarshal(document, &object) == nil && len(object) == 0 {
			continue // a comment
		}
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			t.Fatalf("%s: %v\n%s", path, err, bytes.TrimSpace(document))
		}
		objects = append(objects, object)
	}
}

func (a *agent) addRoles(objects []runtime.Object) {
	for _, object := range objects {
		switch o := object.(type) {
		case *rbacv1.ClusterRole:
			a.policy.SetClusterRole(o)
		case *rbacv1.Role:
			a.policy.SetRole(o)
		case *rbacv1.ClusterRoleBinding:
			a.policy.SetClusterRoleBinding(o)
		case *rbacv1.RoleBinding:
			a.policy.SetRoleBinding(o)
		}
	}
}

// rightsOf returns the rules that bindings give the account.
func (a *agent) rightsOf(objects []runtime.Object) []right {
	rules := map[string][]rbacv1.PolicyRule{}
	for _, object := range objects {
		switch o := object.(type) {
		case *rbacv1.ClusterRole:
			rules["ClusterRole//"+o.Name] = o.Rules
		case *rbacv1.Role:
			rules["Role/"+o.Namespace+"/"+o.Name] = o.Rules
		}
	}
	var rights []right
	add := func(namespace string, ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
		in := namespace
		if ref.Kind == "ClusterRole" {
			in = ""
		}
		for _, s := range subjects {
			if s.Kind == rbacv1.ServiceAccountKind && s.Namespace == a.day.Account.Namespace && s.Name == a.day.Account.Name {
				for _, rule := range rules[ref.Kind+"/"+in+"/"+ref.Name] {
					rights = append(rights, right{namespace, rule})
				}
			}
		}
	}
	for _, object := range objects {
		switch o := object.(type) {
		case *rbacv1.ClusterRoleBinding:
			add("", o.RoleRef, o.Subjects)
		case *rbacv1.RoleBinding:
			add(o.Namespace, o.RoleRef, o.Subjects)
		}
	}
	return rights
}

func hasAccount(objects []runtime.Object, account v1alpha1.Subject) bool {
	for _, object := range objects {
		if sa, ok := object.(*corev1.ServiceAccount); ok && sa.Namespace == account.Namespace && sa.Name == account.Name {
			return true
		}
	}
	return false
}
