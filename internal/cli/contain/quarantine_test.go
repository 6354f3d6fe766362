package contain

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/node-authorizer/node-authorizer/access"
	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/scope/quarantine"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/verdict"
)

func TestNamesOfQuarantines(t *testing.T) {
	long := strings.Repeat("a", 60) + strings.Repeat("."+strings.Repeat("b", 40), 4) + "." + strings.Repeat("c", 27)
	for _, tc := range []struct {
		rule   string
		target quarantineTarget
		want   string // empty: any
	}{
		{"a node", quarantineTarget{Node: "worker-1.example.com"}, "node-worker-1.example.com"},
		{"a node with a long name", quarantineTarget{Node: long}, ""},
		{"a credential", quarantineTarget{Credential: "JTI=11111111-2222-4333-8444-555555555555"}, "credential-335510b4b681"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			name := tc.target.objectName()
			if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 || tc.want != "" && name != tc.want {
				t.Errorf("the name is %q, want %q (%v)", name, tc.want, problems)
			}
		})
	}
	one, other := quarantineTarget{Node: long + "1"}, quarantineTarget{Node: long + "2"}
	if one.objectName() == other.objectName() {
		t.Errorf("two nodes have one Quarantine, %s", one.objectName())
	}
}

// A status counts only for the generation that it is about, and until the Quarantine ends.
func TestWhatTheServersSayIsAboutOneGeneration(t *testing.T) {
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	at := func(t time.Time) *metav1.Time { return &metav1.Time{Time: t} }
	for _, tc := range []struct {
		rule     string
		status   metav1.ConditionStatus
		observed int64
		end      *metav1.Time
		want     string
	}{
		{"accepted", metav1.ConditionTrue, 2, nil, command.Yes},
		{"accepted, before its end", metav1.ConditionTrue, 2, at(now.Add(time.Second)), command.Yes},
		{"accepted, at its end", metav1.ConditionTrue, 2, at(now), command.No},
		{"an earlier generation was accepted", metav1.ConditionTrue, 1, nil, command.Unknown},
		{"an earlier generation was not accepted", metav1.ConditionFalse, 1, nil, command.Unknown},
		{"not accepted", metav1.ConditionFalse, 2, nil, command.No},
		{"not known", metav1.ConditionUnknown, 2, nil, command.Unknown},
		{"no condition", "", 2, nil, command.Unknown},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			q := &policyv1alpha1.Quarantine{
				ObjectMeta: metav1.ObjectMeta{Generation: 2}, Spec: policyv1alpha1.QuarantineSpec{ExpirationTime: tc.end},
				Status: policyv1alpha1.QuarantineStatus{ObservedGeneration: tc.observed},
			}
			if tc.status != "" {
				q.Status.Conditions = []metav1.Condition{{Type: policyv1alpha1.ConditionAccepted, Status: tc.status}}
			}
			if got := acceptance(q, now); got.Answer != tc.want || got.Detail == "" {
				t.Errorf("got %+v, want %s", got, tc.want)
			}
		})
	}
}

