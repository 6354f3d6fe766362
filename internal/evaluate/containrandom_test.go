package evaluate_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/nodescope"
)

// randomContainment makes clusters, NodeScopes, Quarantines and requests with few names, so that they
// are often about the same objects.
type randomContainment struct {
	*rand.Rand
	seed uint64
}

func newRandomContainment(seed uint64) *randomContainment {
	return &randomContainment{rand.New(rand.NewPCG(seed, 7)), seed}
}

var (
	randomNodeNames = []string{"n1", "n1", "n2", "n3"}
	randomSpaces    = []string{"kube-system", "shop", ""}
	randomPodNames  = []string{"web", "db", "agent-n1", "agent-n2"}
	randomSubjects  = []v1alpha1.Subject{
		{Namespace: "kube-system", Name: "agent"}, {Namespace: "kube-system"}, {Namespace: "shop", Name: "web"}, {Namespace: "shop"},
	}
	randomGroups    = []string{"", "", "", "coordination.k8s.io", "storage.k8s.io", "cilium.io", "*"}
	randomResources = []string{
		"pods", "pods", "nodes", "secrets", "configmaps", "leases", "csinodes", "ciliumnodes", "serviceaccounts", "*",
	}
	randomSubresources = []string{"", "", "", "status", "eviction", "token", "exec", "proxy"}
	randomVerbs        = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
	randomOperators    = []selection.Operator{selection.Equals, selection.Equals, selection.NotEquals, selection.DoubleEquals, selection.In}
	randomPaths        = []string{"/metrics", "/healthz/etcd", "/version"}
)

func (r *randomContainment) chance(oneIn int) bool { return r.IntN(oneIn) == 0 }

func oneOf[T any](r *randomContainment, from []T) T { return from[r.IntN(len(from))] }

func someOf[T any](r *randomContainment, from []T) []T {
	out := make([]T, 1+r.IntN(3))
	for i := range out {
		out[i] = oneOf(r, from)
	}
	return out
}

// cluster returns nodes, pods, and what RBAC grants to accounts and nodes.
func (r *randomContainment) cluster(t *testing.T) string {
	t.Helper()
	var objects []any
	for _, name := range []string{"n1", "n2"} {
		objects = append(objects, &corev1.Node{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)},
		})
	}
	for _, name := range randomPodNames {
		pod := r.pod(name, oneOf(r, randomSpaces[:2]), oneOf(r, []string{"n1", "n2", ""}))
		pod.UID = types.UID("uid-" + name)
		objects = append(objects, pod)
	}
	for i := range 1 + r.IntN(4) {
		meta := metav1.ObjectMeta{Name: fmt.Sprint("role-", i)}
		role := &rbacv1.ClusterRole{
			TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"}, ObjectMeta: meta,
		}
		for range 1 + r.IntN(3) {
			role.Rules = append(role.Rules, r.rbacRule())
		}
		objects = append(objects, role, &rbacv1.ClusterRoleBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			Subjects: []rbacv1.Subject{oneOf(r, []rbacv1.Subject{
				{Kind: "ServiceAccount", Namespace: "kube-system", Name: "agent"},
				{Kind: "ServiceAccount", Namespace: "shop", Name: "web"},
				{Kind: "Group", APIGroup: rbacv1.GroupName, Name: "system:serviceaccounts"},
				{Kind: "Group", APIGroup: rbacv1.GroupName, Name: "system:nodes"},
			})},
		})
	}
	var all strings.Builder
	for _, object := range objects {
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(append(text, "\n---\n"...))
	}
	return all.String()
}

func (r *randomContainment) pod(name, namespace, node string) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{NodeName: node, ServiceAccountName: "agent", Volumes: []corev1.Volume{
			{Name: "s", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "db"}}},
		}},
	}
}

func (r *randomContainment) verbs() []string {
	if r.chance(2) {
		return []string{"*"}
	}
	return someOf(r, randomVerbs)
}

func (r *randomContainment) resources() []string {
	names := someOf(r, randomResources)
	for i, name := range names {
		if r.chance(4) {
			names[i] = name + "/" + oneOf(r, randomSubresources[3:])
		}
	}
	return names
}

