package evaluate_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/scope/quarantine"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/nodescope"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// storedObjects are pods on two nodes, an account that may get pods and nodes, and the scope that limits it.
const storedObjects = `
apiVersion: v1
kind: Pod
metadata: {namespace: shop, name: here}
spec: {nodeName: a}
---
apiVersion: v1
kind: Pod
metadata: {namespace: shop, name: there}
spec: {nodeName: b}
---
apiVersion: v1
kind: Node
metadata: {name: a}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: r}
rules: [{apiGroups: [""], resources: [pods, nodes], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: b}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: r}
subjects: [{kind: ServiceAccount, namespace: kube-system, name: agent}, {kind: User, name: ann}]
---
`

const scope = `apiVersion: policy.node-authorizer.io/v1alpha1
kind: NodeScope
metadata: {name: agent}
spec:
  subjects: [{namespace: kube-system, name: agent}]
  mode: Enforce
  podsOnNode: [{resources: [pods], verbs: [get]}]
---
`

func quarantined(extra string) string {
	return "apiVersion: policy.node-authorizer.io/v1alpha1\nkind: Quarantine\nmetadata: {name: q}\nspec: {node: a" + extra + "}\n---\n"
}

const agent = "system:serviceaccount:kube-system:agent"

func agentGets(resource, namespace, name, node string) *access.Request {
	req := &access.Request{
		User: agent, Groups: []string{"system:serviceaccounts"}, ResourceRequest: true, Verb: "get", Resource: resource,
		Namespace: namespace, Name: name,
	}
	if node != "" {
		req.Extra = map[string][]string{nodeidentity.ExtraNode: {node}}
	}
	return req
}

func nodeGets(node, name string) *access.Request {
	user, groups := nodeidentity.User(node)
	return &access.Request{User: user, Groups: groups, ResourceRequest: true, Verb: "get", Resource: "nodes", Name: name}
}

func inMasters(req *access.Request) *access.Request {
	req.Groups = append(req.Groups, chain.NameMasters)
	return req
}

// now is the time of the evaluators below.
var now = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

func withStored(t *testing.T, text string, configured *chain.Configuration) *evaluate.Evaluator {
	t.Helper()
	state, err := source.LoadFiles(t.Context(), []string{"-"}, source.FileOptions{Stdin: strings.NewReader(text)})
	if err != nil {
		t.Fatal(err)
	}
	e, err := evaluate.New(t.Context(), state, evaluate.Options{
		Features: kubeversion.For(kubeversion.Latest), Authorizers: configured,
		Containment: evaluate.Containment{Now: func() time.Time { return now }},
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// The NodeScopes and Quarantines of a state count in both ways to ask.
func TestStoredContainmentDecides(t *testing.T) {
	const later, earlier = `, expirationTime: "2026-07-01T00:00:00Z"`, `, expirationTime: "2026-05-01T00:00:00Z"`
	for _, tc := range []struct {
		rule, objects string
		req           *access.Request
		decision      verdict.Decision
		code          verdict.Code
	}{
		{"a pod on the node", scope, agentGets("pods", "shop", "here", "a"), verdict.Allow, ""},
		{"a pod on another node", scope, agentGets("pods", "shop", "there", "a"), verdict.Deny, nodescope.ScopePodNotOnNode},
		{"what no rule names", scope, agentGets("nodes", "", "a", "a"), verdict.Deny, nodescope.ScopeNoRule},
		{"a token without a node", scope, agentGets("pods", "shop", "here", ""), verdict.Deny, nodescope.ScopeTokenWithoutNode},
		{
			"a broken scope", strings.Replace(scope, "resources: [pods]", "resources: []", 1),
			agentGets("pods", "shop", "here", "a"), verdict.Deny, nodescope.ScopeInvalid,
		},
		{
			"a scope that observes", strings.Replace(scope, "Enforce", "Observe", 1), agentGets("nodes", "", "a", "a"), verdict.Allow, "",
		},
		{"a member of system:masters", scope, inMasters(agentGets("nodes", "", "a", "a")), verdict.Allow, ""},
		{"a quarantined node", quarantined(""), nodeGets("a", "a"), verdict.Deny, quarantine.NodeQuarantined},
		{"another node", quarantined(""), nodeGets("b", "b"), verdict.Allow, ""},
		{"a token on a quarantined node", quarantined(""), agentGets("nodes", "", "b", "a"), verdict.Deny, quarantine.NodeQuarantined},
		{"a quarantine that has not ended", quarantined(later), nodeGets("a", "a"), verdict.Deny, quarantine.NodeQuarantined},
		{"a quarantine that has ended", quarantined(earlier), nodeGets("a", "a"), verdict.Allow, ""},
		{"a broken quarantine", quarantined(", credential: x"), nodeGets("a", "a"), verdict.Allow, ""},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			e := withStored(t, storedObjects+tc.objects, nil)
			result, err := e.Chain.Explain(t.Context(), tc.req)
			wrong := tc.code != "" && evaluate.Main(result).Code != tc.code
			if err != nil || result.Doubt() != "" || result.Decision != tc.decision || wrong {
				t.Errorf("the chain says %s, %+v, %v", result.Decision, evaluate.Main(result), err)
			}
			opinion, err := e.Authorize(t.Context(), tc.req)
			if err != nil || opinion.Decision != tc.decision || tc.code != "" && opinion.Code != tc.code {
				t.Errorf("Authorize says %+v, %v", opinion, err)
			}
		})
	}
}

func TestWarningsAboutStoredContainment(t *testing.T) {
	broken := strings.Replace(scope, "resources: [pods]", "resources: []", 1)
	e := withStored(t, storedObjects+broken+quarantined(", credential: x"), nil)
	got := strings.Join(e.Warnings(), "\n")
	for _, want := range []string{
		"NodeScope agent is not valid: spec.podsOnNode[0].resources", "its accounts are refused", "Quarantine q is not valid: ",
		"nothing is refused because of it",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in the warnings:\n%s", want, got)
		}
	}
}

