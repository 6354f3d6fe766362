package query

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// sessionFrom returns a session over files.
func sessionFrom(t *testing.T, paths ...string) *command.Session {
	t.Helper()
	state, err := source.LoadFiles(t.Context(), paths, source.FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	evaluator, err := evaluate.New(t.Context(), state, evaluate.Options{Features: kubeversion.For(kubeversion.Latest)})
	if err != nil {
		t.Fatal(err)
	}
	return &command.Session{Evaluator: evaluator, Names: command.NewNames(state), Namespace: command.DefaultNamespace}
}

// TestCommandsNeverDisagree compares can-i, explain, who-can and reach on random questions,
// over complete files and over files that lack many objects.
func TestCommandsNeverDisagree(t *testing.T) {
	for name, s := range map[string]*command.Session{
		"snapshot": sessionFrom(t, "../../../examples/shop.snapshot"),
		"files":    sessionFrom(t, "../testdata/cluster.yaml"),
		"partial":  sessionFrom(t, "../testdata/partial.yaml"),
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			reaches := map[string]ReachResult{}
			for _, node := range s.KnownNodes() {
				reached, err := Reach(s, node, command.Filter{})
				if err != nil {
					t.Fatal(err)
				}
				reaches[node] = reached
			}
			counts, names := map[string]int{}, append(knownNames(s), "", "none")
			for range 3000 {
				q := randomQuestion(t, s, random, names)
				for answer, n := range checkAgreement(t, s, q, reaches) {
					counts[answer] += n
				}
			}
			want := []string{command.Yes, command.No}
			if !s.State.Complete() {
				want = append(want, command.Unknown)
			}
			for _, answer := range append(want, "conditions", nameRestriction) {
				if counts[answer] < 50 {
					t.Errorf("only %d answers are %q: %v", counts[answer], answer, counts)
				}
			}
		})
	}
}

