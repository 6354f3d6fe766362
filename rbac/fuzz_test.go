package rbac_test

import (
	"math/rand/v2"
	"sort"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// FuzzPolicy builds a small policy from bytes, changes it in an order that the bytes
// determine, and compares every answer with a naive model.
func FuzzPolicy(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f"))
	f.Add([]byte("role bindings, cluster roles, subjects, verbs and the many ways to spell pods/log"))
	f.Add([]byte("\x02\x00\x01\x00\x01\x01\x00\x03\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x01\x00\x01\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		runWorld(t, data)
	})
}

func TestPolicyAgreesWithModel(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	allowed := 0
	for range 300 {
		data := make([]byte, 3000)
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		allowed += runWorld(t, data)
	}
	if allowed < 1000 {
		t.Errorf("only %d requests were allowed, too few for a meaningful test", allowed)
	}
}

// runWorld returns how many requests were allowed.
func runWorld(t *testing.T, data []byte) int {
	w := &world{data: data, policy: rbac.NewPolicy(), model: newModel()}
	for len(w.data) > 0 {
		w.change()
		for range 3 {
			w.compare(t)
		}
	}
	return w.allowed
}

// world generates objects and requests from few names, so that they match often.
type world struct {
	data   []byte
	policy *rbac.Policy
	model  *model

	allowed int
}

var (
	namespaces = []string{"", "n1", "n2"}
	names      = []string{"a", "b", "c"}
	users      = []string{"ann", "system:serviceaccount:n1:a", "system:serviceaccount::a", ""}
	groups     = []string{"g1", "g2", "ann"}
	verbs      = []string{"get", "list", "*", "GET"}
	apiGroups  = []string{"", "apps", "*"}
	resources  = []string{"pods", "pods/log", "*", "*/log", "pods/*", "*/", ""}
	plain      = []string{"pods", "nodes", "*", ""}
	subs       = []string{"", "log", "*", "catalog"}
	urls       = []string{"/a", "/a/*", "*", "/a/b", "/a**", "/", ""}
	kinds      = []string{"ClusterRole", "ClusterRole", "ClusterRole", "Role", "Role", "Other"}
)

func (w *world) next(n int) int {
	if len(w.data) == 0 {
		return 0
	}
	b := w.data[0]
	w.data = w.data[1:]
	return int(b) % n
}

func (w *world) pick(from []string) string { return from[w.next(len(from))] }

func (w *world) some(from []string) (list []string) {
	for range w.next(4) {
		list = append(list, w.pick(from))
	}
	return list
}

func (w *world) rules() (rules []rbacv1.PolicyRule) {
	for range w.next(4) {
		rule := rbacv1.PolicyRule{
			Verbs: w.some(verbs), APIGroups: w.some(apiGroups), Resources: w.some(resources),
			NonResourceURLs: w.some(urls),
		}
		if w.next(3) == 0 {
			rule.ResourceNames = w.some(names)
		}
		rules = append(rules, rule)
	}
	return rules
}

func (w *world) subjects() (subjects []rbacv1.Subject) {
	for range w.next(4) {
		switch w.next(7) {
		case 0, 1:
			subjects = append(subjects, user(w.pick(users)))
		case 2, 3:
			subjects = append(subjects, group(w.pick(groups)))
		case 4, 5:
			subjects = append(subjects, serviceAccount(w.pick(namespaces), w.pick(names)))
		default:
			subjects = append(subjects, rbacv1.Subject{Kind: "Robot", Name: "ann"})
		}
	}
	return subjects
}

func (w *world) change() {
	ns, name := w.pick(namespaces[1:]), w.pick(names)
	key := ns + "/" + name
	switch w.next(12) {
	case 0, 1, 10:
		o := clusterRole(name, w.rules()...)
		w.policy.SetClusterRole(o)
		w.model.clusterRoles[name] = o.Rules
	case 2, 11:
		o := role(ns, name, w.rules()...)
		w.policy.SetRole(o)
		w.model.roles[key] = o.Rules
	case 3, 4:
		o := clusterRoleBinding(name, w.pick(names), w.subjects()...)
		o.RoleRef.Kind = w.pick(kinds)
		w.policy.SetClusterRoleBinding(o)
		w.model.bindings["/"+name] = modelBinding{"", o.RoleRef, o.Subjects}
	case 5, 8, 9:
		o := roleBinding(ns, name, w.pick(kinds), w.pick(names), w.subjects()...)
		w.policy.SetRoleBinding(o)
		w.model.bindings[key] = modelBinding{ns, o.RoleRef, o.Subjects}
	case 6:
		w.policy.DeleteClusterRole(name)
		delete(w.model.clusterRoles, name)
		w.policy.DeleteRole(ns, name)
		delete(w.model.roles, key)
	case 7:
		w.policy.DeleteClusterRoleBinding(name)
		delete(w.model.bindings, "/"+name)
		w.policy.DeleteRoleBinding(ns, name)
		delete(w.model.bindings, key)
	}
}

func (w *world) compare(t *testing.T) {
	req := access.Request{
		User: w.pick(users), Groups: w.some(groups), Verb: w.pick(verbs), ResourceRequest: w.next(4) > 0,
		Group: w.pick(apiGroups), Resource: w.pick(plain), Subresource: w.pick(subs),
		Namespace: w.pick(namespaces), Name: w.pick(append(names, "")), Path: w.pick(urls),
	}
	got, want := w.policy.Evaluate(&req), w.model.evaluate(req)
	where := ""
	if got.Allowed {
		w.allowed++
		where = got.Grant.Binding.Namespace + "/" + got.Grant.Binding.Name
		if !rbac.RuleAllows(got.Grant.Rule, &req) {
			t.Errorf("%+v: %s does not allow", req, got.Grant)
		}
	}
	if where != want {
		t.Errorf("%+v: allowed by %q, want %q", req, where, want)
	}
	first := rbac.Grant{}
	for _, explanation := range w.policy.Explain(&req) {
		if explanation.Allows {
			first = explanation.Grant
			break
		}
	}
	if first.String() != got.Grant.String() {
		t.Errorf("%+v: Explain has %s, Evaluate %s", req, first, got.Grant)
	}
}

// model is a naive implementation of RBAC.
type model struct {
	clusterRoles map[string][]rbacv1.PolicyRule
	roles        map[string][]rbacv1.PolicyRule
	bindings     map[string]modelBinding // by "namespace/name"
}

type modelBinding struct {
	namespace string
	role      rbacv1.RoleRef
	subjects  []rbacv1.Subject
}

func newModel() *model {
	return &model{map[string][]rbacv1.PolicyRule{}, map[string][]rbacv1.PolicyRule{}, map[string]modelBinding{}}
}

// evaluate returns the first binding that allows, as "namespace/name", or "".
func (m *model) evaluate(req access.Request) string {
	var keys []string
	for key := range m.bindings {
		keys = append(keys, key)
	}
	sort.Strings(keys) // "/" sorts before any namespace
	for _, key := range keys {
		b := m.bindings[key]
		if b.namespace != "" && b.namespace != req.Namespace || !b.names(req) {
			continue
		}
		var rules []rbacv1.PolicyRule
		switch {
		case b.role.Kind == "ClusterRole":
			rules = m.clusterRoles[b.role.Name]
		case b.role.Kind == "Role" && b.namespace != "":
			rules = m.roles[b.namespace+"/"+b.role.Name]
		}
		for _, rule := range rules {
			if modelRuleAllows(rule, req) {
				return key
			}
		}
	}
	return ""
}

func (b modelBinding) names(req access.Request) bool {
	for _, s := range b.subjects {
		ns := s.Namespace
		if ns == "" {
			ns = b.namespace
		}
		switch {
		case s.Kind == "User" && s.Name == req.User,
			s.Kind == "Group" && in(req.Groups, s.Name),
			s.Kind == "ServiceAccount" && ns != "" && req.User == strings.Join([]string{"system", "serviceaccount", ns, s.Name}, ":"):
			return true
		}
	}
	return false
}

func modelRuleAllows(rule rbacv1.PolicyRule, req access.Request) bool {
	if !in(rule.Verbs, "*", req.Verb) {
		return false
	}
	if req.ResourceRequest {
		asked := []string{"*", req.Resource}
		if req.Subresource != "" {
			asked = []string{"*", req.Resource + "/" + req.Subresource, "*/" + req.Subresource}
		}
		return in(rule.APIGroups, "*", req.Group) && in(rule.Resources, asked...) &&
			(rule.ResourceNames == nil || in(rule.ResourceNames, req.Name))
	}
	for _, url := range rule.NonResourceURLs {
		prefix := strings.TrimRight(url, "*")
		if url == req.Path || prefix != url && strings.HasPrefix(req.Path, prefix) {
			return true
		}
	}
	return false
}

func in(list []string, wanted ...string) bool {
	for _, s := range list {
		for _, want := range wanted {
			if s == want {
				return true
			}
		}
	}
	return false
}
