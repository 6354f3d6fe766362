package server

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

const (
	agent = "system:serviceaccount:kube-system:agent"
	// agentScope lets the agent do everything with the pods of its node, and everything that the node may do.
	agentScope = `{"metadata": {"name": "agent"}, "spec": {"mode": %q, "subjects": [{"namespace": "kube-system", "name": "agent"}],
		"asNode": true, "namedAsNode": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["*"]}],
		"podsOnNode": [{"resources": ["pods", "pods/exec"], "verbs": ["*"]}]}}`
	nodeBQuarantine = `{"metadata": {"name": "node-b"}, "spec": {"node": "b"}}`
)

// containing enables NodeScopes and Quarantines.
func containing(c *v1alpha1.ServerConfiguration) {
	withoutWaits(c)
	c.Containment = v1alpha1.Containment{NodeScopes: v1alpha1.Enabled, Quarantines: v1alpha1.Enabled, MaxQuarantinedNodes: "50%"}
}

// inBothModes runs a test with the Node authorizer alone, and with a chain that ends with RBAC, which lets
// the agent do everything.
func inBothModes(t *testing.T, test func(t *testing.T, configure func(*v1alpha1.ServerConfiguration), rbac bool)) {
	for _, mode := range []v1alpha1.AuthorizationMode{v1alpha1.NodeMode, v1alpha1.ChainMode} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			test(t, func(c *v1alpha1.ServerConfiguration) {
				containing(c)
				if c.Authorization.Mode = mode; mode == v1alpha1.ChainMode {
					c.Authorization.ConfigFile = filepath.Join(t.TempDir(), "authorization.yaml")
					write(t, c.Authorization.ConfigFile, []byte(`{"apiVersion": "apiserver.config.k8s.io/v1",
						"kind": "AuthorizationConfiguration",
						"authorizers": [{"type": "Node", "name": "node"}, {"type": "RBAC", "name": "rbac"}]}`))
				}
			}, mode == v1alpha1.ChainMode)
		})
	}
}

// agentShop is a shop in which RBAC lets the agent do everything.
func agentShop(t *testing.T) *apiServer {
	api := shop(t)
	api.set("clusterroles", `{"metadata": {"name": "all"}, "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}`)
	api.set("clusterrolebindings", `{"metadata": {"name": "agent"},
		"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "all"},
		"subjects": [{"kind": "ServiceAccount", "namespace": "kube-system", "name": "agent"}]}`)
	return api
}

// askAs sends an access review of a user with the token of a node; empty for none. It returns nil for
// status 503.
func (s *testServer) askAs(user, token, verb, resource, name string) *authorizationv1.SubjectAccessReviewStatus {
	s.t.Helper()
	review := authorizationv1.SubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"},
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: "shop", Verb: verb, Version: "v1", Resource: resource, Name: name,
			},
		},
	}
	if strings.HasPrefix(user, nodeidentity.UserPrefix) {
		review.Spec.Groups = []string{"system:nodes"}
	}
	if token != "" {
		review.Spec.Extra = map[string]authorizationv1.ExtraValue{nodeidentity.ExtraNode: {token}}
	}
	text, err := json.Marshal(review)
	if err != nil {
		s.t.Fatal(err)
	}
	got, err := s.post(s.caller, authorizePath, string(text))
	switch {
	case err != nil:
		s.t.Fatal(err)
	case got.status == 503:
		return nil
	case got.status != 200:
		s.t.Fatalf("got %+v", got)
	}
	var answer authorizationv1.SubjectAccessReview
	if err := json.Unmarshal([]byte(got.body), &answer); err != nil {
		s.t.Fatal(err)
	}
	return &answer.Status
}

// outcome names an answer.
func outcome(status *authorizationv1.SubjectAccessReviewStatus) string {
	switch {
	case status == nil:
		return "error"
	case status.Denied:
		return "denied"
	case status.Allowed:
		return "allowed"
	case status.EvaluationError != "":
		return "evaluation error"
	}
	return "no opinion"
}

// expect checks an answer. RBAC allows requests without an opinion in the mode Node, if it asks for the agent.
func (s *testServer) expect(rbac bool, user, token, verb, resource, name, want string) {
	s.t.Helper()
	if rbac && want == "no opinion" && user == agent {
		want = "allowed"
	}
	if got := s.askAs(user, token, verb, resource, name); outcome(got) != want {
		s.t.Errorf("%s with a token of node %q, %s %s %s: %s, want %s: %+v", user, token, verb, resource, name, outcome(got), want, got)
	}
}

