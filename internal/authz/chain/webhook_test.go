package chain

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// about returns a request for an object by name; for "" a request for a URL.
func about(name string) *access.Request {
	if name == "" {
		return &access.Request{User: "ada", Verb: "get", Path: "/metrics"}
	}
	return &access.Request{User: "ada", Verb: "get", Version: "v1", Resource: "pods", Namespace: "shop", Name: name, ResourceRequest: true}
}

func TestWebhook(t *testing.T) {
	h := newHook(t)
	dead := newHook(t)
	dead.Close()
	const (
		inShop    = "request.resourceAttributes.namespace == 'shop'"
		inBank    = "request.resourceAttributes.namespace == 'bank'"
		ofAda     = "request.user == 'ada'"
		ofSomeone = "request.user != 'ada'"
	)
	deny, conditions := hookOptions{policy: "Deny"}, func(policy string, all ...string) hookOptions {
		return hookOptions{policy: policy, conditions: all}
	}
	for _, tc := range []struct {
		rule     string
		hook     *hook
		options  hookOptions
		name     string
		decision verdict.Decision
		code     verdict.Code
		says     string
		calls    int
		fails    bool // an error beside the opinion
		failed   bool // an error in the opinion
	}{
		{
			"allows", h,
			hookOptions{},
			"allow", verdict.Allow, CodeWebhookAllows,
			"allowed by webhook authz.example.com: the name is allow", 1, false, false,
		},
		{
			"denies", h,
			hookOptions{},
			"deny", verdict.Deny, CodeWebhookDenies,
			"denied by webhook authz.example.com: the name is deny", 1, false, false,
		},
		{
			"no opinion", h,
			hookOptions{},
			"none", verdict.NoOpinion, CodeWebhookNoOpinion,
			"no opinion in webhook authz.example.com: the name is none", 1, false, false,
		},
		{"a URL", h, hookOptions{}, "", verdict.NoOpinion, CodeWebhookNoOpinion, "no opinion", 1, false, false},
		{"v1beta1", h, hookOptions{version: "v1beta1"}, "allow", verdict.Allow, CodeWebhookAllows, "allowed by", 1, false, false},

		{
			"conditions that are true let it be asked", h, conditions("Deny", ofAda, inShop), "allow", verdict.Allow,
			CodeWebhookAllows, "allowed by", 1, false, false,
		},
		{
			"a condition that is false leaves it out", h, conditions("Deny", ofAda, inBank), "deny", verdict.NoOpinion,
			CodeWebhookNotAsked, "webhook authz.example.com is not asked: its match condition \"" + inBank + "\" is false", 0,
			false, false,
		},
		{
			"one that is false outweighs an error before it", h, conditions("Deny", inShop, ofSomeone), "", verdict.NoOpinion,
			CodeWebhookNotAsked, ofSomeone, 0, false, false,
		},
		{
			"one that is false outweighs an error after it", h, conditions("Deny", ofSomeone, inShop), "", verdict.NoOpinion,
			CodeWebhookNotAsked, ofSomeone, 0, false, false,
		},
		{
			"a condition that fails denies by policy", h, conditions("Deny", ofAda, inShop), "", verdict.Deny, CodeWebhookFailed,
			"webhook authz.example.com failed, and its failure policy denies the request: cel evaluation error", 0, false, true,
		},
		{
			"a condition that fails leaves it out by policy", h, conditions("NoOpinion", ofAda, inShop), "", verdict.NoOpinion,
			CodeWebhookFailed,
			"webhook authz.example.com failed, and its failure policy passes the request to the next authorizers: cel " +
				"evaluation error",
			0, true, true,
		},

		{
			"an error that is retried", h,
			hookOptions{},
			"500", verdict.NoOpinion, CodeWebhookFailed,
			"passes the request to the next authorizers", 2, true, true,
		},
		{
			"an error that is not retried", h,
			hookOptions{},
			"403", verdict.NoOpinion, CodeWebhookFailed,
			"passes the request to the next authorizers", 1, true, true,
		},
		{"an error denies by policy", h, deny, "403", verdict.Deny, CodeWebhookFailed, "denies the request", 1, false, true},
		{"an answer that cannot be read", h, deny, "garbage", verdict.Deny, CodeWebhookFailed, "denies the request", 1, false, true},
		{"no listener", dead, hookOptions{}, "allow", verdict.NoOpinion, CodeWebhookFailed, "connection refused", 0, true, true},
		{
			"both allowed and denied is denied", h,
			hookOptions{},
			"both", verdict.Deny, CodeWebhookFailed,
			"webhook authz.example.com failed, and the request is denied: webhook subject access review returned both", 1, false,
			true,
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			link := built(t, Parts{}, tc.hook.yaml("authz.example.com", tc.options))[1]
			tc.hook.reviews()
			o, err := link.Authorize(t.Context(), about(tc.name), Full)
			if o.Decision != tc.decision || o.Code != tc.code || !strings.Contains(o.Message, tc.says) {
				t.Errorf("Explain = %s, %s, %q", o.Decision, o.Code, o.Message)
			}
			if (err != nil) != tc.fails || (o.Error != "" || err != nil) != tc.failed {
				t.Errorf("error is %v, and %q in the opinion", err, o.Error)
			}
			if got := len(tc.hook.reviews()); got != tc.calls {
				t.Errorf("called %d times, want %d", got, tc.calls)
			}
			if o, err := link.Authorize(t.Context(), about(tc.name), DecisionOnly); o.Decision != tc.decision || (err != nil) != tc.fails {
				t.Errorf("Decide = %s, %v", o.Decision, err)
			}
			if tc.failed && !strings.Contains(o.Hint, tc.hook.kubeconfig) {
				t.Errorf("the hint %q does not say where the address comes from", o.Hint)
			}
			if strings.Contains(o.Message+o.Hint+o.Error, hookToken) {
				t.Error("the message has the credentials")
			}
		})
	}
}

