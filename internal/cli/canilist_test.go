package cli

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
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
	for name, s := range map[string]*session{
		"snapshot": sessionFrom(t, "../../examples/shop.snapshot"),
		"files":    sessionFrom(t, "testdata/cluster.yaml"),
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(3, 4))
			names := append(s.knownNames(), "", "none")
			counts := map[string]int{}
			for _, node := range s.knownNodes() {
				who := newIdentity(nodeidentity.User(node))
				list, err := s.rulesOf(who, "")
				if err != nil {
					t.Fatal(err)
				}
				for range 1500 {
					q := s.randomQuestion(t, random, names)
					counts[s.checkListed(t, list, who, q)]++
				}
			}
			for _, answer := range []string{yes, no, "depends"} {
				if counts[answer] < 30 {
					t.Errorf("only %d answers are %q: %v", counts[answer], answer, counts)
				}
			}
		})
	}
}

func (s *session) checkListed(t *testing.T, list canIList, who identity, q question) string {
	t.Helper()
	said, err := s.decide(t.Context(), who, q, writtenObjects{})
	if err != nil {
		t.Fatal(err)
	}
	req := q.request(who)
	i := slices.IndexFunc(list.Rules, func(r listedRule) bool { return r.allows(req) })
	anySubresource := q.Resource == "leases" && q.Subresource != "" // of which there is none
	switch {
	case said.Answer == yes && i < 0 && said.OnlyName == "" && !anySubresource:
		t.Errorf("%s may %s, and no rule is listed", who.Node, q)
	case said.Answer == no && i >= 0 && list.Rules[i].certain():
		t.Errorf("%s may not %s (%s), and %+v is listed", who.Node, q, said.Reason.Message, list.Rules[i])
	}
	if said.Answer == yes && len(said.Conditions) > 0 || said.Answer == no && i >= 0 {
		return "depends"
	}
	return said.Answer
}

// certain reports whether a rule allows every request that it is about.
func (r listedRule) certain() bool {
	return r.RelatedObjects == 0 && len(r.Restrictions) == 0 && (r.Authorizer != chain.NameRBAC || !r.writes) &&
		!strings.Contains(r.Condition, "its own only")
}