func randomQuestion(t *testing.T, s *command.Session, random *rand.Rand, names []string) command.Question {
	t.Helper()
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	resource := pick("secrets", "configmaps", "pods", "nodes", "pvc", "pv", "leases.coordination.k8s.io", "csinodes", "resourceslices",
		"serviceaccounts", "volumeattachments", "certificatesigningrequests", "podcertificaterequests", "services", "events",
		"deployments.apps")
	args := []string{pick("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"), resource}
	if name := pick(names...); name != "" {
		args = append(args, name)
	}
	flags := &command.QuestionFlags{
		Subresource:   pick("", "", "", "status", "token", "eviction", "binding"),
		FieldSelector: pick("", "", "", "spec.nodeName="+pick(s.KnownNodes()...)),
		AllNamespaces: random.IntN(8) == 0,
	}
	s.Namespace = pick("shop", "payments", "kube-system", "kube-node-lease", "storage")
	q, err := s.Question(&command.App{Streams: command.Streams{ErrOut: new(strings.Builder)}}, args, flags, "")
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// knownNames returns the names of all nodes and of all objects that a node reaches.
func knownNames(s *command.Session) []string {
	names := map[string]bool{}
	for _, node := range s.KnownNodes() {
		names[node] = true
		for _, o := range s.State.Graph.Reach(node) {
			names[o.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// checkAgreement compares the answers of the commands to one question, for every node.
func checkAgreement(t *testing.T, s *command.Session, q command.Question, reaches map[string]ReachResult) map[string]int {
	t.Helper()
	can, err := whoCan(t.Context(), s, q)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, node := range s.KnownNodes() {
		who := command.NewIdentity(nodeidentity.User(node))
		said, err := decide(t.Context(), s, who, q, command.WrittenObjects{})
		if err != nil {
			t.Fatal(err)
		}
		counts[said.Answer]++
		counts[said.DecidedBy]++
		if len(said.Conditions) > 0 {
			counts["conditions"]++
		}
		listed := slices.ContainsFunc(can.Nodes, func(n nodeThatCan) bool { return n.Node == node })
		undecided := slices.Contains(can.Undecided, node)
		if listed != (said.Answer == command.Yes) || undecided != (said.Answer == command.Unknown) {
			t.Errorf(
				"node %s, %s: can-i says %s (%s); listed by who-can: %v, undecided: %v", node, q, said.Answer, said.Reason.Message, listed,
				undecided,
			)
		}
		if listed && fmt.Sprint(can.Conditions) != fmt.Sprint(said.Conditions) {
			t.Errorf("node %s, %s: who-can has the conditions %v, can-i %v", node, q, can.Conditions, said.Conditions)
		}
		explained := said.explained()
		allows := explained.Admission == nil || explained.Admission.Answer == nil || explained.Admission.Answer.Decision.String() == "Allow"
		if said.Answer == command.Yes && !allows || (said.Answer == command.Yes) != (explained.Decision.String() == "Allow") {
			t.Errorf(
				"node %s, %s: answer %s beside the decision %s and NodeRestriction %+v", node, q, said.Answer, explained.Decision,
				explained.Admission,
			)
		}
		checkReach(t, s, q, said, reaches[node])
	}
	return counts
}

// checkReach compares an answer with the list of reach.
func checkReach(t *testing.T, s *command.Session, q command.Question, said ruling, reached ReachResult) {
	t.Helper()
	var object *reachedObject
	for i := range reached.Objects {
		if o := &reached.Objects[i]; o.Group == q.Group && o.Resource == q.Resource && o.Namespace == q.Namespace && o.Name == q.Name {
			object = o
		}
	}
	creates := q.Verb == "create" && q.Subresource == ""
	standing := slices.ContainsFunc(reached.Standing, func(g standingGrant) bool { return g.covers(q) })
	byRole := slices.ContainsFunc(reached.RBAC, func(g rbacGrant) bool { return g.covers(q, said.Identity) })
	switch {
	case object != nil && !creates && q.Selector == nil:
		// For a listed object, reach lists exactly the verbs that can-i allows.
		may := slices.ContainsFunc(object.May, func(p permission) bool {
			return p.Subresource == q.Subresource && slices.Contains(p.Verbs, q.Verb)
		})
		if said.Answer == command.Yes && !may && !byRole || said.Answer == command.No && may {
			t.Errorf("node %s, %s: can-i says %s (%s), reach lists %v", reached.Node, q, said.Answer, said.Reason.Message, object.May)
		}
		for _, p := range object.May {
			if may && p.Subresource == q.Subresource && slices.Contains(p.Verbs, q.Verb) &&
				fmt.Sprint(p.Conditions) != fmt.Sprint(said.Conditions) {
				t.Errorf("node %s, %s: reach has the conditions %v, can-i %v", reached.Node, q, p.Conditions, said.Conditions)
			}
		}
	case said.Answer == command.Yes && object == nil && !standing && !byRole:
		t.Errorf("node %s, %s: can-i says yes (%s), and reach does not list it", reached.Node, q, said.Reason.Message)
	case said.Answer == command.No && standing && isOwnName(said.Reason.Code):
		t.Errorf("node %s, %s: NodeRestriction refuses the name (%s), and reach lists it", reached.Node, q, said.Reason.Message)
	case said.Answer == command.No && q.Name == "" && standing && q.Verb != "deletecollection":
		t.Errorf("node %s, %s: can-i says no (%s), and reach lists it", reached.Node, q, said.Reason.Message)
	}
}

// isOwnName reports whether a refusal is for a name that is not the node's own.
func isOwnName(code verdict.Code) bool {
	return code == noderestriction.WritesOtherNode || code == noderestriction.NotOwnLease || code == noderestriction.NotOwnCSINode
}

// covers reports whether the grant applies to the question, without NodeRestriction.
func (g standingGrant) covers(q command.Question) bool {
	field, value, _ := strings.Cut(g.FieldSelector, "=")
	selected := g.FieldSelector == "" ||
		slices.ContainsFunc(q.Selector, func(r fields.Requirement) bool { return r.Field == field && r.Value == value })
	anySubresource := q.Resource == "leases"
	return g.Group == q.Group && g.Resource == q.Resource && (g.Subresource == q.Subresource || anySubresource) &&
		slices.Contains(g.Verbs, q.Verb) &&
		(g.Namespace == "" || g.Namespace == q.Namespace) && (g.Name == "" || g.Name == q.Name || g.OwnName && q.Name == "") && selected
}

// covers reports whether the rule allows the question.
func (g rbacGrant) covers(q command.Question, who command.Identity) bool {
	return (g.Namespace == "" || g.Namespace == q.Namespace) && rbac.RuleAllows(&g.Rule, &access.Request{
		User: who.User, Groups: who.Groups, Verb: q.Verb, ResourceRequest: true,
		Group: q.Group, Resource: q.Resource, Subresource: q.Subresource, Namespace: q.Namespace, Name: q.Name,
	})
}