func TestNodeScopesAndQuarantinesDecideFirst(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, configure func(*v1alpha1.ServerConfiguration), rbac bool) {
		api := agentShop(t)
		api.set("nodescopes", fmt.Sprintf(agentScope, "Enforce"))
		s := newTestServer(t, api, configure)
		s.ready()
		s.expect(rbac, agent, "a", "delete", "pods", "web", "no opinion")
		s.expect(rbac, agent, "b", "delete", "pods", "web", "denied")
		s.expect(rbac, agent, "", "delete", "pods", "web", "denied")
		s.expect(rbac, agent, "a", "get", "secrets", "db", "no opinion")
		s.expect(rbac, agent, "b", "get", "secrets", "db", "denied")
		s.expect(rbac, agent, "a", "delete", "services", "web", "denied")
		s.expect(rbac, "alice", "", "get", "services", "web", "no opinion")
		s.expect(rbac, "system:node:a", "", "get", "secrets", "db", "allowed")

		api.set("quarantines", `{"metadata": {"name": "node-a"}, "spec": {"node": "a"}}`)
		eventually(t, "node a is quarantined", func() bool {
			return outcome(s.askAs("system:node:a", "", "get", "secrets", "db")) == "denied"
		})
		s.expect(rbac, agent, "a", "delete", "pods", "web", "denied")
		s.expect(rbac, "system:serviceaccount:shop:web", "a", "get", "pods", "web", "denied")
		s.expect(rbac, "system:node:b", "", "get", "nodes", "b", "allowed")
		api.Remove("/apis/policy.node-authorizer.io/v1alpha1/quarantines/node-a")
		eventually(t, "node a is released", func() bool {
			return outcome(s.askAs("system:node:a", "", "get", "secrets", "db")) == "allowed"
		})
		log := s.log.String()
		for _, text := range []string{"node is quarantined by Quarantine node-a", "NodeScope agent refuses", "containment ended"} {
			if !strings.Contains(log, text) {
				t.Errorf("the log lacks %q:\n%s", text, log)
			}
		}
		for name, want := range map[string]string{
			`node_authorizer_nodescope_refusals_total{account="kube-system/agent",code="ScopePodNotOnNode",mode="Enforce"}`: "1",
			`node_authorizer_containment_objects{code="Accepted",resource="nodescopes"}`:                                    "1",
			`node_authorizer_containment_changes_total{resource="quarantines"}`:                                             "2",
			`node_authorizer_quarantined_nodes`:                                                                             "0",
			`node_authorizer_source_stale{source="nodescopes.policy.node-authorizer.io"}`:                                   "0",
		} {
			if got := s.metric(name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
	})
}

const ownUser = "system:serviceaccount:kube-system:node-authorizer"

// TestBeforeTheyAreReadNoLaterAuthorizerDecides: neither before the API server answers, nor while the
// resources cannot be read. The server's own requests are how they are read.
func TestBeforeTheyAreReadNoLaterAuthorizerDecides(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, configure func(*v1alpha1.ServerConfiguration), rbac bool) {
		api := agentShop(t)
		api.stop()
		api.change(func() { api.forbidden["nodescopes"], api.forbidden["quarantines"] = true, true })
		s := startTestServer(t, api.URL, configure, func(o *Options) { o.users = func() []string { return []string{ownUser} } })
		check := func(when string) {
			t.Helper()
			for user, token := range map[string]string{agent: "a", "system:serviceaccount:shop:web": "", "system:node:a": ""} {
				if got := s.askAs(user, token, "delete", "pods", "web"); got != nil {
					t.Errorf("%s, %s: %+v", when, user, got)
				}
			}
		}
		check("before the API server answers")
		if got := s.admitAs(agent, "a", "CREATE", "nodes", "b"); got.Allowed || got.Result.Code != 500 {
			t.Errorf("a write: %+v", got)
		}
		if !rbac { // a chain ends with RBAC, which needs the cluster
			s.expect(rbac, ownUser, "a", "list", "nodescopes", "", "no opinion")
			s.expect(rbac, "alice", "", "list", "pods", "", "no opinion")
		}

		api.start()
		eventually(t, "only the rights are missing", func() bool {
			_, body := s.readiness()
			return strings.Contains(body, "[+]graph-sync ok") && strings.Contains(body, "[+]authorization ok") &&
				strings.Contains(body, "[-]nodescopes failed: nodescopes have not been read yet: nodescopes is forbidden") &&
				strings.Contains(body, "[-]quarantines failed: ")
		})
		check("while they cannot be read")
		s.expect(rbac, ownUser, "a", "list", "nodescopes", "", "no opinion")
		s.expect(rbac, "alice", "", "list", "pods", "", "no opinion")
		if got := s.admitAs(agent, "a", "CREATE", "nodes", "b"); got.Allowed || got.Result.Code != 500 {
			t.Errorf("a write: %+v", got)
		}
		if got := s.admitAs(ownUser, "a", "CREATE", "nodes", "b"); !got.Allowed {
			t.Errorf("a write of the server's own user: %+v", got)
		}
		api.change(func() { clear(api.forbidden) })
		s.ready()
		s.expect(rbac, agent, "a", "delete", "pods", "web", "no opinion")
	})
}