// The timeout may end before or after the request has arrived: the answer is the
// same, and the webhook is not called again.
func TestWebhookThatDoesNotAnswer(t *testing.T) {
	for _, tc := range []struct {
		policy   string
		decision verdict.Decision
		says     string
		fails    bool
	}{
		{"NoOpinion", verdict.NoOpinion, `/authorize": `, true},
		{"Deny", verdict.Deny, "denies the request", false},
	} {
		t.Run(tc.policy, func(t *testing.T) {
			h := newHook(t)
			link := built(t, Parts{}, h.yaml("authz.example.com", hookOptions{timeout: shortTimeout.String(), policy: tc.policy}))[1]
			o, err := link.Authorize(t.Context(), about("slow"), Full)
			if o.Decision != tc.decision || o.Code != CodeWebhookFailed || !strings.Contains(o.Message, tc.says) ||
				(err != nil) != tc.fails || (o.Error != "") == tc.fails {
				t.Errorf("Explain = %+v, %v", o, err)
			}
			if !strings.Contains(o.Hint, h.kubeconfig) || strings.Contains(o.Message+o.Hint+o.Error, hookToken) {
				t.Errorf("the hint %q does not name the kubeconfig, or the credentials are shown", o.Hint)
			}
			if o, err := link.Authorize(t.Context(), about("slow"), DecisionOnly); o.Decision != tc.decision || (err != nil) != tc.fails {
				t.Errorf("Decide = %s, %v", o.Decision, err)
			}
			h.Close() // waits for requests in flight
			if calls := len(h.reviews()); calls > 2 {
				t.Errorf("two questions reached the webhook %d times", calls)
			}
		})
	}
}

