package attackpaths_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/nodescope"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// policyOf compiles NodeScopes.
func policyOf(t *testing.T, scopes ...*v1alpha1.NodeScope) *nodescope.Policy {
	t.Helper()
	var all []*nodescope.Scope
	for _, object := range scopes {
		s, errs := nodescope.Compile(object)
		if len(errs) > 0 {
			t.Fatalf("%v in %+v", errs.ToAggregate(), object.Spec)
		}
		all = append(all, s)
	}
	policy, _ := nodescope.NewPolicy(all)
	return policy
}

// scopes are one or two random scopes for some of the accounts.
func (rc *randomCluster) scopes(c *attackpaths.Cluster, mode v1alpha1.Mode) []*v1alpha1.NodeScope {
	var all []*v1alpha1.NodeScope
	for i := range 1 + rc.IntN(2) {
		s := &v1alpha1.NodeScope{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("scope-", i)}}
		s.Spec.Mode, s.Spec.AsNode = mode, rc.chance(3)
		effects := []v1alpha1.Effect{v1alpha1.Deny, v1alpha1.Deny, v1alpha1.Allow}
		s.Spec.Otherwise, s.Spec.TokensWithoutNode = pick(rc, effects), pick(rc, effects)
		for _, a := range c.Inventory.ServiceAccounts() {
			if rc.chance(2) {
				s.Spec.Subjects = append(s.Spec.Subjects, v1alpha1.Subject{Namespace: a.Namespace, Name: a.Name})
			}
		}
		if len(s.Spec.Subjects) == 0 || rc.chance(3) {
			s.Spec.Subjects = append(s.Spec.Subjects, v1alpha1.Subject{Namespace: pick(rc, []string{"a", "b", "kube-system"})})
		}
		var namespaces []string
		if rc.chance(3) {
			namespaces = []string{"a"}
		}
		for range rc.IntN(3) {
			r := rc.scopeRule()
			s.Spec.NamedAsNode = append(s.Spec.NamedAsNode, v1alpha1.NamedRule{
				APIGroups: r.APIGroups, Resources: r.Resources, Verbs: r.Verbs, Namespaces: namespaces,
			})
		}
		if rc.chance(2) {
			s.Spec.SelectsNode = append(s.Spec.SelectsNode, v1alpha1.SelectedRule{
				APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: rc.some([]string{"list", "watch", "deletecollection"}),
				Namespaces: namespaces, Field: pick(rc, []string{"metadata.name", "spec.nodeName"}),
			})
		}
		if rc.chance(2) {
			s.Spec.PodsOnNode = append(s.Spec.PodsOnNode, v1alpha1.PodRule{
				Resources: []string{pick(rc, []string{"pods/*", "pods", "pods/exec"})}, Verbs: []string{"*"}, Namespaces: namespaces,
			})
		}
		if rc.chance(2) {
			s.Spec.PodsOnNode = append(s.Spec.PodsOnNode, v1alpha1.PodRule{
				APIGroups: []string{"", "apps", "rbac.authorization.k8s.io"}, Verbs: []string{"*"}, Namespaces: namespaces,
				Resources: rc.someOrAll([]string{
					"pods", "pods/exec", "secrets", "configmaps", "serviceaccounts", "serviceaccounts/token", "deployments", "daemonsets",
					"roles", "rolebindings", "clusterroles", "nodes/proxy",
				}),
			})
		}
		for range rc.IntN(4) {
			r := rc.scopeRule()
			s.Spec.Anywhere = append(s.Spec.Anywhere, v1alpha1.AnywhereRule{
				APIGroups: r.APIGroups, Resources: r.Resources, Verbs: r.Verbs, ResourceNames: r.ResourceNames, Namespaces: namespaces,
			})
		}
		all = append(all, s)
	}
	return all
}

// someOrAll are one of some texts, or all of them.
func (rc *randomCluster) someOrAll(of []string) []string {
	if rc.chance(2) {
		return of
	}
	return []string{pick(rc, of)}
}

// scopeRule is a random rule about resources.
func (rc *randomCluster) scopeRule() rbacv1.PolicyRule {
	for {
		for _, r := range rc.Rules() {
			if len(r.NonResourceURLs) == 0 && len(r.APIGroups) > 0 && len(r.Resources) > 0 && !slices.Contains(r.ResourceNames, "") {
				return r
			}
		}
	}
}

// oracle decides requests of tokens by RBAC and NodeScopes.
type oracle struct {
	c     *attackpaths.Cluster
	scope *nodescope.Authorizer
	// anyName lets pass what is named like pods whatever its name.
	anyName *nodescope.Authorizer
}

