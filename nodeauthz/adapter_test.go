package nodeauthz_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// attributes is another implementation of authorizer.Attributes.
type attributes struct{ authorizer.Attributes }

func recordOf(req *access.Request) authorizer.AttributesRecord {
	return authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: req.User, Groups: req.Groups},
		Verb: req.Verb, APIGroup: req.Group, APIVersion: "v1", Resource: req.Resource, Subresource: req.Subresource,
		Namespace: req.Namespace, Name: req.Name, ResourceRequest: req.ResourceRequest, Path: req.Path,
		FieldSelectorRequirements: req.FieldSelector,
	}
}

// everyRequest has a request for most of the rules, from three nodes and from
// others.
func everyRequest() []*access.Request {
	var all []*access.Request
	for _, node := range []string{"worker-1", "worker-3", ""} {
		for _, verb := range []string{"get", "list", "create", "update", "delete", "deletecollection", "proxy"} {
			for _, object := range []string{"", "shop/", "shop/db", "worker-1", "kube-node-lease/worker-1"} {
				for _, resource := range []string{
					"secrets", "nodes", "nodes/status", "pods", "pods/eviction", "leases.coordination.k8s.io",
					"resourceslices.resource.k8s.io", "serviceaccounts/token", "services", "deployments.apps",
				} {
					all = append(all, from(node, verb, resource, object), from(node, verb, resource, object, "spec.nodeName=worker-1"))
				}
			}
		}
	}
	otherUser, url := by1("get", "secrets", "shop/db"), by1("get", "", "")
	otherUser.Groups = nil
	url.ResourceRequest, url.Path = false, "/healthz"
	return append(all, otherUser, url)
}

func TestAuthorizeDecidesLikeDecide(t *testing.T) {
	a := latest()
	for _, req := range everyRequest() {
		answer := a.Decide(req)
		want := authorizer.DecisionNoOpinion
		if answer.Decision == verdict.Allow {
			want = authorizer.DecisionAllow
		}
		record := recordOf(req)
		for form, attrs := range map[string]authorizer.Attributes{
			"record": record, "pointer": &record, "foreign": attributes{record}, "foreign pointer": &attributes{&record},
		} {
			got, reason, err := a.Authorize(t.Context(), attrs)
			if got != want || err != nil {
				t.Errorf("%s of %+v: %v, %v, want %v", form, *req, got, err, want)
			}
			if silent := got == authorizer.DecisionAllow || answer.Code == nodeauthz.NotANode; silent != (reason == "") {
				t.Errorf("%s of %+v: the reason for %v is %q", form, *req, got, reason)
			}
		}
	}
}

func TestAuthorizeWithoutAUser(t *testing.T) {
	a := latest()
	record := recordOf(by1("get", "secrets", "shop/db"))
	record.User = nil
	for _, attrs := range []authorizer.Attributes{record, &record, attributes{record}} {
		if decision, reason, err := a.Authorize(t.Context(), attrs); decision != authorizer.DecisionNoOpinion || reason != "" ||
			err != nil {
			t.Errorf("%T: got %v, %q, %v", attrs, decision, reason, err)
		}
	}
}

func TestAuthorizeMakesTheBestOfASelectorThatDidNotParse(t *testing.T) {
	a := latest()
	own := fields.ParseSelectorOrDie("spec.nodeName=worker-1").Requirements()
	for _, tc := range []struct {
		rule         string
		requirements fields.Requirements
		want         authorizer.Decision
	}{
		{"parsed requirements count", own, authorizer.DecisionAllow},
		{"nothing could be parsed", nil, authorizer.DecisionNoOpinion},
	} {
		record := recordOf(by1("list", "pods", ""))
		record.FieldSelectorRequirements, record.FieldSelectorParsingErr = tc.requirements, errors.New("unknown operator")
		for _, attrs := range []authorizer.Attributes{record, attributes{record}} {
			if got, _, err := a.Authorize(t.Context(), attrs); got != tc.want || err != nil {
				t.Errorf("%s: %T: got %v, %v, want %v", tc.rule, attrs, got, err, tc.want)
			}
		}
	}
}