func TestObservingOnlyCountsAndLogs(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, configure func(*v1alpha1.ServerConfiguration), rbac bool) {
		api := agentShop(t)
		api.set("nodescopes", fmt.Sprintf(agentScope, "Observe"))
		s := newTestServer(t, api, configure)
		s.ready()
		s.expect(rbac, agent, "b", "delete", "pods", "web", "no opinion")
		s.expect(rbac, agent, "a", "delete", "pods", "web", "no opinion")
		if got := s.admitAs(agent, "a", "CREATE", "nodes", "b"); !got.Allowed {
			t.Errorf("a write: %+v", got)
		}
		const counted = `node_authorizer_nodescope_refusals_total{account="kube-system/agent",code=%q,mode="Observe"}`
		for _, code := range []string{"ScopePodNotOnNode", "ScopeNameNotNode"} {
			if got := s.metric(fmt.Sprintf(counted, code)); got != "1" {
				t.Errorf("%s is counted as %q", code, got)
			}
		}
		log := s.log.String()
		if strings.Count(log, "request would be refused") != 2 || !strings.Contains(log, "NodeScope agent would refuse") {
			t.Errorf("the log is\n%s", log)
		}
	})
}

// TestWritesAreDecidedByWhatAdmissionSees: an authorizer does not know the name of a new object.
func TestWritesAreDecidedByWhatAdmissionSees(t *testing.T) {
	t.Parallel()
	api := agentShop(t)
	api.set("nodescopes", fmt.Sprintf(agentScope, "Enforce"))
	api.set("quarantines", nodeBQuarantine)
	s := newTestServer(t, api, containing)
	s.ready()
	for _, tc := range []struct {
		user, token, name string
		allowed           bool
		message           string
	}{
		{agent, "a", "a", true, ""},
		{agent, "a", "b", false, "the account acts for its own node only"},
		{agent, "", "a", false, "the token is bound to no node"},
		{agent, "b", "b", false, "the node is quarantined"},
		{"system:serviceaccount:shop:web", "b", "b", false, "the node is quarantined"},
		{"alice", "", "b", true, ""},
	} {
		got := s.admitAs(tc.user, tc.token, "CREATE", "nodes", tc.name)
		if got.Allowed != tc.allowed || !tc.allowed && (got.Result.Code != 403 || !strings.Contains(got.Result.Message, tc.message)) {
			t.Errorf("%s with a token of node %q creates node %s: %+v", tc.user, tc.token, tc.name, got)
		}
	}
}

