package quarantine_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/scope/quarantine"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/verdict"
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

const certificate = "X509SHA256=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func ofNode(name string, change ...func(*v1alpha1.Quarantine)) *v1alpha1.Quarantine {
	q := &v1alpha1.Quarantine{ObjectMeta: metav1.ObjectMeta{Name: "node-" + name}, Spec: v1alpha1.QuarantineSpec{Node: name}}
	for _, f := range change {
		f(q)
	}
	return q
}

func until(at time.Time) func(*v1alpha1.Quarantine) {
	return func(q *v1alpha1.Quarantine) { q.Spec.ExpirationTime = &metav1.Time{Time: at} }
}

func created(at time.Time) func(*v1alpha1.Quarantine) {
	return func(q *v1alpha1.Quarantine) { q.CreationTimestamp.Time = at }
}

func allowing(rules ...v1alpha1.QuarantineRule) func(*v1alpha1.Quarantine) {
	return func(q *v1alpha1.Quarantine) { q.Spec.Allow = rules }
}

func kubelet(name string) *access.Request {
	req := &access.Request{ResourceRequest: true, Verb: "get", Resource: "pods", Namespace: "shop", Name: "web"}
	req.User, req.Groups = nodeidentity.User(name)
	return req
}

func pod(node string) *access.Request {
	req := kubelet("")
	req.User, req.Groups = "system:serviceaccount:shop:web", []string{"system:serviceaccounts"}
	req.Extra = map[string][]string{nodeidentity.ExtraNode: {node}}
	return req
}

func with(req *access.Request, change func(*access.Request)) *access.Request {
	change(req)
	return req
}

