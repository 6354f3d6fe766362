package evaluate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/internal/scope/quarantine"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/nodescope"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// agentRights lets the agent do everything, by RBAC.
const agentRights = `{"kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "all"}, ` +
	`"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}` + "\n" +
	`{"kind": "ClusterRoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "agent"}, ` +
	`"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "all"}, ` +
	`"subjects": [{"kind": "ServiceAccount", "namespace": "kube-system", "name": "agent"}]}` + "\n"

// contained is an evaluator with Quarantines and NodeScopes.
type contained struct {
	*evaluate.Evaluator
	policy atomic.Pointer[nodescope.Policy]
	set    *quarantine.Set
	// scopesUnknown and unknown are why the NodeScopes and the Quarantines are not known.
	scopesUnknown, unknown error
	tooOld                 source.Kinds
}

var errNotRead = errors.New("not read yet")

func (c *contained) Fresh() bool { return c.tooOld == 0 }

func (c *contained) TooOld(on source.Kinds) error {
	if on&c.tooOld != 0 {
		return errors.New("too old")
	}
	return nil
}

// newContained has a scope about kube-system/agent, with which it may do anything with pods of its
// node, and with CiliumEndpoints that are named like them. Missing is the resource that could not be read,
// and self are the server's own users.
func newContained(t testing.TB, mode v1alpha1.Mode, missing string, self ...string) *contained {
	t.Helper()
	text := strings.Replace(fmt.Sprintf(header, missing), "\n ", " ", 1) + objects + agentRights
	text = strings.NewReplacer(`"ClusterRole": 1`, `"ClusterRole": 2`, `"ClusterRoleBinding": 1`, `"ClusterRoleBinding": 2`).Replace(text)
	state, err := source.LoadFiles(t.Context(), []string{"-"}, source.FileOptions{Stdin: strings.NewReader(text)})
	if err != nil {
		t.Fatal(err)
	}
	c := &contained{}
	scope, errs := nodescope.Compile(&v1alpha1.NodeScope{
		ObjectMeta: metav1.ObjectMeta{Name: "agent"}, Spec: v1alpha1.NodeScopeSpec{
			Subjects: []v1alpha1.Subject{{Namespace: "kube-system", Name: "agent"}}, Mode: mode, AsNode: true,
			PodsOnNode: []v1alpha1.PodRule{
				{Resources: []string{"pods", "pods/exec"}, Verbs: []string{"*"}},
				{APIGroups: []string{"cilium.io"}, Resources: []string{"ciliumendpoints"}, Verbs: []string{"*"}},
			},
		},
	})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	policy, _ := nodescope.NewPolicy([]*nodescope.Scope{scope})
	c.policy.Store(policy)
	c.Evaluator, err = evaluate.New(t.Context(), state, evaluate.Options{
		Features: kubeversion.For(kubeversion.Latest), Ages: c,
		Containment: evaluate.Containment{
			Scopes: &c.policy, ScopesKnown: func() error { return c.scopesUnknown },
			Quarantines: func() (*quarantine.Set, error) { return c.set, c.unknown },
			Self:        func(user string) bool { return slices.Contains(self, user) },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// agentAsks returns a request of the agent with a token of a node.
func agentAsks(node, verb, resource, name string) *access.Request {
	req := &access.Request{
		User: "system:serviceaccount:kube-system:agent", ResourceRequest: true, Verb: verb, Resource: resource,
		Namespace: "shop", Name: name, Extra: map[string][]string{nodeidentity.ExtraNode: {node}},
	}
	if resource == "nodes" {
		req.Namespace = ""
	}
	return req
}

// modes are the two ways in which a server decides.
func (c *contained) modes() map[string]decision.Authorize {
	return map[string]decision.Authorize{"Node": c.AuthorizeNode, "chain": c.Authorize}
}

func TestScopesComeBeforeOtherAuthorizers(t *testing.T) {
	for _, tc := range []struct {
		rule string
		req  *access.Request
		code verdict.Code // empty: passes
	}{
		{"a pod on the node", agentAsks("a", "delete", "pods", "web"), ""},
		{"a pod on another node", agentAsks("b", "delete", "pods", "web"), nodescope.ScopePodNotOnNode},
		{"a secret of the node", agentAsks("a", "get", "secrets", "db"), ""},
		{"a secret of another node", agentAsks("b", "get", "secrets", "db"), nodescope.ScopeNotAsNode},
		{"what no rule names", agentAsks("a", "delete", "secrets", "db"), nodescope.ScopeNoRule},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			enforced, observed := newContained(t, v1alpha1.Enforce, ""), newContained(t, v1alpha1.Observe, "")
			for mode, authorize := range enforced.modes() {
				got, err := authorize(t.Context(), tc.req)
				if err != nil {
					t.Fatal(err)
				}
				if tc.code == "" {
					if got.Decision == verdict.Deny || got.Scope != nil {
						t.Errorf("%s: %+v", mode, got)
					}
					continue
				}
				if got.Decision != verdict.Deny || got.Code != tc.code || got.Scope == nil || !got.Scope.Enforced ||
					got.Reason != "NodeScope: "+nodescope.Summary(tc.code) || !strings.Contains(got.Detail(), "NodeScope agent") {
					t.Errorf("%s: %+v", mode, got)
				}
			}
			for mode, authorize := range observed.modes() {
				got, err := authorize(t.Context(), tc.req)
				allowed := mode == "chain"
				if err != nil || (got.Decision == verdict.Allow) != allowed || got.Decision == verdict.Deny {
					t.Errorf("%s, observed: %+v %v", mode, got, err)
				}
				if (got.Scope != nil) != (tc.code != "") || got.Scope != nil && (got.Scope.Code != tc.code || got.Scope.Enforced) {
					t.Errorf("%s, observed: scope %+v", mode, got.Scope)
				}
			}
			review, err := enforced.Review(t.Context(), tc.req)
			if err != nil || (review.Decision == verdict.Deny) != (tc.code != "") {
				t.Errorf("review: %+v %v", review, err)
			}
			result, err := enforced.Chain.Explain(t.Context(), tc.req)
			if err != nil || (result.DecidedBy == "NodeScope") != (tc.code != "") {
				t.Errorf("explained: %+v %v", result, err)
			}
		})
	}
}

func TestQuarantinesComeFirst(t *testing.T) {
	c := newContained(t, v1alpha1.Enforce, "")
	now := time.Now()
	c.set, _ = quarantine.NewSet([]*v1alpha1.Quarantine{{
		ObjectMeta: metav1.ObjectMeta{Name: "node-a"}, Spec: v1alpha1.QuarantineSpec{Node: "a"},
	}}, quarantine.Limit{Nodes: 1}, now)
	node := &access.Request{ResourceRequest: true, Verb: "get", Resource: "secrets", Namespace: "shop", Name: "db"}
	node.User, node.Groups = nodeidentity.User("a")
	for mode, authorize := range c.modes() {
		for _, req := range []*access.Request{node, agentAsks("a", "delete", "pods", "web")} {
			got, err := authorize(t.Context(), req)
			if err != nil || got.Decision != verdict.Deny || got.Code != quarantine.NodeQuarantined ||
				!strings.Contains(got.Detail(), "Quarantine node-a") || strings.Contains(got.Reason, "node-a") {
				t.Errorf("%s, %s: %+v %v", mode, req.User, got, err)
			}
		}
	}
	write := &noderestriction.Request{
		User: "system:serviceaccount:shop:web", Extra: map[string][]string{nodeidentity.ExtraNode: {"a"}},
		Operation: noderestriction.Update, Resource: "configmaps", Namespace: "shop", Name: "c",
	}
	if got := c.Admit(t.Context(), write); got.Decision != verdict.Deny || got.Code != quarantine.NodeQuarantined || got.Status != 403 {
		t.Errorf("a write: %+v", got)
	}
	write.Extra[nodeidentity.ExtraNode] = []string{"b"}
	if got := c.Admit(t.Context(), write); got.Decision != verdict.Allow {
		t.Errorf("a write from another node: %+v", got)
	}
}

// TestWhatIsNotKnownFailsClosed: no opinion would let RBAC allow a request that may have to be refused.
func TestWhatIsNotKnownFailsClosed(t *testing.T) {
	const pods = `{"group": "", "resource": "pods", "reason": "not allowed"}`
	node := &access.Request{ResourceRequest: true, Verb: "get", Resource: "secrets", Namespace: "shop", Name: "db"}
	node.User, node.Groups = nodeidentity.User("a")
	person := &access.Request{User: "ann", ResourceRequest: true, Verb: "list", Resource: "secrets"}
	other := agentAsks("a", "get", "pods", "web")
	other.User, other.Extra = "system:serviceaccount:shop:web", nil
	for _, tc := range []struct {
		rule    string
		missing string
		change  func(*contained)
		req     *access.Request
		known   bool
	}{
		{"quarantines, for a node", "", func(c *contained) { c.unknown = errNotRead }, node, false},
		{
			"quarantines, for a token of a node", "", func(c *contained) { c.unknown = errNotRead },
			agentAsks("a", "get", "pods", "web"), false,
		},
		{"quarantines, for a person", "", func(c *contained) { c.unknown = errNotRead }, person, true},
		{"scopes, for an account", "", func(c *contained) { c.scopesUnknown = errNotRead }, other, false},
		{"scopes, for a node", "", func(c *contained) { c.scopesUnknown = errNotRead }, node, true},
		{"scopes, for a person", "", func(c *contained) { c.scopesUnknown = errNotRead }, person, true},
		{
			"old pods, for a pod that is found", "", func(c *contained) { c.tooOld = source.Pods },
			agentAsks("a", "delete", "pods", "web"), false,
		},
		{
			"old pods, for a pod that is not", "", func(c *contained) { c.tooOld = source.Pods },
			agentAsks("b", "delete", "pods", "web"), false,
		},
		{
			"old pods, for a rule without pods", "", func(c *contained) { c.tooOld = source.Pods },
			agentAsks("b", "delete", "secrets", "db"), true,
		},
		{"pods that could not be read", pods, func(*contained) {}, agentAsks("b", "delete", "pods", "web"), false},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			c := newContained(t, v1alpha1.Enforce, tc.missing)
			tc.change(c)
			for mode, authorize := range c.modes() {
				got, err := authorize(t.Context(), tc.req)
				if closed := err != nil && got.FailClosed && got.Decision == verdict.NoOpinion; closed == tc.known {
					t.Errorf("%s: %+v %v", mode, got, err)
				}
			}
			if !tc.known {
				checkWriteFailsClosed(t.Context(), t, c, tc.req)
			}
		})
	}
}

