package nodescope

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// Scope is one NodeScope, ready to decide. It does not change.
type Scope struct {
	name        string
	created     metav1.Time
	subjects    []v1alpha1.Subject
	mode        v1alpha1.Mode
	withoutNode v1alpha1.Effect
	otherwise   v1alpha1.Effect
	rules       []rule
	// broken scopes refuse every request of their accounts.
	broken bool
}

// Compile checks a NodeScope and makes it ready. The errors name the fields that are not valid;
// the scope is then nil. It shares no memory with the object that could change, as long as the
// object's strings and lists are not changed.
func Compile(object *v1alpha1.NodeScope) (*Scope, field.ErrorList) {
	if errs := Validate(object); len(errs) > 0 {
		return nil, errs
	}
	s := newScope(object)
	s.read(&object.Spec)
	return s, nil
}

func (s *Scope) read(spec *v1alpha1.NodeScopeSpec) {
	s.withoutNode = cmp.Or(spec.TokensWithoutNode, v1alpha1.Deny)
	s.otherwise = cmp.Or(spec.Otherwise, v1alpha1.Deny)
	if spec.AsNode {
		s.rules = append(s.rules, rule{kind: asNode, name: kinds[asNode].field})
	}
	for i, r := range spec.NamedAsNode {
		s.add(namedAsNode, i, rule{names: resources(r.APIGroups, r.Resources, r.Verbs), namespaces: r.Namespaces})
	}
	for i, r := range spec.SelectsNode {
		s.add(selectsNode, i, rule{names: resources(r.APIGroups, r.Resources, r.Verbs), namespaces: r.Namespaces, field: r.Field})
	}
	for i, r := range spec.PodsOnNode {
		kind, names := podRule(&r)
		s.add(kind, i, rule{names: names, namespaces: r.Namespaces})
	}
	for i, r := range spec.Anywhere {
		names := resources(r.APIGroups, r.Resources, r.Verbs)
		names.ResourceNames, names.NonResourceURLs = r.ResourceNames, r.NonResourceURLs
		s.add(anywhere, i, rule{names: names, namespaces: r.Namespaces})
	}
}

// Broken returns the scope of a NodeScope that was never valid: it refuses every request of its
// accounts, as far as these can be read, if its mode is Enforce. It is nil otherwise.
func Broken(object *v1alpha1.NodeScope) *Scope {
	if object.Spec.Mode != v1alpha1.Enforce {
		return nil
	}
	s := newScope(object)
	s.broken = true
	s.subjects = slices.DeleteFunc(slices.Clone(s.subjects), func(a v1alpha1.Subject) bool {
		return len(validateSubject(&a, field.NewPath("spec"))) > 0
	})
	if len(s.subjects) > MaxListed {
		s.subjects = s.subjects[:MaxListed]
	}
	if len(s.subjects) == 0 {
		return nil
	}
	return s
}

func newScope(object *v1alpha1.NodeScope) *Scope {
	return &Scope{name: object.Name, created: object.CreationTimestamp, subjects: object.Spec.Subjects, mode: object.Spec.Mode}
}

func (s *Scope) add(k kind, i int, r rule) {
	r.kind, r.name = k, fmt.Sprintf("%s[%d]", kinds[k].field, i)
	s.rules = append(s.rules, r)
}

// Name is the name of the NodeScope.
func (s *Scope) Name() string { return s.name }

// Mode is whether the scope refuses or observes.
func (s *Scope) Mode() v1alpha1.Mode { return s.mode }

// Subjects are the accounts of the scope. They must not be changed.
func (s *Scope) Subjects() []v1alpha1.Subject { return s.subjects }

func resources(groups, resources, verbs []string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: groups, Resources: resources, Verbs: verbs}
}

// podRule returns the kind of a rule of podsOnNode, and the requests that it is about.
func podRule(r *v1alpha1.PodRule) (kind, rbacv1.PolicyRule) {
	groups, k := r.APIGroups, podsOnNode
	if len(groups) == 0 {
		groups = []string{""}
	}
	for _, group := range groups {
		for _, resource := range r.Resources {
			if main, _, _ := strings.Cut(resource, "/"); !isPods(group, main) {
				k = namedAsPod
			}
		}
	}
	return k, resources(groups, podResources(r.Resources), r.Verbs)
}

func isPods(group, resource string) bool { return group == "" && resource == "pods" }

// allOfPods is what stands for pods and each of their subresources.
const allOfPods = "pods/*"

// podSubresources are the subresources of pods that API servers have.
var podSubresources = [...]string{
	"pods", "pods/attach", "pods/binding", "pods/ephemeralcontainers", "pods/eviction", "pods/exec", "pods/log",
	"pods/portforward", "pods/proxy", "pods/resize", "pods/status",
}

// podResources replaces pods/*, which RBAC does not know.
func podResources(given []string) []string {
	i := slices.Index(given, allOfPods)
	if i < 0 {
		return given
	}
	return slices.Concat(given[:i], podSubresources[:], given[i+1:])
}

// covers reports whether the rule is about a request, for any node.
func (r *rule) covers(req *access.Request) bool {
	if len(r.namespaces) > 0 && !slices.Contains(r.namespaces, req.Namespace) {
		return false
	}
	return rbac.RuleAllows(&r.names, req)
}