func TestDecide(t *testing.T) {
	credential := &v1alpha1.Quarantine{
		ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: v1alpha1.QuarantineSpec{Credential: certificate},
	}
	pods := v1alpha1.QuarantineRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}
	ofAgents := pods
	ofAgents.ServiceAccounts = []v1alpha1.Subject{{Namespace: "shop"}}
	inOther := pods
	inOther.Namespaces = []string{"other"}
	useCertificate := func(r *access.Request) {
		r.Extra = map[string][]string{nodeidentity.ExtraCredential: {certificate}}
	}
	for _, tc := range []struct {
		rule string
		set  []*v1alpha1.Quarantine
		req  *access.Request
		code verdict.Code
	}{
		{"the kubelet", []*v1alpha1.Quarantine{ofNode("a")}, kubelet("a"), quarantine.NodeQuarantined},
		{"the kubelet of another node", []*v1alpha1.Quarantine{ofNode("a")}, kubelet("b"), quarantine.NotQuarantined},
		{
			"the user without its group",
			[]*v1alpha1.Quarantine{ofNode("a")},
			with(kubelet("a"), func(r *access.Request) { r.Groups = nil }), quarantine.NodeQuarantined,
		},
		{"a pod's token", []*v1alpha1.Quarantine{ofNode("a")}, pod("a"), quarantine.NodeQuarantined},
		{"a token of another node", []*v1alpha1.Quarantine{ofNode("a")}, pod("b"), quarantine.NotQuarantined},
		{
			"one of two nodes",
			[]*v1alpha1.Quarantine{ofNode("a")},
			with(pod("b"), func(r *access.Request) { r.Extra[nodeidentity.ExtraNode] = []string{"b", "a"} }), quarantine.NodeQuarantined,
		},
		{
			"a token without a node",
			[]*v1alpha1.Quarantine{ofNode("a")},
			with(pod("a"), func(r *access.Request) { r.Extra = nil }), quarantine.NotQuarantined,
		},
		{
			"a path",
			[]*v1alpha1.Quarantine{ofNode("a")},
			with(kubelet("a"), func(r *access.Request) { r.ResourceRequest, r.Path = false, "/healthz" }), quarantine.NodeQuarantined,
		},
		{"a credential", []*v1alpha1.Quarantine{credential}, with(kubelet("a"), useCertificate), quarantine.CredentialQuarantined},
		{"another credential of the node", []*v1alpha1.Quarantine{credential}, kubelet("a"), quarantine.NotQuarantined},
		{"a moment before the end", []*v1alpha1.Quarantine{ofNode("a", until(now.Add(1)))}, kubelet("a"), quarantine.NodeQuarantined},
		{"at the end", []*v1alpha1.Quarantine{ofNode("a", until(now))}, kubelet("a"), quarantine.NotQuarantined},
		{"a rule", []*v1alpha1.Quarantine{ofNode("a", allowing(pods))}, kubelet("a"), quarantine.QuarantinePassed},
		{
			"a rule for another verb",
			[]*v1alpha1.Quarantine{ofNode("a", allowing(pods))},
			with(kubelet("a"), func(r *access.Request) { r.Verb = "list" }), quarantine.NodeQuarantined,
		},
		{"a rule for another namespace", []*v1alpha1.Quarantine{ofNode("a", allowing(inOther))}, kubelet("a"), quarantine.NodeQuarantined},
		{"a rule of the node is not for pods", []*v1alpha1.Quarantine{ofNode("a", allowing(pods))}, pod("a"), quarantine.NodeQuarantined},
		{"a rule for accounts", []*v1alpha1.Quarantine{ofNode("a", allowing(ofAgents))}, pod("a"), quarantine.QuarantinePassed},
		{
			"a rule for accounts is not for the node",
			[]*v1alpha1.Quarantine{ofNode("a", allowing(ofAgents))},
			kubelet("a"), quarantine.NodeQuarantined,
		},
		{
			"a request must pass every one",
			[]*v1alpha1.Quarantine{ofNode("a", allowing(pods)), ofNode("a", named("second"))},
			kubelet("a"), quarantine.NodeQuarantined,
		},
		{
			"a rule for the node does not release the credential",
			[]*v1alpha1.Quarantine{credential, ofNode("a", allowing(pods))},
			with(kubelet("a"), useCertificate), quarantine.CredentialQuarantined,
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			// The set was made when none had ended.
			set, excess := quarantine.NewSet(tc.set, quarantine.Limit{Nodes: 10}, now.Add(-time.Hour))
			got := set.Decide(tc.req, now)
			refused := tc.code == quarantine.NodeQuarantined || tc.code == quarantine.CredentialQuarantined
			if got.Code != tc.code || (got.Decision == verdict.Deny) != refused || got.Decision == verdict.Allow || len(excess) > 0 {
				t.Errorf("got %+v, want %s", got, tc.code)
			}
			if (got.Quarantine == "") != (tc.code == quarantine.NotQuarantined) {
				t.Errorf("got quarantine %q", got.Quarantine)
			}
		})
	}
}

func TestTheOldestNodesCount(t *testing.T) {
	var objects []*v1alpha1.Quarantine
	for i := range 5 {
		objects = append(objects, ofNode(fmt.Sprint("n", i), created(now.Add(-time.Duration(i)*time.Minute))))
	}
	expired := ofNode("expired", created(now.Add(-time.Hour)), until(now))
	again := ofNode("n4", created(now), named("again"))
	objects = append(objects, expired, again)
	set, excess := quarantine.NewSet(objects, quarantine.Limit{Nodes: 2}, now)
	var names []string
	for _, q := range excess {
		names = append(names, q.Name)
	}
	if got := strings.Join(names, " "); got != "node-n2 node-n1 node-n0" {
		t.Errorf("excess: %s", got)
	}
	for name, want := range map[string]bool{"n4": true, "n3": true, "n2": false, "expired": false} {
		if _, got := set.Node(name, now); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if nodes, credentials := set.Len(); nodes != 2 || credentials != 0 {
		t.Errorf("%d nodes, %d credentials", nodes, credentials)
	}
}

func named(name string) func(*v1alpha1.Quarantine) {
	return func(q *v1alpha1.Quarantine) { q.Name = name }
}

func says(status metav1.ConditionStatus) func(*v1alpha1.Quarantine) {
	return func(q *v1alpha1.Quarantine) {
		q.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAccepted, Status: status}}
	}
}

