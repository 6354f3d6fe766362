package query

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// allows reports whether a listed rule is about a request.
func (r listedRule) allows(req *access.Request) bool {
	if r.Namespace != "" && r.Namespace != req.Namespace {
		return false
	}
	if r.RelatedObjects > 0 && req.Name == "" {
		return false
	}
	if r.FieldSelector != "" && !slices.ContainsFunc(req.FieldSelector, func(f fields.Requirement) bool {
		return r.FieldSelector == f.Field+"="+f.Value
	}) {
		return false
	}
	return rbac.RuleAllows(&rbacv1.PolicyRule{
		Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames, NonResourceURLs: r.NonResourceURLs,
	}, req)
}

// TestListedRulesAgreeWithAnswers compares can-i --list with can-i on random questions: every allowed
// request is listed, and a request that is listed without a condition is allowed.
func TestListedRulesAgreeWithAnswers(t *testing.T) {
	for name, s := range map[string]*command.Session{
		"snapshot": sessionFrom(t, "../../../examples/shop.snapshot"),
		"files":    sessionFrom(t, "../testdata/cluster.yaml"),
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(3, 4))
			names := append(knownNames(s), "", "none")
			counts := map[string]int{}
			for _, node := range s.KnownNodes() {
				who := command.NewIdentity(nodeidentity.User(node))
				list, err := rulesOf(s, who, "")
				if err != nil {
					t.Fatal(err)
				}
				for range 1500 {
					q := randomQuestion(t, s, random, names)
					counts[checkListed(t, s, list, who, q)]++
				}
			}
			for _, answer := range []string{command.Yes, command.No, "depends"} {
				if counts[answer] < 30 {
					t.Errorf("only %d answers are %q: %v", counts[answer], answer, counts)
				}
			}
		})
	}
}

func checkListed(t *testing.T, s *command.Session, list CanIList, who command.Identity, q command.Question) string {
	t.Helper()
	said, err := decide(t.Context(), s, who, q, command.WrittenObjects{})
	if err != nil {
		t.Fatal(err)
	}
	req := q.Request(who)
	i := slices.IndexFunc(list.Rules, func(r listedRule) bool { return r.allows(req) })
	anySubresource := q.Resource == "leases" && q.Subresource != "" // of which there is none
	switch {
	case said.Answer == command.Yes && i < 0 && said.OnlyName == "" && !anySubresource:
		t.Errorf("%s may %s, and no rule is listed", who.Node, q)
	case said.Answer == command.No && i >= 0 && list.Rules[i].certain():
		t.Errorf("%s may not %s (%s), and %+v is listed", who.Node, q, said.Reason.Message, list.Rules[i])
	}
	if said.Answer == command.Yes && len(said.Conditions) > 0 || said.Answer == command.No && i >= 0 {
		return "depends"
	}
	return said.Answer
}

// certain reports whether a rule allows every request that it is about.
func (r listedRule) certain() bool {
	return r.RelatedObjects == 0 && len(r.Restrictions) == 0 && (r.Authorizer != chain.NameRBAC || !r.writes) &&
		!strings.Contains(r.Condition, "its own only")
}
