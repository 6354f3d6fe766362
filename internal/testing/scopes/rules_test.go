package scopes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/nodescope"
	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// ruled is a request that a rule of a scope lets pass.
type ruled struct {
	rule string
	// foreign is the same request about the other node; nil if the rule does not depend on the node.
	own, foreign *access.Request
}

// requestsOf returns a request for each group, resource, verb and namespace that a scope's rules name.
func (a *agent) requestsOf() []ruled {
	spec := &a.scope.Spec
	var all []ruled
	for i, r := range spec.NamedAsNode {
		for req := range each(r.APIGroups, r.Resources, r.Verbs, r.Namespaces) {
			all = append(all, a.pair(fmt.Sprintf("namedAsNode[%d]", i), req, func(req *access.Request, node string) { req.Name = node }))
		}
	}
	for i, r := range spec.SelectsNode {
		for req := range each(r.APIGroups, r.Resources, r.Verbs, r.Namespaces) {
			all = append(all, a.pair(fmt.Sprintf("selectsNode[%d]", i), req, func(req *access.Request, node string) {
				req.FieldSelector = fields.Requirements{{Field: r.Field, Operator: selection.Equals, Value: node}}
			}))
		}
	}
	for i, r := range spec.PodsOnNode {
		for req := range each(podGroups(&r), r.Resources, r.Verbs, r.Namespaces) {
			all = append(all, a.pair(fmt.Sprintf("podsOnNode[%d]", i), req, func(req *access.Request, node string) {
				switch req.Namespace {
				case a.day.Account.Namespace:
					req.Name = fill("AGENT", node)
				default:
					req.Namespace, req.Name = appNamespace, fill("POD", node)
				}
			}))
		}
	}
	for i, r := range spec.Anywhere {
		for _, path := range r.NonResourceURLs {
			for _, verb := range r.Verbs {
				req := a.tokenOf(own, access.Request{Verb: verb, Path: strings.Replace(path, "*", "any", 1)})
				all = append(all, ruled{rule: fmt.Sprintf("anywhere[%d]", i), own: req})
			}
		}
		for req := range each(r.APIGroups, r.Resources, r.Verbs, r.Namespaces) {
			for _, req.Name = range append(r.ResourceNames, make([]string, 1-min(1, len(r.ResourceNames)))...) {
				all = append(all, ruled{rule: fmt.Sprintf("anywhere[%d]", i), own: a.tokenOf(own, req)})
			}
		}
	}
	return all
}

// podGroups are the groups of a rule about pods, and about objects that are named like pods.
func podGroups(r *v1alpha1.PodRule) []string {
	if len(r.APIGroups) == 0 {
		return []string{""}
	}
	return r.APIGroups
}

// pair returns the requests about both nodes. About says what a request about a node has.
func (a *agent) pair(rule string, req access.Request, about func(req *access.Request, node string)) ruled {
	mine, others := req, req
	about(&mine, own)
	about(&others, foreign)
	return ruled{rule, a.tokenOf(own, mine), a.tokenOf(own, others)}
}

// tokenOf returns a request with the token of a node.
func (a *agent) tokenOf(node string, req access.Request) *access.Request {
	req.User, req.Groups, req.Extra = a.user(), a.groups(), extra(node)
	return &req
}

// each yields a request for every combination of the values that a rule names.
func each(groups, resources, verbs, namespaces []string) func(yield func(access.Request) bool) {
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	return func(yield func(access.Request) bool) {
		for _, group := range groups {
			for _, whole := range resources {
				resource, subresource, _ := strings.Cut(whole, "/")
				for _, verb := range verbs {
					for _, namespace := range namespaces {
						if !yield(access.Request{
							ResourceRequest: true, Version: "v1", Group: group, Resource: resource, Subresource: subresource,
							Verb: verb, Namespace: namespace,
						}) {
							return
						}
					}
				}
			}
		}
	}
}

