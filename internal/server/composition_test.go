package server

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/review"
)

func TestDecisions(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, shop(t), withoutWaits)
	s.ready()
	for _, tc := range []struct {
		rule   string
		got    authorizationv1.SubjectAccessReviewStatus
		allow  bool
		reason string
	}{
		{
			"the secret of a node's own pod", s.askNode("a", "get", "secrets", "db"),
			true, "PathToObject: the object is related to this node",
		},
		{"the secret of another node's pod", s.askNode("b", "get", "secrets", "db"), false, "NoPathToObject: "},
		{"users that are not nodes", s.ask("alice", nil, "get", "secrets", "db"), false, ""},
	} {
		if tc.got.Allowed != tc.allow || tc.got.Denied || !strings.HasPrefix(tc.got.Reason, tc.reason) ||
			tc.got.EvaluationError != "" {
			t.Errorf("%s: got %+v, want allowed %v because %q", tc.rule, tc.got, tc.allow, tc.reason)
		}
		if strings.Contains(tc.got.Reason, "web") {
			t.Errorf("%s: the reason names a pod: %s", tc.rule, tc.got.Reason)
		}
	}
	if got := s.token("a", "web", "uid-web", ""); !got.Allowed {
		t.Errorf("a token of a node's own pod: got %+v", got.Result)
	}
	got := s.token("b", "web", "uid-web", "")
	if got.Allowed || got.Result.Code != 403 || !strings.Contains(got.Result.Message, "is not on node b") {
		t.Errorf("a token of another node's pod: got %+v", got.Result)
	}
	if got := s.admit("alice", nil, "pods", "", "Pod", pod("p", "", "")); !got.Allowed {
		t.Errorf("a pod of a user: got %+v", got.Result)
	}
	log := s.log.String()
	if !strings.Contains(log, "web") || strings.Count(log, "request refused")+strings.Count(log, "request not allowed") != 2 {
		t.Errorf("the log does not explain the two refusals:\n%s", log)
	}
	for name, want := range map[string]string{
		`node_authorizer_decisions_total{code="PathToObject",decision="allow",resource="secrets",type="authorize"}`:        "1",
		`node_authorizer_decisions_total{code="NoPathToObject",decision="no_opinion",resource="secrets",type="authorize"}`: "1",
		`node_authorizer_requests_total{endpoint="authorize",status="200"}`:                                                "3",
		`node_authorizer_requests_total{endpoint="admit",status="200"}`:                                                    "3",
		`node_authorizer_watch_synced{resource="pods"}`:                                                                    "1",
		`node_authorizer_missing_rights{resource="pods"}`:                                                                  "0",
	} {
		if got := s.metric(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if s.metric(`node_authorizer_watch_synced{resource="roles.rbac.authorization.k8s.io"}`) != "" {
		t.Error("roles are watched, and no question depends on them")
	}
	if got := s.metric(`node_authorizer_certificate_expiration_timestamp_seconds{file="` + s.certificate + `"}`); got == "" {
		t.Error("the expiration of the certificate is not exported")
	}
}

// The control plane starts after the server.
func TestItStartsBeforeTheAPIServer(t *testing.T) {
	t.Parallel()
	api := shop(t)
	api.stop()
	api.change(func() { api.forbidden["pods"], api.forbidden["resourceslices"] = true, true })
	s := newTestServer(t, api, withoutWaits)
	if got, err := s.get(s.caller, "/livez"); err != nil || got.status != 200 {
		t.Errorf("livez: got %+v, %v", got, err)
	}
	if status, body := s.readiness(); status != 503 || !strings.Contains(body, "[-]graph-sync failed: waiting for the API server: ") {
		t.Errorf("readyz: got %d %s", status, body)
	}
	own := s.ask("system:serviceaccount:kube-system:node-authorizer", nil, "list", "pods", "")
	if own.Allowed || own.Denied || own.EvaluationError != "" {
		t.Errorf("the server's own request: got %+v, want no opinion", own)
	}
	if got := s.askNode("a", "get", "secrets", "db"); got.Allowed ||
		!strings.Contains(got.EvaluationError, "has not reached the API server") {
		t.Errorf("a node's request: got %+v, want an error", got)
	}
	if got := s.token("a", "web", "uid-web", ""); got.Allowed || got.Result.Code != 500 {
		t.Errorf("a node's write: got %+v, want an error", got.Result)
	}
	if got := s.admit("alice", nil, "pods", "", "Pod", pod("p", "", "")); !got.Allowed {
		t.Errorf("another user's write: got %+v", got.Result)
	}

	eventually(t, "the outage is logged", func() bool { return strings.Contains(s.log.String(), "waiting for the API server") })

	// The API server answers, but does not allow to read pods yet.
	api.start()
	needs := "[-]rights failed: cannot read what decisions depend on: " +
		"pods: not allowed to list: pods is forbidden; bind a cluster role"
	eventually(t, "rights are missing", func() bool {
		status, body := s.readiness()
		return status == 503 && strings.Contains(body, "[+]graph-sync ok\n") && strings.Contains(body, needs)
	})
	if got := s.askNode("a", "get", "secrets", "db"); got.Allowed || !strings.Contains(got.EvaluationError, "may not read pods") {
		t.Errorf("a request that pods could allow: got %+v, want an error", got)
	}
	if got := s.token("a", "web", "uid-web", ""); got.Allowed || got.Result.Code != 500 {
		t.Errorf("a write that pods could allow: got %+v, want an error", got.Result)
	}
	if got := s.askNode("a", "get", "nodes", "a"); !got.Allowed {
		t.Errorf("a request that needs no pods: got %+v", got)
	}

	// It allows to read pods.
	api.change(func() { api.forbidden["pods"] = false })
	s.ready()
	if got := s.askNode("a", "get", "secrets", "db"); !got.Allowed {
		t.Errorf("got %+v", got)
	}
	// No other question depends on resource slices.
	status, body := s.readiness()
	if status != 200 || !strings.Contains(body, "[+]rights ok: questions about these have no answer: "+
		"resourceslices.resource.k8s.io: not allowed") {
		t.Errorf("readyz: got %d %s", status, body)
	}
	slice := s.askNode("a", "get", "resourceslices", "gpu")
	if slice.Allowed || !strings.Contains(slice.EvaluationError, "may not read resourceslices") {
		t.Errorf("a resource slice: got %+v, want an error", slice)
	}
	log := s.log.String()
	for text, times := range map[string]int{
		"waiting for the API server": 1, "following the cluster": 1,
		"resource cannot be read: the server is not ready":           1,
		"resource cannot be read: questions about it have no answer": 1, "resource can be read again": 1,
	} {
		if n := strings.Count(log, text); n != times {
			t.Errorf("logged %d times, want %d: %s", n, times, text)
		}
	}
	if t.Failed() {
		t.Log(log)
	}
}

func TestAnOutageKeepsTheState(t *testing.T) {
	t.Parallel()
	api := shop(t)
	s := newTestServer(t, api, withoutWaits)
	s.ready()
	api.stop()
	eventually(t, "the outage is noticed", func() bool {
		return s.metric(`node_authorizer_watch_errors_total{resource="pods"}`) != "0"
	})
	if got := s.askNode("a", "get", "secrets", "db"); !got.Allowed {
		t.Errorf("during the outage: got %+v", got)
	}
	if status, body := s.readiness(); status != 200 {
		t.Errorf("readyz during the outage: got %d %s", status, body)
	}
	api.set("pods", pod("pay", "b", "card"))
	api.start()
	eventually(t, "the watch works again", func() bool { return s.askNode("b", "get", "secrets", "card").Allowed })
}

// The secret of a pod is requested before the pod arrives.
func TestRefusalsWaitForChanges(t *testing.T) {
	t.Parallel()
	api := shop(t)
	s := newTestServer(t, api, func(c *v1alpha1.ServerConfiguration) {
		c.Authorization.FreshnessWait, c.Admission.FreshnessWait = seconds(10), seconds(10)
	})
	s.ready()
	asked := make(chan bool, 2)
	go func() { asked <- s.askNode("a", "get", "secrets", "news").Allowed }()
	eventually(t, "the request is in flight", func() bool {
		return s.metric(`node_authorizer_requests_in_flight{endpoint="authorize"}`) == "1"
	})
	go func() { asked <- s.token("a", "paper", "uid-paper", "").Allowed }()
	eventually(t, "the write is in flight", func() bool {
		return s.metric(`node_authorizer_requests_in_flight{endpoint="admit"}`) == "1"
	})
	api.set("pods", pod("paper", "a", "news"))
	for range 2 {
		if !<-asked {
			t.Error("refused")
		}
	}
}

func TestExtraChecksAreAccessReviews(t *testing.T) {
	t.Parallel()
	api := shop(t)
	api.answer = func(spec authorizationv1.SubjectAccessReviewSpec) (bool, int) {
		switch spec.ResourceAttributes.Resource {
		case "vault":
			return true, http.StatusCreated
		case "broken":
			return false, http.StatusInternalServerError
		}
		return false, http.StatusCreated
	}
	s := newTestServer(t, api, withoutWaits)
	s.ready()
	for range 2 {
		if got := s.token("a", "web", "uid-web", "vault"); !got.Allowed {
			t.Errorf("a granted audience: got %+v", got.Result)
		}
	}
	asked := api.asked()
	if len(asked) != 1 {
		t.Fatalf("asked %d times, want once: %+v", len(asked), asked)
	}
	want := authorizationv1.ResourceAttributes{
		Namespace: "shop", Verb: "request-serviceaccounts-token-audience", Version: "*", Resource: "vault", Name: "default",
	}
	got := *asked[0].ResourceAttributes
	got.Version = want.Version // not compared
	if got != want || asked[0].User != "system:node:a" || !slices.Contains(asked[0].Groups, "system:nodes") {
		t.Errorf("asked %+v, want %+v of system:node:a", asked[0], want)
	}
	if got := s.token("a", "web", "uid-web", "other"); got.Allowed || got.Result.Code != 403 {
		t.Errorf("an audience that is not granted: got %+v", got.Result)
	}
	if got := s.token("a", "web", "uid-web", "broken"); got.Allowed {
		t.Errorf("an audience about which the API server fails: got %+v", got.Result)
	}
	if n := s.metric("node_authorizer_access_review_errors_total"); n != "1" {
		t.Errorf("%s errors are counted, want 1", n)
	}
}

func TestChain(t *testing.T) {
	t.Parallel()
	api := shop(t)
	api.set("clusterroles", `{"metadata": {"name": "reader"},
		"rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]}`)
	api.set("clusterrolebindings", `{"metadata": {"name": "reader"},
		"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
		"subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "alice"}]}`)
	api.stop()
	file := filepath.Join(t.TempDir(), "authorization.yaml")
	write(t, file, []byte("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n"+
		"authorizers: [{type: Node, name: node}, {type: RBAC, name: rbac}]\n"))
	s := newTestServer(t, api, func(c *v1alpha1.ServerConfiguration) {
		withoutWaits(c)
		c.Authorization.Mode, c.Authorization.ConfigFile = v1alpha1.ChainMode, file
	})
	masters := []string{"system:masters"}
	if got := s.ask("admin", masters, "list", "pods", ""); !got.Allowed {
		t.Errorf("masters, before the cluster is known: got %+v", got)
	}
	if got := s.ask("alice", nil, "get", "secrets", "db"); got.Allowed || got.EvaluationError == "" {
		t.Errorf("others, before the cluster is known: got %+v, want an error", got)
	}
	api.start()
	s.ready()
	if _, body := s.readiness(); !strings.Contains(body, "[+]authorization ok: mode Chain with [Node RBAC], rules of Kubernetes 1.36") {
		t.Errorf("readyz: got %s", body)
	}
	for _, tc := range []struct {
		rule   string
		got    authorizationv1.SubjectAccessReviewStatus
		allow  bool
		reason string
	}{
		{"masters", s.ask("admin", masters, "list", "pods", ""), true, "system:masters"},
		{"the Node authorizer", s.askNode("a", "get", "secrets", "db"), true, "the object is related to this node"},
		{"RBAC", s.ask("alice", nil, "get", "secrets", "db"), true, "allowed by"},
		{"a node without a relation", s.askNode("b", "get", "secrets", "db"), false, "no relationship found"},
		{"a user without a role", s.ask("bob", nil, "get", "secrets", "db"), false, "no role"},
	} {
		if tc.got.Allowed != tc.allow || tc.got.Denied || !strings.Contains(tc.got.Reason, tc.reason) ||
			tc.got.EvaluationError != "" {
			t.Errorf("%s: got %+v, want allowed %v because %q", tc.rule, tc.got, tc.allow, tc.reason)
		}
	}
	const counter = `node_authorizer_decisions_total` +
		`{code="NoPathToObject",decision="no_opinion",resource="secrets",type="authorize"}`
	if got := s.metric(counter); got != "1" {
		t.Errorf("refusals because of a missing relation: %q, want 1", got)
	}
}

func TestRulesFollowTheAPIServersVersion(t *testing.T) {
	t.Parallel()
	api := shop(t)
	api.change(func() { api.version = "v1.31.0" })
	s := newTestServer(t, api, nil)
	s.ready()
	if !s.askNode("a", "get", "pods", "other").Allowed {
		t.Error("in 1.31, a node may read all pods")
	}
	info := `node_authorizer_build_info{commit="abcdef",go_version=`
	api.change(func() { api.version = "v1.38.0" })
	eventually(t, "rules of 1.37", func() bool {
		_, body := s.readiness()
		return strings.Contains(body, "[+]authorization ok: mode Node, rules of Kubernetes 1.37")
	})
	if s.askNode("a", "get", "pods", "other").Allowed {
		t.Error("in 1.37, a node may read its own pods only")
	}
	address := s.server.metrics.listener.Addr()
	got, err := read(http.Get("http://" + address.String() + "/metrics"))
	if err != nil || !strings.Contains(got.body, info) || !strings.Contains(got.body, `kubernetes_version="1.37",version="v1.2.3"} 1`) {
		t.Errorf("build_info is wrong: %v", err)
	}
	if log := s.log.String(); !strings.Contains(log, "a version that is not supported") {
		t.Errorf("the log does not have the version:\n%s", log)
	}
}

func TestGatesThatTheVersionDoesNotHaveKeepItUnready(t *testing.T) {
	t.Parallel()
	api := shop(t)
	s := newTestServer(t, api, func(c *v1alpha1.ServerConfiguration) {
		c.Cluster.FeatureGates = map[string]bool{"DynamicResourceAllocation": false}
	})
	eventually(t, "the gate is refused", func() bool {
		status, body := s.readiness()
		return status == 503 && strings.Contains(body, "[-]authorization failed: cluster.featureGates.DynamicResourceAllocation: "+
			"feature gate DynamicResourceAllocation is locked to true in Kubernetes 1.36; correct the configuration")
	})
	if got := s.askNode("a", "get", "nodes", "a"); got.Allowed || got.EvaluationError == "" {
		t.Errorf("got %+v, want an error", got)
	}
}

func TestErrorsOfNewNameTheField(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, []byte("kind: None"))
	for _, tc := range []struct {
		rule      string
		configure func(*v1alpha1.ServerConfiguration)
		want      string
	}{
		{
			"no kubeconfig", func(c *v1alpha1.ServerConfiguration) { c.Cluster.Kubeconfig = "no-such-file" },
			"read cluster.kubeconfig: ",
		},
		{"not in a pod", func(*v1alpha1.ServerConfiguration) {}, "outside of a pod, set cluster.kubeconfig"},
		{"not an AuthorizationConfiguration", func(c *v1alpha1.ServerConfiguration) {
			c.Cluster.Kubeconfig = file + ".kubeconfig"
			c.Authorization.Mode, c.Authorization.ConfigFile = v1alpha1.ChainMode, file
		}, "authorization.configFile: "},
		{
			"no kubeconfig for the management cluster", func(c *v1alpha1.ServerConfiguration) {
				c.Cluster.Kubeconfig, c.Webhook.Address = file+".kubeconfig", ""
				c.Bootstrap.Address, c.Bootstrap.Attestor = "127.0.0.1:0", v1alpha1.AWSAttestor
				c.Bootstrap.AWS.ClusterName = "shop"
				c.Bootstrap.ClusterAPI = v1alpha1.ClusterAPI{Namespaces: []string{"fleet"}, ClusterName: "shop", Kubeconfig: "no-such-file"}
			}, "read bootstrap.clusterAPI.kubeconfig: open no-such-file",
		},
		{
			"no certificate", func(c *v1alpha1.ServerConfiguration) { c.Cluster.Kubeconfig = file + ".kubeconfig" },
			"read webhook.certificateFile: ",
		},
	} {
		write(t, file+".kubeconfig", []byte("apiVersion: v1\nkind: Config\ncurrent-context: c\n"+
			"contexts: [{name: c, context: {cluster: c}}]\n"+
			"clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\n"))
		config := v1alpha1.Defaults()
		config.Webhook.CertificateFile, config.Webhook.KeyFile = "no-such.crt", "no-such.key"
		tc.configure(config)
		_, err := New(config, Options{Logger: (&logLines{}).logger()})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", tc.rule, err, tc.want)
		}
	}
}

