package evaluate_test

import (
	"errors"
	"testing"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/nodescope"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// asksForEndpoint is a request for an object that is named like a pod.
func asksForEndpoint(node, verb, name string) *access.Request {
	req := agentAsks(node, verb, "ciliumendpoints", name)
	req.Group = "cilium.io"
	return req
}

func writesEndpoint(node string, operation noderestriction.Operation, name string) *noderestriction.Request {
	req := asksForEndpoint(node, "", name)
	return &noderestriction.Request{
		User: req.User, Extra: req.Extra, Operation: operation, Group: req.Group, Resource: req.Resource,
		Namespace: req.Namespace, Name: name,
	}
}

func TestObjectsThatAreNamedLikePods(t *testing.T) {
	for _, tc := range []struct {
		rule  string
		req   *access.Request
		code  verdict.Code // empty: passes
		stale bool
	}{
		{"of a pod on the node", asksForEndpoint("a", "patch", "web"), "", false},
		{"of a pod on another node", asksForEndpoint("b", "patch", "web"), nodescope.ScopePodNotOnNode, true},
		{"of a pod that the watch may not have delivered", asksForEndpoint("a", "get", "new"), nodescope.ScopePodNotOnNode, true},
		{"of all", asksForEndpoint("a", "deletecollection", ""), nodescope.ScopePodNotOnNode, false},
		{"created, whose name only admission knows", asksForEndpoint("b", "create", ""), "", false},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			c := newContained(t, v1alpha1.Enforce, "")
			for mode, authorize := range c.modes() {
				got, err := authorize(t.Context(), tc.req)
				if err != nil || (got.Decision == verdict.Deny) != (tc.code != "") || got.Stale != tc.stale ||
					tc.code != "" && got.Code != tc.code {
					t.Errorf("%s: %+v %v", mode, got, err)
				}
			}
		})
	}
}

func TestWritesOfObjectsThatAreNamedLikePods(t *testing.T) {
	for _, tc := range []struct {
		rule   string
		req    *noderestriction.Request
		passes bool
		stale  bool
	}{
		{"created like a pod on the node", writesEndpoint("a", noderestriction.Create, "web"), true, false},
		{"created like a pod on another node", writesEndpoint("b", noderestriction.Create, "web"), false, true},
		{"created like a pod that the watch may not have delivered", writesEndpoint("a", noderestriction.Create, "new"), false, true},
		{"created with a generated name", writesEndpoint("a", noderestriction.Create, ""), false, false},
		{"changed on the node", writesEndpoint("a", noderestriction.Update, "web"), true, false},
		{"deleted on another node", writesEndpoint("b", noderestriction.Delete, "web"), false, true},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			got := newContained(t, v1alpha1.Enforce, "").Admit(t.Context(), tc.req)
			if got.Decision == verdict.Allow != tc.passes || got.Stale != tc.stale ||
				!tc.passes && got.Code != nodescope.ScopePodNotOnNode {
				t.Errorf("got %+v", got)
			}
			observed := newContained(t, v1alpha1.Observe, "").Admit(t.Context(), tc.req)
			if observed.Decision != verdict.Allow || (observed.Scope == nil) != tc.passes {
				t.Errorf("observed: %+v, scope %+v", observed, observed.Scope)
			}
		})
	}
}

// TestOldPodsDecideAboutNamesOnly: admission decides about a create whose name is not known.
func TestOldPodsDecideAboutNamesOnly(t *testing.T) {
	c := newContained(t, v1alpha1.Enforce, "")
	c.tooOld = source.Pods
	for mode, authorize := range c.modes() {
		for _, req := range []*access.Request{asksForEndpoint("a", "get", "web"), asksForEndpoint("b", "get", "web")} {
			if got, err := authorize(t.Context(), req); err == nil || !got.FailClosed {
				t.Errorf("%s, %s: %+v", mode, req.Verb, got)
			}
		}
	}
	if got := c.Admit(t.Context(), writesEndpoint("a", noderestriction.Create, "web")); got.TooOld == nil {
		t.Errorf("the write: %+v", got)
	}
	answer := c.Scopes.Decide(asksForEndpoint("a", "create", ""))
	if answer.Refused() || answer.Uses&nodescope.UsesPods != 0 {
		t.Errorf("a create: %+v", answer)
	}
}

func TestFilesThatLackThePodOfAName(t *testing.T) {
	const named = `apiVersion: policy.node-authorizer.io/v1alpha1
kind: NodeScope
metadata: {name: agent}
spec:
  subjects: [{namespace: kube-system, name: agent}]
  mode: Enforce
  podsOnNode: [{apiGroups: [x.org], resources: [things], verbs: [get]}]
---
`
	e := withStored(t, storedObjects+named, nil)
	for _, tc := range []struct {
		rule, namespace, name string
		decided               bool
	}{
		{"a pod that the files do not have", "shop", "unknown", false},
		{"a pod on another node", "shop", "there", true},
		{"an object without a namespace is never named like a pod", "", "unknown", true},
	} {
		req := agentGets("things", tc.namespace, tc.name, "a")
		req.Group = "x.org"
		opinion, err := e.Authorize(t.Context(), req)
		lack := new(evaluate.LackError)
		if tc.decided && opinion.Decision != verdict.Deny || !tc.decided && !errors.As(err, &lack) {
			t.Errorf("%s: %+v %v", tc.rule, opinion, err)
		}
	}
}