// Brief reasons are those that an API server shows to the requesting user.
func TestBriefReasons(t *testing.T) {
	h, silent := newHook(t), newHook(t)
	silent.silent = true
	hooks := Chain{
		built(t, Parts{}, h.yaml("first.example.com", hookOptions{conditions: []string{"request.user == 'secret'"}}))[1],
		built(t, Parts{}, h.yaml("second.example.com", hookOptions{}))[1],
	}
	strict := built(t, Parts{}, h.yaml("strict.example.com", hookOptions{policy: "Deny"}))[1]
	quiet := built(t, Parts{}, silent.yaml("quiet.example.com", hookOptions{}))[1]
	const skipped = "first.example.com: the webhook is not asked about such requests"
	for _, tc := range []struct {
		rule  string
		chain Chain
		name  string
		want  string
	}{
		{"who decided and why", hooks, "allow", "second.example.com: the name is allow"},
		{
			"all, when none decided", append(cluster(), hooks...), "none",
			"RBAC: no role that is bound to the user allows it; " + skipped + "; second.example.com: the name is none",
		},
		{
			"a failure, without addresses", hooks, "403",
			skipped + "; second.example.com: the webhook failed, and its failure policy passes the request to the next authorizers",
		},
		{
			"a failure that denies",
			Chain{strict},
			"403",
			"strict.example.com: the webhook failed, and its failure policy denies the request",
		},
		{"a contradiction", hooks, "both", "second.example.com: the webhook failed, and the request is denied"},
		{"no reason for allowing", Chain{quiet}, "allow", "quiet.example.com: the webhook allows it"},
		{"no reason for denying", Chain{quiet}, "deny", "quiet.example.com: the webhook denies it"},
		{"no reason for no opinion", Chain{quiet}, "none", "quiet.example.com: the webhook has no opinion"},
		{"AlwaysAllow", Chain{AlwaysDeny(), AlwaysAllow()}, "x", "AlwaysAllow: every request is allowed"},
		{"no reason", Chain{Masters()}, "x", ""},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			got, _ := tc.chain.Brief(t.Context(), about(tc.name))
			if got.Reason() != tc.want {
				t.Errorf("got  %q\nwant %q", got.Reason(), tc.want)
			}
		})
	}
}

func TestFailurePolicyNoOpinionIsNoAnswer(t *testing.T) {
	h := newHook(t)
	open, closed := h.yaml("open.example.com", hookOptions{}), h.yaml("closed.example.com", hookOptions{policy: "Deny"})
	const allow, deny = "- {type: AlwaysAllow, name: alwaysallow}\n", "- {type: AlwaysDeny, name: alwaysdeny}\n"
	for _, tc := range []struct {
		rule     string
		chain    Chain
		decision verdict.Decision
		by       string
		fails    bool
	}{
		{"others may allow", built(t, Parts{}, open, allow), verdict.Allow, NameAlwaysAllow, false},
		{"when none does it is undecided", built(t, Parts{}, open, deny), verdict.NoOpinion, "", true},
		{"the policy Deny decides", built(t, Parts{}, closed, allow), verdict.Deny, "closed.example.com", false},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			decision, by, err := tc.chain.Decide(t.Context(), about("403"))
			if decision != tc.decision || by != tc.by || (err != nil) != tc.fails {
				t.Errorf("Decide = %s by %q, %v", decision, by, err)
			}
			for name, ask := range map[string]func() (Result, error){
				"Brief":   func() (Result, error) { return tc.chain.Brief(t.Context(), about("403")) },
				"Explain": func() (Result, error) { return tc.chain.Explain(t.Context(), about("403")) },
			} {
				got, err := ask()
				if got.Decision != tc.decision || got.DecidedBy != tc.by || (err != nil) != tc.fails {
					t.Errorf("%s = %s by %q, %v", name, got.Decision, got.DecidedBy, err)
				}
				if o := got.Opinions[1]; o.Code != CodeWebhookFailed || o.Error == "" {
					t.Errorf("%s does not name the failure: %+v", name, o)
				}
			}
		})
	}
}