// checkWriteFailsClosed checks that the user's deletion of the object is not decided either.
func checkWriteFailsClosed(ctx context.Context, t *testing.T, c *contained, req *access.Request) {
	t.Helper()
	got := c.Admit(ctx, &noderestriction.Request{
		User: req.User, Groups: req.Groups, Extra: req.Extra, Operation: noderestriction.Delete, Resource: "pods",
		Namespace: req.Namespace, Name: "web",
	})
	if got.Contained == nil && got.TooOld == nil && len(got.Unread) == 0 {
		t.Errorf("the write: %+v", got)
	}
}

func TestWritesOfScopedAccounts(t *testing.T) {
	remove := func(node, name string) *noderestriction.Request {
		req := agentAsks(node, "", "pods", name)
		return &noderestriction.Request{
			User: req.User, Extra: req.Extra, Operation: noderestriction.Delete, Resource: "pods", Namespace: "shop", Name: name,
		}
	}
	for _, mode := range []v1alpha1.Mode{v1alpha1.Enforce, v1alpha1.Observe} {
		c := newContained(t, mode, "")
		if got := c.Admit(t.Context(), remove("a", "web")); got.Decision != verdict.Allow || got.Scope != nil {
			t.Errorf("%s, a pod on the node: %+v", mode, got)
		}
		got := c.Admit(t.Context(), remove("b", "web"))
		if enforced := mode == v1alpha1.Enforce; (got.Decision == verdict.Deny) != enforced || got.Scope == nil ||
			got.Scope.Enforced != enforced || got.Scope.Code != nodescope.ScopePodNotOnNode {
			t.Errorf("%s, a pod on another node: %+v, scope %+v", mode, got, got.Scope)
		}
		create := remove("a", "a")
		create.Operation, create.Resource, create.Namespace = noderestriction.Create, "nodes", ""
		if object, _ := c.Reads(create); !object {
			t.Errorf("%s: the object of a new node is not read", mode)
		}
	}
}