func (r *randomContainment) rbacRule() rbacv1.PolicyRule {
	if r.chance(8) {
		return rbacv1.PolicyRule{NonResourceURLs: []string{oneOf(r, randomPaths)}, Verbs: []string{"get"}}
	}
	return rbacv1.PolicyRule{APIGroups: someOf(r, randomGroups), Resources: r.resources(), Verbs: r.verbs()}
}

// scopes returns NodeScopes, some of which are not valid.
func (r *randomContainment) scopes(observe bool) (scopes []*nodescope.Scope) {
	for i := range 1 + r.IntN(4) {
		object := &v1alpha1.NodeScope{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("scope-", i)}, Spec: r.scopeSpec()}
		if observe {
			object.Spec.Mode = v1alpha1.Observe
		}
		scope, errs := nodescope.Compile(object)
		if len(errs) > 0 {
			scope = nodescope.Broken(object)
		}
		if scope != nil {
			scopes = append(scopes, scope)
		}
	}
	return scopes
}

func (r *randomContainment) scopeSpec() v1alpha1.NodeScopeSpec {
	effects := []v1alpha1.Effect{v1alpha1.Deny, v1alpha1.Allow, ""}
	spec := v1alpha1.NodeScopeSpec{
		Subjects: someOf(r, randomSubjects), Mode: oneOf(r, []v1alpha1.Mode{v1alpha1.Observe, v1alpha1.Enforce, v1alpha1.Enforce}),
		TokensWithoutNode: oneOf(r, effects), Otherwise: oneOf(r, effects), AsNode: r.chance(3),
	}
	if r.chance(10) {
		spec.Otherwise = "Perhaps"
	}
	for range r.IntN(3) {
		spec.NamedAsNode = append(spec.NamedAsNode, v1alpha1.NamedRule{
			APIGroups: someOf(r, randomGroups), Resources: r.resources(), Verbs: r.verbs(),
		})
	}
	for range r.IntN(2) {
		spec.SelectsNode = append(spec.SelectsNode, v1alpha1.SelectedRule{
			APIGroups: someOf(r, randomGroups), Resources: r.resources(), Verbs: []string{"list", "watch", "deletecollection"},
			Field: oneOf(r, []string{"spec.nodeName", "metadata.name"}),
		})
	}
	for range r.IntN(2) {
		spec.PodsOnNode = append(spec.PodsOnNode, v1alpha1.PodRule{
			Resources: []string{oneOf(r, []string{"pods", "pods/*", "pods/status"})}, Verbs: r.verbs(),
		})
	}
	for range r.IntN(2) {
		spec.Anywhere = append(spec.Anywhere, v1alpha1.AnywhereRule{
			APIGroups: someOf(r, randomGroups), Resources: r.resources(), Verbs: r.verbs(),
		})
	}
	return spec
}

func (r *randomContainment) quarantines(now time.Time) (all []*v1alpha1.Quarantine) {
	for i := range r.IntN(3) {
		object := &v1alpha1.Quarantine{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("quarantine-", i)}}
		if r.chance(3) {
			object.Spec.Credential = "JTI=1"
		} else {
			object.Spec.Node = oneOf(r, randomNodeNames)
		}
		if r.chance(3) {
			object.Spec.ExpirationTime = &metav1.Time{Time: now.Add(time.Duration(r.IntN(3)-1) * time.Hour)}
		}
		for range r.IntN(2) {
			rule := v1alpha1.QuarantineRule{APIGroups: someOf(r, randomGroups), Resources: r.resources(), Verbs: r.verbs()}
			if r.chance(2) {
				rule.ServiceAccounts = someOf(r, randomSubjects)
			}
			object.Spec.Allow = append(object.Spec.Allow, rule)
		}
		all = append(all, object)
	}
	return all
}