func newOracle(t *testing.T, c *attackpaths.Cluster, scopes []*v1alpha1.NodeScope) oracle {
	t.Helper()
	var anyName []*v1alpha1.NodeScope
	for _, s := range scopes {
		anyName = append(anyName, withoutPodNames(s))
	}
	authorizer := func(current *nodescope.Policy) *nodescope.Authorizer {
		var policy atomic.Pointer[nodescope.Policy]
		policy.Store(current)
		return nodescope.New(&policy, nil, c.Relations, nodeauthz.New(c.Relations, c.Features), nil)
	}
	return oracle{c, authorizer(c.NodeScopes), authorizer(policyOf(t, anyName...))}
}

// withoutPodNames lets pass objects that must be named like pods whatever their name.
func withoutPodNames(s *v1alpha1.NodeScope) *v1alpha1.NodeScope {
	s = s.DeepCopy()
	for _, r := range s.Spec.PodsOnNode {
		for _, group := range r.APIGroups {
			others := slices.DeleteFunc(slices.Clone(r.Resources), func(name string) bool {
				return group == "" && strings.HasPrefix(name, "pods")
			})
			if len(others) > 0 {
				s.Spec.Anywhere = append(s.Spec.Anywhere, v1alpha1.AnywhereRule{
					APIGroups: []string{group}, Resources: others, Verbs: r.Verbs, Namespaces: r.Namespaces,
				})
			}
		}
	}
	return s
}

func (o oracle) allows(req *access.Request) bool {
	answer := o.scope.Decide(req)
	return o.c.RBAC.Evaluate(req).Allowed && answer.Decision != verdict.Deny
}

// may reports whether a request is allowed if the object is named like a pod on the node.
func (o oracle) may(req *access.Request) bool {
	answer := o.anyName.Decide(req)
	return o.allows(req) || req.Namespace != "" && o.c.RBAC.Evaluate(req).Allowed && answer.Decision != verdict.Deny
}

// creates reports whether an object of some name may be created.
func (o oracle) creates(t *testing.T, req *access.Request, node string, names []string) bool {
	t.Helper()
	return o.allows(req) && slices.ContainsFunc(names, func(name string) bool {
		answer := o.scope.Admit(t.Context(), &noderestriction.Request{
			User: req.User, Extra: req.Extra, Operation: noderestriction.Create, Group: req.Group, Resource: req.Resource,
			Subresource: req.Subresource, Namespace: req.Namespace, Name: name,
		})
		return answer.Decision != verdict.Deny
	})
}