func TestWhichNodesAreQuarantined(t *testing.T) {
	accepted, refused := says(metav1.ConditionTrue), says(metav1.ConditionFalse)
	early, late := created(now.Add(-time.Hour)), created(now)
	for _, tc := range []struct {
		rule    string
		objects []*v1alpha1.Quarantine
		limit   quarantine.Limit
		want    string
	}{
		{"the oldest", []*v1alpha1.Quarantine{ofNode("a", late), ofNode("b", early)}, quarantine.Limit{Nodes: 1}, "b"},
		{"of the same time, by name", []*v1alpha1.Quarantine{ofNode("b", late), ofNode("a", late)}, quarantine.Limit{Nodes: 1}, "a"},
		{
			"of the same name, by UID",
			[]*v1alpha1.Quarantine{
				ofNode("a", named("same"), func(q *v1alpha1.Quarantine) { q.UID = "2" }),
				ofNode("b", named("same"), func(q *v1alpha1.Quarantine) { q.UID = "1" }),
			},
			quarantine.Limit{Nodes: 1},
			"b",
		},
		{
			"accepted ones before older ones",
			[]*v1alpha1.Quarantine{ofNode("a", early), ofNode("b", late, accepted)},
			quarantine.Limit{Nodes: 1},
			"b",
		},
		{
			"accepted ones of any generation",
			[]*v1alpha1.Quarantine{ofNode("a", early), ofNode("b", late, accepted, func(q *v1alpha1.Quarantine) { q.Generation = 2 })},
			quarantine.Limit{Nodes: 1},
			"b",
		},
		{
			"not more accepted ones than the limit",
			[]*v1alpha1.Quarantine{ofNode("c", accepted), ofNode("b", accepted), ofNode("a", accepted), ofNode("d", accepted)},
			quarantine.Limit{Nodes: 2},
			"a b",
		},
		{
			"the oldest accepted ones",
			[]*v1alpha1.Quarantine{ofNode("a", late, accepted), ofNode("b", early, accepted)},
			quarantine.Limit{Nodes: 1},
			"b",
		},
		{
			"refused ones, if there is room",
			[]*v1alpha1.Quarantine{ofNode("a", refused), ofNode("b", late)},
			quarantine.Limit{Nodes: 2},
			"a b",
		},
		{
			"accepted ones, as many as are kept",
			[]*v1alpha1.Quarantine{ofNode("a", accepted), ofNode("b", accepted), ofNode("c", accepted)},
			quarantine.Limit{Nodes: 1, Kept: 2},
			"a b",
		},
		{
			"what is kept is not for others",
			[]*v1alpha1.Quarantine{ofNode("a", accepted), ofNode("b", early)},
			quarantine.Limit{Nodes: 1, Kept: 2},
			"a",
		},
		{
			"fewer that are kept do not lower the limit",
			[]*v1alpha1.Quarantine{ofNode("a", accepted), ofNode("b", accepted)},
			quarantine.Limit{Nodes: 2, Kept: 1},
			"a b",
		},
		{
			"expired ones do not count",
			[]*v1alpha1.Quarantine{ofNode("a", accepted, until(now)), ofNode("b")},
			quarantine.Limit{Nodes: 1},
			"b",
		},
		{
			"several of one node count once",
			[]*v1alpha1.Quarantine{ofNode("a"), ofNode("a", late, named("again")), ofNode("b", early)},
			quarantine.Limit{Nodes: 2},
			"a b",
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			set, excess := quarantine.NewSet(tc.objects, tc.limit, now)
			nodes := map[string]bool{}
			for _, q := range tc.objects {
				if by, ok := set.Node(q.Spec.Node, now); ok {
					nodes[by.Spec.Node] = true
				}
			}
			if got := strings.Join(slices.Sorted(maps.Keys(nodes)), " "); got != tc.want {
				t.Errorf("quarantined: %s, want %s", got, tc.want)
			}
			for _, q := range excess {
				if nodes[q.Spec.Node] {
					t.Errorf("%s exceeds the limit, and its node is quarantined", q.Name)
				}
			}
		})
	}
}