func TestDecisionsHaveNoConditions(t *testing.T) {
	a := latest(nodeauthz.WithSynced(func() bool { return false }))
	for _, tc := range []struct {
		request *access.Request
		allowed bool
		err     error
	}{
		{by1("get", "secrets", "shop/db"), true, nil},
		{by1("delete", "secrets", "shop/db"), false, nil},
		{by1("get", "secrets", "shop/tls"), false, nodeauthz.ErrNotSynced},
	} {
		d := a.ConditionsAwareAuthorize(t.Context(), recordOf(tc.request))
		if d.IsAllow() != tc.allowed || d.IsNoOpinion() == tc.allowed || !errors.Is(d.Error(), tc.err) {
			t.Errorf("%+v: got %v", *tc.request, d)
		}
		decision, _, err := a.EvaluateConditions(t.Context(), d, nil)
		if decision != authorizer.DecisionDeny || !errors.Is(err, authorizer.ErrorConditionEvaluationNotSupported) {
			t.Errorf("evaluating conditions: got %v, %v", decision, err)
		}
	}
}

func TestBeforeTheGraphHasSynced(t *testing.T) {
	synced := false
	a := latest(nodeauthz.WithSynced(func() bool { return synced }))
	missing := recordOf(by1("get", "secrets", "shop/tls"))

	t.Run("a missing relation is an error", func(t *testing.T) {
		decision, _, err := a.Authorize(t.Context(), missing)
		if decision != authorizer.DecisionNoOpinion || !errors.Is(err, nodeauthz.ErrNotSynced) {
			t.Errorf("got %v, %v", decision, err)
		}
	})
	t.Run("a known relation is allowed", func(t *testing.T) {
		decision, _, err := a.Authorize(t.Context(), recordOf(by1("get", "secrets", "shop/db")))
		if decision != authorizer.DecisionAllow || err != nil {
			t.Errorf("got %v, %v", decision, err)
		}
	})
	t.Run("a refusal that no relation can change is not an error", func(t *testing.T) {
		for _, req := range []*access.Request{
			by1("delete", "secrets", "shop/db"), by1("list", "secrets", "shop/"), by1("get", "nodes", "worker-2"),
			from("", "get", "secrets", "shop/db"),
		} {
			if decision, _, err := a.Authorize(t.Context(), recordOf(req)); decision != authorizer.DecisionNoOpinion || err != nil {
				t.Errorf("%+v: got %v, %v", *req, decision, err)
			}
		}
	})
	t.Run("and afterwards a missing relation is a refusal", func(t *testing.T) {
		synced = true
		if decision, _, err := a.Authorize(t.Context(), missing); decision != authorizer.DecisionNoOpinion || err != nil {
			t.Errorf("got %v, %v", decision, err)
		}
	})
}

func TestSyncBetweenDecisionAndRefusal(t *testing.T) {
	g := graph.New()
	asked := 0
	a := nodeauthz.New(g, kubeversion.For(kubeversion.Latest), nodeauthz.WithSynced(func() bool {
		asked++
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "api"}}
		pod.Spec.NodeName, pod.Spec.ServiceAccountName = "worker-1", "api"
		g.SetPod(pod) // the last missing one
		return true
	}))
	if decision, _, err := a.Authorize(t.Context(),
		recordOf(by1("get", "serviceaccounts", "shop/api"))); decision != authorizer.DecisionAllow || err != nil {
		t.Errorf("a relation that arrived with the sync: got %v, %v", decision, err)
	}
	for range 3 {
		if decision, _, err := a.Authorize(t.Context(),
			recordOf(by1("get", "secrets", "shop/db"))); decision != authorizer.DecisionNoOpinion || err != nil {
			t.Errorf("a relation that did not: got %v, %v", decision, err)
		}
	}
	if asked != 1 {
		t.Errorf("synced was called %d times, want one call after it returned true", asked)
	}
}