// TestEachRuleIsNeeded: the release allows every request that a rule lets pass. A rule for more would say that the
// agent has a right that it does not have.
func TestEachRuleIsNeeded(t *testing.T) {
	forEachAgent(t, func(t *testing.T, a *agent) {
		for _, r := range a.requestsOf() {
			if decision := a.policy.Evaluate(r.own); !decision.Allowed {
				t.Errorf("%s: the release has no right to %s", r.rule, explain(r.own))
			}
		}
	})
}

func TestEachRuleAboutTheNodeRefusesTheOther(t *testing.T) {
	forEachAgent(t, func(t *testing.T, a *agent) {
		authorizer := a.authorizer(t, a.scope)
		for _, r := range a.requestsOf() {
			if answer := authorizer.Decide(r.own); answer.Refused() {
				t.Errorf("%s: %s is refused with %s", r.rule, explain(r.own), answer.Code)
			}
			if r.foreign == nil || r.foreign.Verb == "create" && r.foreign.Subresource == "" {
				continue // admission decides creates: see TestTheSameAboutAnotherNodeIsRefused
			}
			if answer := authorizer.Decide(r.foreign); answer.Decision != verdict.Deny {
				t.Errorf("%s: %s passes by %s", r.rule, explain(r.foreign), answer.Rule)
			}
		}
	})
}

// TestEachRightIsInARuleOrNotNeeded finds rights of the release that nobody thought of.
func TestEachRightIsInARuleOrNotNeeded(t *testing.T) {
	forEachAgent(t, func(t *testing.T, a *agent) {
		named, authorizer := a.requestsOf(), a.authorizer(t, a.scope)
		for _, r := range a.rights {
			for asked := range each(r.rule.APIGroups, r.rule.Resources, r.rule.Verbs, []string{r.namespace}) {
				used := slices.ContainsFunc(named, func(other ruled) bool { return sameAction(&asked, other.own) }) ||
					a.passesAsNode(authorizer, asked)
				notNeeded := slices.ContainsFunc(a.day.NotNeeded, func(n notNeeded) bool {
					return rbac.RuleAllows(&rbacv1.PolicyRule{APIGroups: n.APIGroups, Resources: n.Resources, Verbs: n.Verbs}, &asked)
				})
				if used == notNeeded {
					t.Errorf("%s: in a rule: %t; listed as not needed: %t", explain(&asked), used, notNeeded)
				}
			}
		}
	})
}

// TestWhatIsNotNeededIsRefused: the scope takes away the rights that the agent does not use.
func TestWhatIsNotNeededIsRefused(t *testing.T) {
	forEachAgent(t, func(t *testing.T, a *agent) {
		authorizer := a.authorizer(t, a.scope)
		for _, n := range a.day.NotNeeded {
			if n.Why == "" {
				t.Errorf("%v %v: it does not say why", n.Verbs, n.Resources)
			}
			for asked := range each(n.APIGroups, n.Resources, n.Verbs, nil) {
				granted := slices.ContainsFunc(a.rights, func(r right) bool {
					rule := r.rule
					rule.ResourceNames = nil
					return rbac.RuleAllows(&rule, &asked)
				})
				if !granted {
					t.Errorf("%s: the release has no such right", explain(&asked))
				}
				if answer := authorizer.Decide(a.tokenOf(own, namedOn(asked, own))); answer.Decision != verdict.Deny {
					t.Errorf("%s: it passes by %s", explain(&asked), answer.Rule)
				}
			}
		}
	})
}

// passesAsNode reports whether an action about the node passes because the node itself may do it.
func (a *agent) passesAsNode(authorizer *nodescope.Authorizer, asked access.Request) bool {
	answer := authorizer.Decide(a.tokenOf(own, namedOn(asked, own)))
	return !answer.Refused() && answer.Rule == "asNode"
}

func sameAction(a, b *access.Request) bool {
	return a.Verb == b.Verb && a.Group == b.Group && a.Resource == b.Resource && a.Subresource == b.Subresource
}

func explain(req *access.Request) string {
	return describe(&dayRequest{
		Verb: req.Verb, Group: req.Group, Resource: req.Resource, Subresource: req.Subresource, Namespace: req.Namespace,
		Name: req.Name, Path: req.Path,
	})
}