func TestNoSetIsEmpty(t *testing.T) {
	var set *quarantine.Set
	if got := set.Decide(kubelet("a"), now); got.Code != quarantine.NotQuarantined || got.Decision != verdict.NoOpinion {
		t.Errorf("got %+v", got)
	}
	if _, found := set.Node("a", now); found {
		t.Error("a node is quarantined")
	}
	if _, found := set.Credential(certificate, now); found {
		t.Error("a credential is quarantined")
	}
	if some, _ := quarantine.NewSet([]*v1alpha1.Quarantine{ofNode("a")}, quarantine.Limit{Nodes: 1}, now); some.Empty() || !set.Empty() {
		t.Error("a set with a Quarantine is empty, or one without is not")
	}
}

func TestDecideDoesNotAllocate(t *testing.T) {
	set, _ := quarantine.NewSet([]*v1alpha1.Quarantine{ofNode("a")}, quarantine.Limit{Nodes: 1}, now)
	for _, req := range []*access.Request{kubelet("a"), kubelet("b"), pod("a"), pod("b")} {
		if n := testing.AllocsPerRun(100, func() { set.Decide(req, now) }); n != 0 {
			t.Errorf("%s: %v allocations", req.User, n)
		}
	}
}

func TestValidate(t *testing.T) {
	rule := v1alpha1.QuarantineRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}
	changed := func(change func(*v1alpha1.QuarantineRule)) func(*v1alpha1.Quarantine) {
		return func(q *v1alpha1.Quarantine) {
			r := rule
			change(&r)
			q.Spec.Allow = []v1alpha1.QuarantineRule{rule, r}
		}
	}
	for _, tc := range []struct {
		rule   string
		change func(*v1alpha1.Quarantine)
		want   string // empty: valid
	}{
		{"a node", func(*v1alpha1.Quarantine) {}, ""},
		{"a certificate", func(q *v1alpha1.Quarantine) { q.Spec.Node, q.Spec.Credential = "", certificate }, ""},
		{"a token", func(q *v1alpha1.Quarantine) { q.Spec.Node, q.Spec.Credential = "", "JTI=1f0d-2" }, ""},
		{"nothing", func(q *v1alpha1.Quarantine) { q.Spec.Node = "" }, "spec: Required value"},
		{"both", func(q *v1alpha1.Quarantine) { q.Spec.Credential = certificate }, "spec.credential: Forbidden"},
		{"a node's name", func(q *v1alpha1.Quarantine) { q.Spec.Node = "system:node:a" }, "spec.node: Invalid value"},
		{
			"a credential in upper case",
			func(q *v1alpha1.Quarantine) { q.Spec.Node, q.Spec.Credential = "", strings.ToUpper(certificate) },
			"spec.credential: Invalid value",
		},
		{"a rule", changed(func(*v1alpha1.QuarantineRule) {}), ""},
		{"no verbs", changed(func(r *v1alpha1.QuarantineRule) { r.Verbs = nil }), "spec.allow[1].verbs: Required value"},
		{"no groups", changed(func(r *v1alpha1.QuarantineRule) { r.APIGroups = nil }), "spec.allow[1]: Required value"},
		{"a path too", changed(func(r *v1alpha1.QuarantineRule) { r.NonResourceURLs = []string{"/x"} }), "spec.allow[1]: Invalid value"},
		{
			"an account without namespace",
			changed(func(r *v1alpha1.QuarantineRule) { r.ServiceAccounts = []v1alpha1.Subject{{Name: "x"}} }),
			"spec.allow[1].serviceAccounts[0].namespace: Required value",
		},
		{
			"too many rules",
			func(q *v1alpha1.Quarantine) { q.Spec.Allow = make([]v1alpha1.QuarantineRule, quarantine.MaxListed+1) },
			"spec.allow: Too many",
		},
	} {
		errs := quarantine.Validate(ofNode("a", tc.change))
		switch {
		case tc.want == "" && len(errs) > 0:
			t.Errorf("%s: %v", tc.rule, errs.ToAggregate())
		case tc.want != "" && (len(errs) == 0 || !strings.HasPrefix(errs[0].Error(), tc.want)):
			t.Errorf("%s: got %v, want %s", tc.rule, errs.ToAggregate(), tc.want)
		}
	}
}