// The webhook gets the attributes of the request.
func TestWebhookGetsTheRequest(t *testing.T) {
	app, err := labels.NewRequirement("app", selection.In, []string{"api"})
	if err != nil {
		t.Fatal(err)
	}
	req := &access.Request{
		User: "ada", UID: "7", Groups: []string{"staff"}, Extra: map[string][]string{"scope": {"a", "b"}},
		Verb: "list", Group: "apps", Version: "v1", Resource: "deployments", Subresource: "scale", Namespace: "shop", Name: "none",
		ResourceRequest: true,
		FieldSelector:   fields.Requirements{{Field: "spec.x", Operator: selection.Equals, Value: "y"}},
		LabelSelector:   labels.Requirements{*app},
	}
	for version, groups := range map[string]string{"v1": "groups", "v1beta1": "group"} {
		t.Run(version, func(t *testing.T) {
			h := newHook(t)
			link := built(t, Parts{}, h.yaml("a", hookOptions{version: version, conditions: []string{
				"request.uid == '7' && request.extra['scope'] == ['a', 'b']",
				"request.resourceAttributes.version == 'v1'",
				"request.resourceAttributes.fieldSelector.requirements.exists(r, r.key == 'spec.x' && r.operator == 'In' && " +
					"r.values == ['y'])",
				"request.resourceAttributes.labelSelector.requirements.exists(r, r.key == 'app' && r.values == ['api'])",
			}}))[1]
			if o, err := link.Authorize(t.Context(), req, Full); err != nil || o.Code != CodeWebhookNoOpinion {
				t.Fatalf("got %+v, %v", o, err)
			}
			want := `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/` + version + `","metadata":{},"spec":{
				"resourceAttributes":{"namespace":"shop","verb":"list","group":"apps","version":"v1","resource":"deployments",
					"subresource":"scale","name":"none",
					"fieldSelector":{"requirements":[{"key":"spec.x","operator":"In","values":["y"]}]},
					"labelSelector":{"requirements":[{"key":"app","operator":"In","values":["api"]}]}},
				"user":"ada","` + groups + `":["staff"],"extra":{"scope":["a","b"]},"uid":"7"},"status":{"allowed":false}}`
			got := h.reviews()
			if len(got) != 1 || !sameJSON(t, string(got[0]), want) {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var left, right any
	if err := errors.Join(json.Unmarshal([]byte(a), &left), json.Unmarshal([]byte(b), &right)); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(left, right)
}

func TestAnswersAreCachedAsConfigured(t *testing.T) {
	for _, name := range []string{"allow", "deny", "none"} {
		for _, cached := range []bool{true, false} {
			h := newHook(t)
			link := built(t, Parts{}, h.yaml("a", hookOptions{cached: cached}))[1]
			first, err := link.Authorize(t.Context(), about(name), Full)
			if err != nil {
				t.Fatal(err)
			}
			second, err := link.Authorize(t.Context(), about(name), Full)
			if err != nil {
				t.Fatal(err)
			}
			want := 2
			if cached {
				want = 1
			}
			if got := len(h.reviews()); got != want {
				t.Errorf("%s, cached %t: called %d times", name, cached, got)
			}
			if first.Decision != second.Decision || first.Code != second.Code {
				t.Errorf("%s, cached %t: %+v, then %+v", name, cached, first, second)
			}
			if said := strings.Contains(second.Message, "a cached answer of webhook a: the name is "+name); said != cached {
				t.Errorf("%s, cached %t: %q", name, cached, second.Message)
			}
		}
	}
}

func TestUntrustedTextIsMadeSafeForTerminals(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "",
		"plain":                              "plain",
		" two\nlines\t ":                     "two lines",
		"\x1b[31mred\x1b[0m \u202eback \xff": "[31mred [0m back \uFFFD",
		strings.Repeat("ä", maxLine):         strings.Repeat("ä", maxLine/2) + "…",
		"a" + strings.Repeat("ä", maxLine):   "a" + strings.Repeat("ä", maxLine/2-1) + "…",
	} {
		if got := oneLine(text); got != want {
			t.Errorf("%.40q is %.40q, want %.40q", text, got, want)
		}
	}
}

func TestBuildNeedsItsParts(t *testing.T) {
	c, err := Parse([]byte(configurationHeader + `- {type: Node, name: node}
- {type: RBAC, name: rbac}
- type: Webhook
  name: a
  webhook: {timeout: 3s, subjectAccessReviewVersion: v1, failurePolicy: Deny, connectionInfo: {type: InClusterConfig}}
`))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	_, err = c.Build(t.Context(), Parts{})
	const want = `3 problems:
  authorizers[0]: the Node authorizer is configured but is missing in the parts of the chain
  authorizers[1]: the RBAC authorizer is configured but is missing in the parts of the chain
  authorizers[2].webhook.connectionInfo.type: InClusterConfig works only in a pod: run there, or use KubeConfigFile`
	if problems := (Problems{}); !errors.As(err, &problems) || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

// TestPodsAskTheirAPIServer replaces the connection that only a pod has.
func TestPodsAskTheirAPIServer(t *testing.T) {
	h := newHook(t)
	h.path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
	c, err := Parse([]byte(configurationHeader + `- type: Webhook
  name: a
  webhook: {timeout: 3s, subjectAccessReviewVersion: v1, failurePolicy: Deny, connectionInfo: {type: InClusterConfig}}
`))
	if err != nil {
		t.Fatal(err)
	}
	c.authorizers[0].connection = asWebhook(&rest.Config{
		Host: h.URL + "/", BearerToken: hookToken,
		TLSClientConfig: rest.TLSClientConfig{CAData: h.authority()},
	})
	links, err := c.Build(t.Context(), Parts{})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]verdict.Decision{"allow": verdict.Allow, "403": verdict.Deny} {
		if o, err := links[1].Authorize(t.Context(), about(name), Full); err != nil || o.Decision != want {
			t.Errorf("%s: got %+v, %v", name, o, err)
		} else if said := strings.Contains(o.Hint, "service account"); said != (name == "403") {
			t.Errorf("%s: the hint is %q", name, o.Hint)
		}
	}
}

// Many goroutines may ask a webhook concurrently; each gets the answer to its own
// request.
func TestWebhooksMayBeAskedConcurrently(t *testing.T) {
	h := newHook(t)
	links := built(t, Parts{}, h.yaml("a", hookOptions{cached: true, conditions: []string{"request.resourceAttributes.name != 'skip'"}}))
	want := map[string]verdict.Code{
		"allow": CodeWebhookAllows, "deny": CodeWebhookDenies, "none": CodeWebhookNoOpinion, "skip": CodeWebhookNotAsked,
		"403": CodeWebhookFailed,
	}
	var all sync.WaitGroup
	for range 8 {
		for name, code := range want {
			all.Go(func() {
				for range 20 {
					if o, _ := links[1].Authorize(t.Context(), about(name), Full); o.Code != code {
						t.Errorf("%s: got %s, %s", name, o.Code, o.Message)
					}
				}
			})
		}
	}
	all.Wait()
}

// Connections are closed when the context ends; otherwise this test times out.
func TestConnectionsCloseWithTheContext(t *testing.T) {
	h := newHook(t)
	c, err := Parse([]byte(configurationHeader + h.yaml("a", hookOptions{})))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		links, err := c.Build(ctx, Parts{})
		if err != nil {
			t.Fatal(err)
		}
		if decision, _, err := links.Decide(t.Context(), about("allow")); decision != verdict.Allow || err != nil {
			t.Fatalf("got %s, %v", decision, err)
		}
		cancel()
		<-h.closed
	}
}