// A pod that the files do not have may be on the node.
func TestStoredScopesWithFilesThatLackThePod(t *testing.T) {
	e := withStored(t, storedObjects+scope, nil)
	req := agentGets("pods", "shop", "unknown", "a")
	result, err := e.Chain.Explain(t.Context(), req)
	if lack := new(evaluate.LackError); !errors.As(err, &lack) || !strings.Contains(result.Doubt(), "the input lacks pod shop/unknown") {
		t.Errorf("doubt is %q, error %v", result.Doubt(), err)
	}
	if opinion, err := e.Authorize(t.Context(), req); err == nil || opinion.Decision != verdict.NoOpinion {
		t.Errorf("Authorize says %+v, %v", opinion, err)
	}
}

// An object that could not be read might refuse: it makes an allow unknown for those it could be about, and no refusal.
func TestUnreadContainment(t *testing.T) {
	unread := func(resource string) string {
		missing := fmt.Sprintf(`{"group":"policy.node-authorizer.io","resource":%q,"reason":"not allowed"}`, resource)
		return `{"apiVersion":"snapshot.node-authorizer.io/v1alpha1","kind":"Snapshot","cluster":true,"rbacReadable":true,` +
			`"missing":[` + missing + `]}` + "\n---\n" + storedObjects
	}
	ann := &access.Request{User: "ann", ResourceRequest: true, Verb: "get", Resource: "nodes", Name: "a"}
	for _, tc := range []struct {
		rule, unread string
		req          *access.Request
		decision     verdict.Decision
		inDoubt      bool
		missing      int
	}{
		{"an allow of an account, without NodeScopes", "nodescopes", agentGets("nodes", "", "a", "a"), verdict.NoOpinion, true, 1},
		{"a refusal of an account", "nodescopes", agentGets("secrets", "", "a", "a"), verdict.NoOpinion, false, 1},
		{"a node, without NodeScopes", "nodescopes", nodeGets("a", "a"), verdict.Allow, false, 0},
		{"a user, without NodeScopes", "nodescopes", ann, verdict.Allow, false, 0},
		{"a node, without Quarantines", "quarantines", nodeGets("a", "a"), verdict.NoOpinion, true, 1},
		{"a token on a node, without Quarantines", "quarantines", agentGets("nodes", "", "a", "a"), verdict.NoOpinion, true, 1},
		{"a user, without Quarantines", "quarantines", ann, verdict.Allow, false, 0},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			e := withStored(t, unread(tc.unread), nil)
			result, _ := e.Chain.Explain(t.Context(), tc.req)
			if result.Decision != tc.decision || (result.Doubt() != "") != tc.inDoubt {
				t.Errorf("the chain says %s, doubt %q", result.Decision, result.Doubt())
			}
			if decision, _, err := e.Chain.Settled(t.Context(), tc.req); tc.inDoubt && (err == nil || decision != verdict.NoOpinion) {
				t.Errorf("Settled says %s, %v", decision, err)
			}
			if missing := e.UnreadContainment(tc.req); len(missing) != tc.missing {
				t.Errorf("missing is %v", missing)
			}
			opinion, err := e.Authorize(t.Context(), tc.req)
			if tc.inDoubt && (err == nil || opinion.Decision != verdict.NoOpinion) {
				t.Errorf("Authorize says %+v, %v", opinion, err)
			}
		})
	}
}

// An AuthorizationConfiguration says whom the API server asks.
func TestConfiguredAuthorizersReplaceStoredContainment(t *testing.T) {
	configured, err := chain.Parse([]byte("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n" +
		"authorizers: [{type: Node, name: node}, {type: RBAC, name: rbac}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	e := withStored(t, storedObjects+scope+quarantined(""), configured)
	for want, req := range map[string]*access.Request{
		"NodeScope agent": agentGets("nodes", "", "a", "b"), "Quarantine q": nodeGets("a", "a"),
	} {
		if opinion, err := e.Review(t.Context(), req); err != nil || opinion.Decision != verdict.Allow {
			t.Errorf("%s: Review says %+v, %v", want, opinion, err)
		}
		if got := e.Unasked(req); got != want {
			t.Errorf("not asked is %q, want %q", got, want)
		}
	}
	if got := e.Unasked(agentGets("pods", "shop", "there", "b")); got != "" {
		t.Errorf("%s would refuse what passes", got)
	}
	write := &noderestriction.Request{
		User: agent, Extra: map[string][]string{nodeidentity.ExtraNode: {"b"}}, Operation: noderestriction.Update,
		Version: "v1", Resource: "nodes", Name: "a",
	}
	if a := e.Admit(t.Context(), write); a.Decision != verdict.Deny || a.Code != nodescope.ScopeNoRule {
		t.Errorf("Admit says %+v", a)
	}
}

// A scope that observes changes no answer, even if objects could not be read.
func TestObservedScopesOverUnreadState(t *testing.T) {
	header := `{"apiVersion":"snapshot.node-authorizer.io/v1alpha1","kind":"Snapshot","cluster":true,"rbacReadable":true,` +
		`"missing":[{"resource":"pods","reason":"not allowed"}]}` + "\n---\n"
	objects := header + storedObjects + strings.Replace(scope, "Enforce", "Observe", 1)
	req := agentGets("pods", "shop", "there", "a")
	if opinion, err := withStored(t, objects, nil).Authorize(t.Context(), req); err != nil || opinion.Decision != verdict.Allow {
		t.Errorf("Authorize says %+v, %v", opinion, err)
	}
}