// user returns a user, most often a service account with a token of a node.
func (r *randomContainment) user() (name string, groups []string, extra map[string][]string) {
	switch r.IntN(8) {
	case 0:
		name, groups = nodeidentity.User(oneOf(r, randomNodeNames))
		return name, groups, nil
	case 1:
		name = oneOf(r, []string{"ann", "system:node:n1", ""})
		return name, oneOf(r, [][]string{nil, {"system:masters"}, {"system:authenticated"}}), r.extra()
	}
	account := oneOf(r, []v1alpha1.Subject{{Namespace: "kube-system", Name: "agent"}, {Namespace: "shop", Name: "web"}})
	groups = []string{"system:serviceaccounts", "system:serviceaccounts:" + account.Namespace, "system:authenticated"}
	return nodeidentity.ServiceAccountUser(account.Namespace, account.Name), groups, r.extra()
}

func (r *randomContainment) extra() map[string][]string {
	extra := map[string][]string{}
	if !r.chance(6) {
		extra[nodeidentity.ExtraNode] = oneOf(r, [][]string{{"n1"}, {"n1"}, {"n2"}, {"n3"}, {"n1", "n2"}, {""}, {}})
	}
	if r.chance(4) {
		extra[nodeidentity.ExtraCredential] = []string{oneOf(r, []string{"JTI=1", "JTI=2"})}
	}
	if r.chance(10) {
		extra[nodeidentity.ExtraAssociatedNodeKeys] = []string{nodeidentity.ExtraNode}
	}
	return extra
}

func (r *randomContainment) request() *access.Request {
	req := &access.Request{}
	req.User, req.Groups, req.Extra = r.user()
	req.Verb = oneOf(r, randomVerbs)
	if r.chance(15) {
		req.Path = oneOf(r, randomPaths)
		return req
	}
	if r.chance(20) {
		req.Verb = oneOf(r, []string{"impersonate", "impersonate:associated-node", "impersonate-on:associated-node:get", "approve", ""})
	}
	req.ResourceRequest, req.Version = true, "v1"
	req.Group, req.Resource = r.resource()
	req.Subresource, req.Namespace = oneOf(r, randomSubresources), oneOf(r, randomSpaces)
	if !r.chance(4) {
		req.Name = r.name()
	}
	if r.chance(3) {
		req.FieldSelector = fields.Requirements{{
			Field: oneOf(r, []string{"spec.nodeName", "metadata.name"}), Operator: oneOf(r, randomOperators), Value: r.name(),
		}}
	}
	return req
}

func (r *randomContainment) name() string {
	if r.chance(2) {
		return oneOf(r, randomNodeNames)
	}
	return oneOf(r, randomPodNames)
}

// resource returns a resource in its own group.
func (r *randomContainment) resource() (group, resource string) {
	resource = oneOf(r, randomResources[:len(randomResources)-1])
	return map[string]string{"leases": "coordination.k8s.io", "csinodes": "storage.k8s.io", "ciliumnodes": "cilium.io"}[resource], resource
}

func (r *randomContainment) write() *noderestriction.Request {
	req := &noderestriction.Request{Version: "v1", Operation: oneOf(r, []noderestriction.Operation{
		noderestriction.Create, noderestriction.Create, noderestriction.Update, noderestriction.Delete, noderestriction.Connect,
	})}
	req.User, req.Groups, req.Extra = r.user()
	req.Group, req.Resource = r.resource()
	req.Subresource, req.Namespace = oneOf(r, randomSubresources), oneOf(r, randomSpaces)
	name := r.name()
	if req.Operation != noderestriction.Create || r.chance(2) {
		req.Name = name
	}
	if req.Operation != noderestriction.Delete {
		req.Object = r.object(req, name)
	}
	if req.Operation != noderestriction.Create {
		req.OldObject = r.object(req, name)
	}
	return req
}

// object returns an object of the resource, or of what a create of the subresource takes.
func (r *randomContainment) object(req *noderestriction.Request, name string) runtime.Object {
	meta := metav1.ObjectMeta{Namespace: req.Namespace, Name: name}
	switch {
	case req.Resource == "serviceaccounts" && req.Subresource == "token":
		return &authenticationv1.TokenRequest{ObjectMeta: meta}
	case req.Resource == "pods":
		return r.pod(name, req.Namespace, oneOf(r, randomNodeNames))
	case req.Resource == "nodes":
		return &corev1.Node{ObjectMeta: meta}
	case req.Resource == "leases":
		return &coordinationv1.Lease{ObjectMeta: meta}
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: meta}
}