// TestARefusalWaitsForThePod: the agent may know of the pod before the server does.
func TestARefusalWaitsForThePod(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, configure func(*v1alpha1.ServerConfiguration), rbac bool) {
		api := agentShop(t)
		api.set("nodescopes", fmt.Sprintf(agentScope, "Enforce"))
		s := newTestServer(t, api, func(c *v1alpha1.ServerConfiguration) {
			configure(c)
			c.Authorization.FreshnessWait = metav1.Duration{Duration: time.Hour}
		})
		s.ready()
		for resource, name := range map[string]string{"pods": "new-1", "secrets": "db-2"} {
			answer := make(chan *authorizationv1.SubjectAccessReviewStatus)
			go func() { answer <- s.askAs(agent, "a", "get", resource, name) }()
			eventually(t, "the request waits", func() bool {
				return s.metric(`node_authorizer_requests_in_flight{endpoint="authorize"}`) == "1"
			})
			api.set("pods", pod("new-"+name[len(name)-1:], "a", name))
			want := "no opinion"
			if rbac {
				want = "allowed"
			}
			if got := <-answer; outcome(got) != want {
				t.Errorf("%s %s: %+v", resource, name, got)
			}
		}
	})
}

// admitAs sends an admission review of a user with the token of a node; empty for none. The name of the
// object is only in the object.
func (s *testServer) admitAs(user, token, operation, resource, name string) *admissionv1.AdmissionResponse {
	s.t.Helper()
	extra := "{}"
	if token != "" {
		extra = fmt.Sprintf(`{%q: [%q]}`, nodeidentity.ExtraNode, token)
	}
	review := json.RawMessage(fmt.Sprintf(`{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
		"uid": "u1", "kind": {"version": "v1", "kind": "Node"}, "resource": {"version": "v1", "resource": %q}, "operation": %q,
		"userInfo": {"username": %q, "groups": [], "extra": %s}, 
		"object": {"apiVersion": "v1", "kind": "Node", "metadata": {"name": %q}}}}`,
		resource, operation, user, extra, name))
	var answer admissionv1.AdmissionReview
	s.exchange(admitPath, review, &answer)
	return answer.Response
}

// TestOldNodeScopesDecideNothing: a Quarantine that was written since is not known.
func TestOldNodeScopesDecideNothing(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, configure func(*v1alpha1.ServerConfiguration), rbac bool) {
		api := agentShop(t)
		api.set("nodescopes", fmt.Sprintf(agentScope, "Enforce"))
		began, passed := time.Now(), atomic.Int64{}
		s := startTestServer(t, api.URL, configure, func(o *Options) {
			o.now = func() time.Time { return began.Add(time.Duration(passed.Load())) }
		})
		s.ready()
		s.expect(rbac, agent, "a", "delete", "pods", "web", "no opinion")
		api.stop()
		passed.Store(int64(time.Hour))
		status, body := s.readiness()
		if status != 503 || !strings.Contains(body, "[-]nodescopes failed: the copy of nodescopes.policy.node-authorizer.io is ") ||
			!strings.Contains(body, "[-]quarantines failed: ") {
			t.Errorf("readyz: %d %s", status, body)
		}
		for user, token := range map[string]string{agent: "a", "system:serviceaccount:shop:web": "", "system:node:a": ""} {
			if got := s.askAs(user, token, "delete", "services", "web"); got != nil {
				t.Errorf("%s: %+v", user, got)
			}
		}
		s.expect(rbac, "alice", "", "delete", "services", "web", "no opinion")
		if got := s.admitAs(agent, "a", "CREATE", "nodes", "a"); got.Allowed || got.Result.Code != 500 {
			t.Errorf("a write: %+v", got)
		}
		for endpoint, want := range map[string]string{"authorize": "3", "admit": "1"} {
			if got := s.metric(`node_authorizer_stale_answers_total{endpoint="` + endpoint + `"}`); got != want {
				t.Errorf("%s stale answers of %s are counted, want %s", got, endpoint, want)
			}
		}
	})
}

// TestQuarantinesEndByTheClock: without an event, and without a compilation.
func TestQuarantinesEndByTheClock(t *testing.T) {
	t.Parallel()
	api := shop(t)
	began, passed := time.Now(), atomic.Int64{}
	api.set("quarantines", fmt.Sprintf(`{"metadata": {"name": "node-a"}, "spec": {"node": "a", "expirationTime": %q}}`,
		began.Add(time.Minute).UTC().Format(time.RFC3339)))
	s := startTestServer(t, api.URL, containing, func(o *Options) {
		o.now = func() time.Time { return began.Add(time.Duration(passed.Load())) }
	})
	s.ready()
	s.expect(false, "system:node:a", "", "get", "nodes", "a", "denied")
	passed.Store(int64(time.Minute))
	s.expect(false, "system:node:a", "", "get", "nodes", "a", "allowed")
}