func TestOpenAccessIsLogged(t *testing.T) {
	t.Parallel()
	for how, want := range map[v1alpha1.ClientAuthentication]string{
		v1alpha1.AnyClientCertificate:   "everybody with a certificate of webhook.clientCAFile can ask about every node",
		v1alpha1.NoClientAuthentication: "callers are not authenticated",
	} {
		t.Run(string(how), func(t *testing.T) {
			s := newTestServer(t, shop(t), func(c *v1alpha1.ServerConfiguration) {
				c.Webhook.ClientAuthentication, c.Webhook.AllowedClientNames = how, nil
				if how == v1alpha1.NoClientAuthentication {
					c.Webhook.ClientCAFile = ""
				}
			})
			s.ready()
			if !s.askNode("a", "get", "secrets", "db").Allowed {
				t.Error("refused")
			}
			if !strings.Contains(s.log.String(), want) {
				t.Error("the log does not warn")
			}
		})
	}
}

func TestMutate(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, shop(t), nil)
	got, err := s.post(s.caller, "/mutate", `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
		"request": {"uid": "u1", "kind": {"version": "v1", "kind": "Pod"}, "resource": {"version": "v1", "resource": "pods"},
		"operation": "CREATE", "userInfo": {"username": "alice"}, "namespace": "shop",
		"object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c",
		"resources": {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}}]}}}}`)
	if err != nil || got.status != 200 || !strings.Contains(got.body, `"patchType":"JSONPatch"`) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestBodiesMayBeAsLargeAsDocuments(t *testing.T) {
	t.Parallel()
	config := v1alpha1.Defaults()
	limited := func(bytes int64) bool {
		config.Webhook.MaxBodyBytes = bytes
		return strings.Contains(v1alpha1.Validate(config).Error(), "webhook.maxBodyBytes")
	}
	if limited(review.MaxDocument) || !limited(review.MaxDocument+1) {
		t.Errorf("the config's limit is not that of documents, %d bytes", review.MaxDocument)
	}
}

func TestLargeBodiesAreRefused(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, shop(t), func(c *v1alpha1.ServerConfiguration) { c.Webhook.MaxBodyBytes = 1024 })
	for _, path := range []string{"/authorize", "/admit", "/mutate"} {
		if got, err := s.post(s.caller, path, strings.Repeat(" ", 1025)); err != nil || got.status != 413 {
			t.Errorf("%s: got %+v, %v", path, got, err)
		}
	}
	if n := s.metric(`node_authorizer_request_body_errors_total{endpoint="mutate",reason="too_large"}`); n != "1" {
		t.Errorf("counted %q, want 1", n)
	}
}