func TestReasons(t *testing.T) {
	missing := by1("get", "secrets", "shop/tls")
	for _, tc := range []struct {
		rule    string
		a       *nodeauthz.Authorizer
		request *access.Request
		want    string
	}{
		{"are one fixed sentence", latest(), missing, "no relationship found between this node and this object"},
		{"or the message of the explanation", latest(nodeauthz.WithDetailedReasons()), missing, latest().Explain(missing).Reason.Message},
		{
			"but none for users that are not nodes", latest(nodeauthz.WithDetailedReasons()),
			&access.Request{User: "jane", ResourceRequest: true}, "",
		},
		{"nor for what is allowed", latest(nodeauthz.WithDetailedReasons()), by1("get", "secrets", "shop/db"), ""},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			if _, got, _ := tc.a.Authorize(t.Context(), recordOf(tc.request)); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestAnswersDoNotAllocate(t *testing.T) {
	for name, a := range map[string]*nodeauthz.Authorizer{
		"unchanged": latest(), "with options": latest(nodeauthz.WithDetailedReasons(), nodeauthz.WithSynced(func() bool { return true })),
	} {
		for _, req := range []*access.Request{
			by1("get", "secrets", "shop/db"), by1("get", "secrets", "vault/orders-key"), by1("get", "persistentvolumes", "pv-orders"),
			by1("create", "serviceaccounts/token", "shop/api"), by1("list", "pods", "", "spec.nodeName=worker-1"),
			by1("get", "pods", "shop/api"),
			by1("get", "nodes", "worker-1"), by1("update", "leases.coordination.k8s.io", "kube-node-lease/worker-1"),
			by1("create", "events", "shop/"),
		} {
			record := recordOf(req)
			var boxed authorizer.Attributes = record
			for call, do := range map[string]func(){
				"Decide":               func() { a.Decide(req) },
				"Authorize of pointer": func() { _, _, _ = a.Authorize(t.Context(), &record) },
				"Authorize of record":  func() { _, _, _ = a.Authorize(t.Context(), boxed) },
			} {
				if answer := a.Decide(req); answer.Decision != verdict.Allow {
					t.Fatalf("%s %s is not allowed: %s", req.Verb, req.Resource, answer.Code)
				}
				if n := testing.AllocsPerRun(100, do); n != 0 {
					t.Errorf("%s, %s: %s %s allocates %v times", name, call, req.Verb, req.Resource, n)
				}
			}
		}
		for _, req := range []*access.Request{
			by1("get", "secrets", "shop/tls"), by1("delete", "secrets", "shop/db"), by1("get", "nodes", "worker-2"),
		} {
			if n := testing.AllocsPerRun(100, func() { a.Decide(req) }); n != 0 {
				t.Errorf("%s: refusing %s %s allocates %v times", name, req.Verb, req.Resource, n)
			}
		}
	}
}

func TestRulesFor(t *testing.T) {
	list := func(a *nodeauthz.Authorizer, name, namespace string) (lines []string, incomplete bool, err error) {
		resources, urls, incomplete, err := a.RulesFor(t.Context(), &user.DefaultInfo{Name: name, Groups: []string{"system:nodes"}},
			namespace)
		if len(urls) != 0 {
			t.Errorf("nodes have no access to URLs, got %v", urls)
		}
		for _, r := range resources {
			lines = append(lines, fmt.Sprintf("%v %v %v %v", r.GetAPIGroups(), r.GetResources(), r.GetVerbs(), r.GetResourceNames()))
		}
		return lines, incomplete, err
	}
	t.Run("of a node, in a namespace", func(t *testing.T) {
		var b strings.Builder
		for _, namespace := range []string{"shop", "kube-node-lease", "vault", ""} {
			lines, incomplete, err := list(latest(), "system:node:worker-1", namespace)
			fmt.Fprintf(&b, "# namespace %q\n%s\nincomplete: %v, %v\n\n", namespace, strings.Join(lines, "\n"), incomplete, err)
		}
		compareGolden(t, "rules.golden", b.String())
	})
	t.Run("join the names of objects", func(t *testing.T) {
		g := newCluster()
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "another"}}
		pod.Spec.NodeName = "worker-1"
		pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}, {Name: "cache"}}
		g.SetPod(pod)
		lines, _, _ := list(nodeauthz.New(g, kubeversion.For(kubeversion.Latest)), "system:node:worker-1", "shop")
		for _, want := range []string{"[] [secrets] [get list watch] [cache db registry]", "[] [pods] [get] [another api]"} {
			if !slices.Contains(lines, want) {
				t.Errorf("got\n%s\nwant %s among them", strings.Join(lines, "\n"), want)
			}
		}
	})
	t.Run("are complete where no selector is asked for", func(t *testing.T) {
		lines, incomplete, err := list(nodeauthz.New(newCluster(), kubeversion.For(30)), "system:node:worker-1", "shop")
		if incomplete || err != nil || !slices.Contains(lines, "[] [pods] [get list watch] []") {
			t.Errorf("got %v, incomplete %v, %v", lines, incomplete, err)
		}
	})
	t.Run("are none for others", func(t *testing.T) {
		for _, name := range []string{"jane", "system:node:"} {
			if lines, incomplete, err := list(latest(), name, "shop"); len(lines) != 0 || incomplete || err != nil {
				t.Errorf("%s: got %v, incomplete %v, %v", name, lines, incomplete, err)
			}
		}
		if rules, _, incomplete, err := latest().RulesFor(t.Context(), nil, "shop"); len(rules) != 0 || incomplete || err != nil {
			t.Errorf("no user: got %v, incomplete %v, %v", rules, incomplete, err)
		}
	})
	t.Run("allow what is allowed", func(t *testing.T) {
		a := latest()
		resources, _, _, _ := a.RulesFor(t.Context(),
			&user.DefaultInfo{Name: "system:node:worker-1", Groups: []string{"system:nodes"}}, "shop")
		for _, r := range resources {
			name := ""
			if len(r.GetResourceNames()) > 0 {
				name = r.GetResourceNames()[0]
			}
			req := by1(r.GetVerbs()[0], "", "")
			req.Resource, req.Subresource, _ = strings.Cut(r.GetResources()[0], "/")
			req.Group, req.Namespace, req.Name = r.GetAPIGroups()[0], "shop", name
			if clusterScoped := map[string]bool{
				"persistentvolumes": true, "volumeattachments": true, "resourceslices": true,
			}; clusterScoped[req.Resource] {
				req.Namespace = ""
			}
			if answer := a.Decide(req); answer.Decision != verdict.Allow {
				t.Errorf("%+v is listed but answered with %s", *req, answer.Code)
			}
		}
	})
}