// has says whether a token has a right for an object: one of its requests is allowed. What a selector
// that is no name selects is possible only, and so is an object that is named like no pod on the node.
func (o oracle) has(t *testing.T, account, namespace, node string, r attackpaths.Right, in, object string,
	names []string,
) (certain, possible bool) {
	t.Helper()
	req := &access.Request{
		User: isAccount + namespace + ":" + account, ResourceRequest: true, Group: r.Group, Resource: r.Resource,
		Subresource: r.Subresource, Namespace: in, Extra: map[string][]string{"authentication.kubernetes.io/node-name": {node}},
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
	for _, req.Verb = range r.Verbs {
		nameless, named := r.Nameless(req.Verb)
		lists := req.Verb == "list" || req.Verb == "watch"
		if nameless {
			req.Name, req.FieldSelector = "", nil
			ok := o.allows(req)
			if !lists && r.Subresource == "" && in != "" {
				possible = possible || o.may(req)
				ok = o.creates(t, req, node, names)
			}
			certain, possible = certain || ok, possible || ok
		}
		if lists {
			req.FieldSelector = fields.Requirements{{Operator: selection.Equals, Field: "spec.nodeName", Value: node}}
			ok := o.allows(req)
			possible = possible || ok
		}
		if req.Verb == "deletecollection" { // the API server reads no name from the selector
			req.FieldSelector = fields.Requirements{{Operator: selection.Equals, Field: "spec.nodeName", Value: node}}
			possible = possible || o.allows(req)
			req.FieldSelector = fields.Requirements{{Operator: selection.Equals, Field: "metadata.name", Value: node}}
			ok := object == node && o.allows(req)
			certain, possible = certain || ok, possible || ok
		}
		if named {
			req.Name, req.FieldSelector = object, nil
			byName := fields.Requirement{Operator: selection.Equals, Field: "metadata.name", Value: object}
			if lists {
				req.FieldSelector = fields.Requirements{byName, {Operator: selection.Equals, Field: "spec.nodeName", Value: node}}
				both := o.may(req)
				possible = possible || both
				req.FieldSelector = fields.Requirements{byName}
			}
			ok := o.allows(req)
			certain, possible = certain || ok, possible || o.may(req)
		}
	}
	return certain, possible
}

// withoutAsNode are the scopes without the rules that the Node authorizer decides.
func withoutAsNode(scopes []*v1alpha1.NodeScope) []*v1alpha1.NodeScope {
	for _, s := range scopes {
		s.Spec.AsNode = false
	}
	return scopes
}

// TestRightsOfTokensAreWhatRBACAndScopesAllow puts each request to RBAC and to the scopes.
func TestRightsOfTokensAreWhatRBACAndScopesAllow(t *testing.T) {
	checked, limited, named := 0, 0, 0
	eachCluster(t, 600, func(t *testing.T, rc *randomCluster) {
		c := rc.cluster(t, rc.Objects)
		scopes := withoutAsNode(rc.scopes(c, v1alpha1.Enforce))
		c.NodeScopes = policyOf(t, scopes...)
		g, o := graphOf(t, c), newOracle(t, c, scopes)
		names := []string{"any-other"}
		for _, p := range c.Inventory.Pods() {
			names = append(names, p.Name.Name)
		}
		n := newNaive(c)
		for _, node := range n.nodes {
			names = append(names, node.Name)
		}
		// Of a create that passes by a name that a rule of anywhere lists, paths say possible.
		created := slices.Clone(names)
		for _, role := range c.RBAC.Roles() {
			for _, rule := range role.Rules {
				names = append(names, rule.ResourceNames...)
			}
		}
		for _, s := range scopes {
			for _, rule := range s.Spec.Anywhere {
				names = append(names, rule.ResourceNames...)
			}
		}
		slices.Sort(names)
		names = slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
		for _, p := range c.Inventory.Pods() {
			if p.Node == "" || p.Mirror || len(p.Audiences) == 0 || !inEnforced(c, p.Namespace, p.ServiceAccount) {
				continue
			}
			for _, r := range attackpaths.Rights(c) {
				for _, in := range append(n.sortedNamespaces(), "") {
					if (in == "") == r.Namespaced {
						continue
					}
					if n.ending[in] && r.Verbs[0] == "create" {
						continue // nothing is created in a namespace that terminates
					}
					for _, object := range names {
						got := g.TokenHas(p.Namespace, p.ServiceAccount, p.Node, r, in, object)
						certain, possible := o.has(t, p.ServiceAccount, p.Namespace, p.Node, r, in, object, created)
						checked++
						if certain {
							limited++
						}
						if possible && !certain && in != "" {
							named++
						}
						sensitive := r.Verbs[0] == "create" &&
							slices.Contains([]string{"secrets", "configmaps", "serviceaccounts"}, r.Resource)
						switch {
						case certain && got == attackpaths.Possible && sensitive:
						case certain != (got == attackpaths.Certain) || possible != (got >= attackpaths.Possible):
							t.Errorf("token of %s/%s on %s: %v %s.%s/%s %s/%s is %s, want certain %v, possible %v with %s",
								p.Namespace, p.ServiceAccount, p.Node, r.Verbs, r.Resource, r.Group, r.Subresource, in, object, got,
								certain, possible, scopeTexts(scopes))
							return
						}
					}
				}
			}
		}
	})
	if t.Logf("%d rights, of which %d are had, %d are possible", checked, limited, named); limited == 0 || named == 0 {
		t.Error("no token has a right, or none is possible")
	}
}

func scopeTexts(scopes []*v1alpha1.NodeScope) string {
	var all []string
	for _, s := range scopes {
		all = append(all, fmt.Sprintf("%+v", s.Spec))
	}
	return strings.Join(all, "\n")
}

// inEnforced reports whether an enforced scope is about an account.
func inEnforced(c *attackpaths.Cluster, namespace, name string) bool {
	return slices.ContainsFunc(c.NodeScopes.Of(isAccount+namespace+":"+name), func(s *nodescope.Scope) bool {
		return s.Mode() == v1alpha1.Enforce
	})
}

// TestObservedScopesChangeNothing compares results with scopes in the mode Observe and without.
func TestObservedScopesChangeNothing(t *testing.T) {
	eachCluster(t, 40, func(t *testing.T, rc *randomCluster) {
		c := rc.cluster(t, rc.Objects)
		without := graphOf(t, c)
		starts := rc.starts(newNaive(c))
		c.NodeScopes = policyOf(t, rc.scopes(c, v1alpha1.Observe)...)
		with := graphOf(t, c)
		for _, start := range starts {
			if a, b := from(t, without, start), from(t, with, start); !reflect.DeepEqual(a, b) {
				t.Errorf("from %s: %+v\nwith observed scopes\n%+v", start, a, b)
			}
		}
		if len(with.Notes()) > 0 {
			t.Errorf("notes are %v", with.Notes())
		}
	})
}

// TestEnforcedScopesReachLess compares results with enforced scopes and without.
func TestEnforcedScopesReachLess(t *testing.T) {
	removed := 0
	eachCluster(t, 300, func(t *testing.T, rc *randomCluster) {
		c := rc.cluster(t, rc.Objects)
		without := graphOf(t, c)
		starts := rc.starts(newNaive(c))
		scopes := rc.scopes(c, v1alpha1.Enforce)
		c.NodeScopes = policyOf(t, scopes...)
		with := graphOf(t, c)
		for _, start := range starts {
			many, few := certainties(from(t, without, start)), certainties(from(t, with, start))
			for h, certainty := range few {
				before := max(many[h], many[attackpaths.Holding{Kind: attackpaths.ClusterAdmin}])
				if name, ok := strings.CutPrefix(h.Name, "system:node:"); ok {
					before = max(before, many[attackpaths.Holding{Kind: attackpaths.Node, Name: name}])
				}
				if before < certainty {
					t.Errorf("from %s: %s is %s, and %s without scopes\n%s", start, h, certainty, before, scopeTexts(scopes))
				}
			}
			removed += len(many) - len(few)
		}
	})
	if removed == 0 {
		t.Error("no scope removed anything")
	}
}

// TestScopesThatLetEverythingPassChangeNothing compares what is reached, for accounts that are held with
// any token.
func TestScopesThatLetEverythingPassChangeNothing(t *testing.T) {
	eachCluster(t, 100, func(t *testing.T, rc *randomCluster) {
		c := rc.cluster(t, rc.Objects)
		without := graphOf(t, c)
		starts := rc.starts(newNaive(c))
		all := []string{"*"}
		s := &v1alpha1.NodeScope{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: v1alpha1.NodeScopeSpec{
			Mode: v1alpha1.Enforce, AsNode: true, TokensWithoutNode: v1alpha1.Allow,
			Anywhere: []v1alpha1.AnywhereRule{{APIGroups: all, Resources: all, Verbs: all}},
		}}
		for _, a := range c.Inventory.ServiceAccounts() {
			s.Spec.Subjects = append(s.Spec.Subjects, v1alpha1.Subject{Namespace: a.Namespace, Name: a.Name})
		}
		if len(s.Spec.Subjects) == 0 {
			return
		}
		c.NodeScopes = policyOf(t, s)
		with := graphOf(t, c)
		for _, start := range starts {
			before, after := certainties(from(t, without, start)), certainties(from(t, with, start))
			for h, certainty := range before {
				now := max(after[h], after[attackpaths.Holding{Kind: attackpaths.ClusterAdmin}])
				if now == attackpaths.No || start.Kind == attackpaths.ServiceAccount && now < certainty {
					t.Errorf("from %s: %s is %s, and %s with scopes", start, h, certainty, now)
				}
			}
		}
	})
}

// TestAllNodesAgreesWithFromInScopes is TestAllNodesAgreesWithFrom for counts.
func TestAllNodesAgreesWithFromInScopes(t *testing.T) {
	eachCluster(t, 100, func(t *testing.T, rc *randomCluster) {
		c := rc.cluster(t, rc.Objects)
		c.NodeScopes = policyOf(t, rc.scopes(c, v1alpha1.Enforce)...)
		g := graphOf(t, c)
		for _, class := range g.AllNodes() {
			r := from(t, g, attackpaths.Holding{Kind: attackpaths.Node, Name: class.Nodes[0]})
			if r.ClusterAdmin != class.ClusterAdmin {
				t.Errorf("node %s: cluster-admin is %s, and %s among all nodes", class.Nodes[0], r.ClusterAdmin, class.ClusterAdmin)
			}
			if want := countsOf(r); !slices.Equal(class.Counts, want) {
				t.Errorf("node %s: counts are %v, want %v", class.Nodes[0], class.Counts, want)
			}
		}
	})
}

// TestWhatToChangeAgreesInScopes is TestWhatToChangeAgreesWithChangedObjects with enforced scopes.
func TestWhatToChangeAgreesInScopes(t *testing.T) {
	helps := 0
	eachCluster(t, 30, func(t *testing.T, rc *randomCluster) {
		rc.addPaths()
		rc.policy = policyOf(t, rc.scopes(rc.cluster(t, rc.Objects), v1alpha1.Enforce)...)
		c := rc.cluster(t, rc.Objects)
		before, changes := reachOf(t, c, attackpaths.Holding{}), naiveChanges(rc.Objects)
		for _, possible := range []bool{false, true} {
			advice, err := attackpaths.WhatToChange(c, attackpaths.AdviceOptions{Possible: possible})
			if err != nil {
				t.Fatal(err)
			}
			compareAlone(t, rc, advice, attackpaths.Holding{}, before, changes)
			checkSet(t, rc, advice, attackpaths.Holding{}, before, changes, possible)
			helps += len(advice.Alone)
		}
	})
	if helps == 0 {
		t.Error("no change helps")
	}
}
