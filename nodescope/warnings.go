package nodescope

import (
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// Warning is about a part of a valid NodeScope that does not hold its accounts to their node.
type Warning struct {
	// Code is the kind of warning.
	Code WarningCode `json:"code"`
	// Rule is the rule that it is about: "anywhere[0]", or "otherwise".
	Rule string `json:"rule"`
	// Message says what passes.
	Message string `json:"message"`
}

// WarningCode is a kind of warning.
type WarningCode string

const (
	// TokensAnywhere: the account may create tokens, and nothing compares them with the node. It matters
	// only for accounts to which RBAC allows it.
	TokensAnywhere WarningCode = "TokensAnywhere"
	// OtherwiseAllowed: what no rule names passes.
	OtherwiseAllowed WarningCode = "OtherwiseAllowed"
)

// Warnings returns the warnings about a NodeScope, whatever its mode.
func Warnings(spec *v1alpha1.NodeScopeSpec) []Warning {
	var warnings []Warning
	tokens := func(rule string) {
		message := rule + " lets the account create tokens, and nothing requires that they are bound to a pod on its node: " +
			"such a token can name another node"
		if spec.TokensWithoutNode == v1alpha1.Allow {
			message += ", or none, and tokensWithoutNode lets that pass"
		}
		warnings = append(warnings, Warning{TokensAnywhere, rule, message})
	}
	for i, r := range spec.NamedAsNode {
		if createsTokens(resources(r.APIGroups, r.Resources, r.Verbs)) {
			tokens(fmt.Sprintf("namedAsNode[%d]", i))
		}
	}
	for i, r := range spec.Anywhere {
		if createsTokens(resources(r.APIGroups, r.Resources, r.Verbs)) {
			tokens(fmt.Sprintf("anywhere[%d]", i))
		}
	}
	if spec.Otherwise != v1alpha1.Allow {
		return warnings
	}
	if len(warnings) == 0 && !spec.AsNode { // asNode names tokens, and refuses those of other nodes
		tokens("otherwise")
	}
	return append(warnings, Warning{OtherwiseAllowed, "otherwise", "what no rule names is not held to the node"})
}

// CreatesTokens reports whether a rule of a role lets create tokens of a service account, of any name.
func CreatesTokens(rule *rbacv1.PolicyRule) bool {
	return createsTokens(resources(rule.APIGroups, rule.Resources, rule.Verbs))
}

func createsTokens(rule rbacv1.PolicyRule) bool {
	return rbac.RuleAllows(&rule, &access.Request{
		ResourceRequest: true, Verb: "create", Resource: "serviceaccounts", Subresource: "token",
	})
}