// The words of --allow are found again in a Quarantine, and rules that people added are counted.
func TestRulesOfAQuarantineAreNamed(t *testing.T) {
	target := quarantineTarget{Node: "worker-1"}
	rules, err := allowRules([]string{allowLogs, allowDrain, allowLogs}, target)
	if err != nil {
		t.Fatal(err)
	}
	spec := &policyv1alpha1.QuarantineSpec{Node: "worker-1", Allow: rules}
	if words, others := allowed(spec); !slices.Equal(words, []string{allowDrain, allowLogs}) || others != 0 {
		t.Errorf("words %v and %d rules", words, others)
	}
	spec.Allow = append(spec.Allow[1:], policyv1alpha1.QuarantineRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/healthz"}})
	if words, others := allowed(spec); !slices.Equal(words, []string{allowLogs}) || others != len(allowances("worker-1")[allowDrain]) {
		t.Errorf("after a change, words %v and %d rules", words, others)
	}
}

// The questions for the API server are refused by the Quarantine that they are about, with all that
// --allow can let through.
func TestQuarantinesRefuseTheProbes(t *testing.T) {
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	for _, target := range []quarantineTarget{{Node: "worker-1"}, {Credential: "JTI=1"}} {
		object := &policyv1alpha1.Quarantine{Spec: policyv1alpha1.QuarantineSpec{Node: target.Node, Credential: target.Credential}}
		if target.Node != "" {
			var err error
			if object.Spec.Allow, err = allowRules(allowWords(), target); err != nil {
				t.Fatal(err)
			}
		}
		set, _ := quarantine.NewSet([]*policyv1alpha1.Quarantine{object}, quarantine.Limit{Nodes: 1}, now)
		for _, p := range probesOf(object) {
			req := &access.Request{
				User: p.spec.User, Groups: p.spec.Groups, Verb: p.spec.ResourceAttributes.Verb, ResourceRequest: true,
				Version: p.spec.ResourceAttributes.Version, Resource: p.spec.ResourceAttributes.Resource, Extra: map[string][]string{},
			}
			for key, values := range p.spec.Extra {
				req.Extra[key] = values
			}
			if answer := set.Decide(req, now); answer.Decision != verdict.Deny || answer.Code != p.code {
				t.Errorf("%s, %s: %+v", target, p.of, answer)
			}
			if other, _ := quarantine.NewSet(nil, quarantine.Limit{Nodes: 1}, now); other.Decide(req, now).Decision == verdict.Deny {
				t.Errorf("%s, %s: refused without a Quarantine", target, p.of)
			}
			if quarantine.Summary(p.code) == "" {
				t.Errorf("%s has no sentence, by which a denial is known", p.code)
			}
		}
	}
}

// TestWhatAllowLetsThrough puts requests of a kubelet to Quarantines with each word of --allow.
func TestWhatAllowLetsThrough(t *testing.T) {
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		request string // VERB GROUP/RESOURCE[/SUBRESOURCE] NAMESPACE/NAME
		passes  []string
	}{
		{"list /pods /", []string{allowDrain}},
		{"watch /pods /", []string{allowDrain}},
		{"get /pods shop/api", []string{allowDrain}},
		{"delete /pods shop/api", []string{allowDrain}},
		{"patch /pods/status shop/api", []string{allowDrain}},
		{"get /nodes /worker-1", []string{allowDrain}},
		{"patch /nodes/status /worker-1", []string{allowDrain}},
		{"update coordination.k8s.io/leases kube-node-lease/worker-1", []string{allowDrain}},
		{"create authentication.k8s.io/tokenreviews /", []string{allowLogs}},
		{"create authorization.k8s.io/subjectaccessreviews /", []string{allowLogs}},

		{"create /pods shop/", nil},
		{"update /pods/status shop/api", nil},
		{"create /pods/eviction shop/api", nil},
		{"get /nodes /worker-2", nil},
		{"list /nodes /", nil},
		{"patch /nodes /worker-1", nil},
		{"patch /nodes/status /worker-2", nil},
		{"update coordination.k8s.io/leases kube-node-lease/worker-2", nil},
		{"update coordination.k8s.io/leases kube-system/worker-1", nil},
		{"get /secrets shop/db", nil},
		{"create /serviceaccounts/token shop/api", nil},
		{"create certificates.k8s.io/certificatesigningrequests /", nil},
		{"create authentication.k8s.io/selfsubjectreviews /", nil},
	} {
		for _, word := range allowWords() {
			object := &policyv1alpha1.Quarantine{Spec: policyv1alpha1.QuarantineSpec{Node: "worker-1"}}
			var err error
			if object.Spec.Allow, err = allowRules([]string{word}, quarantineTarget{Node: "worker-1"}); err != nil {
				t.Fatal(err)
			}
			if errs := quarantine.Validate(object); len(errs) > 0 {
				t.Fatalf("--allow %s: %v", word, errs)
			}
			set, _ := quarantine.NewSet([]*policyv1alpha1.Quarantine{object}, quarantine.Limit{Nodes: 1}, now)
			for user, mayPass := range map[string]bool{
				"system:node:worker-1": true, "system:serviceaccount:kube-system:agent": false,
			} {
				req := resourceRequest(t, user, tc.request)
				if !mayPass {
					req.Extra = map[string][]string{nodeidentity.ExtraNode: {"worker-1"}}
				}
				want := mayPass && slices.Contains(tc.passes, word)
				if got := set.Decide(req, now).Decision != verdict.Deny; got != want {
					t.Errorf("--allow %s lets %s %s: %v, want %v", word, user, tc.request, got, want)
				}
			}
		}
	}
}

// resourceRequest reads VERB GROUP/RESOURCE[/SUBRESOURCE] NAMESPACE/NAME.
func resourceRequest(t *testing.T, user, text string) *access.Request {
	t.Helper()
	words := strings.Fields(text)
	req := &access.Request{User: user, Verb: words[0], ResourceRequest: true, Version: "v1"}
	req.Group, req.Resource, _ = strings.Cut(words[1], "/")
	req.Resource, req.Subresource, _ = strings.Cut(req.Resource, "/")
	req.Namespace, req.Name, _ = strings.Cut(words[2], "/")
	return req
}