func TestReach(t *testing.T) {
	var b strings.Builder
	for _, node := range []string{"worker-1", "worker-3"} {
		reach := latest().Reach(node)
		fmt.Fprintf(&b, "# %s: standing\n", reach.Node)
		writeGrants(&b, reach.Standing)
		fmt.Fprintf(&b, "# %s: related\n", reach.Node)
		writeGrants(&b, reach.Related)
	}
	compareGolden(t, "reach.golden", b.String())
}

func writeGrants(b *strings.Builder, grants []nodeauthz.Grant) {
	for _, g := range grants {
		fmt.Fprintf(b, "%v group=%q resource=%s subresource=%q namespace=%q name=%q kind=%q selector=%q: %s\n",
			g.Verbs, g.Group, g.Resource, g.Subresource, g.Namespace, g.Name, g.Kind, g.FieldSelector, g.Rule)
		for _, path := range g.Paths {
			fmt.Fprintf(b, "    %v\n", path)
		}
	}
}

// TestReachIsWhatIsAllowed puts each grant as a request.
func TestReachIsWhatIsAllowed(t *testing.T) {
	for _, minor := range kubeversion.Minors() {
		a := nodeauthz.New(newCluster(), kubeversion.For(minor))
		reach := a.Reach("worker-1")
		for _, g := range slices.Concat(reach.Standing, reach.Related) {
			for _, verb := range g.Verbs {
				req := by1(verb, "", "")
				req.Group, req.Resource, req.Subresource, req.Namespace, req.Name = g.Group, g.Resource, g.Subresource, g.Namespace, g.Name
				if g.FieldSelector != "" {
					req.FieldSelector = fields.ParseSelectorOrDie(g.FieldSelector).Requirements()
				}
				if answer := a.Decide(req); answer.Decision != verdict.Allow {
					t.Errorf("%s: %+v is within reach but answered with %s", minor, *req, answer.Code)
				}
			}
		}
	}
}

func TestKindOf(t *testing.T) {
	for _, tc := range []struct {
		group, resource string
		kind            graph.Kind
		related         bool
	}{
		{"", "secrets", graph.Secret, true},
		{"", "configmaps", graph.ConfigMap, true},
		{"", "pods", graph.Pod, true},
		{"", "serviceaccounts", graph.ServiceAccount, true},
		{"", "persistentvolumeclaims", graph.PersistentVolumeClaim, true},
		{"", "persistentvolumes", graph.PersistentVolume, true},
		{"storage.k8s.io", "volumeattachments", graph.VolumeAttachment, true},
		{"resource.k8s.io", "resourceclaims", graph.ResourceClaim, true},
		{"resource.k8s.io", "resourceslices", graph.ResourceSlice, true},
		{"certificates.k8s.io", "podcertificaterequests", graph.PodCertificateRequest, true},
		{"", "nodes", 0, false},
		{"storage.k8s.io", "csinodes", 0, false},
		{"", "services", 0, false},
		{"apps", "secrets", 0, false},
	} {
		if kind, related := nodeauthz.KindOf(tc.group, tc.resource); kind != tc.kind || related != tc.related {
			t.Errorf("%s %s: got %v, %v", tc.group, tc.resource, kind, related)
		}
	}
}
