package cli

import (
	"maps"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/fakeapiserver"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// startContained starts a writable API server, as startCluster does, with the resources that commands
// about quarantines use, and sets $SERVER to its address:
//
//	contained FILE [VERSION [RESOURCE...]]
//
// It does not serve the given resources. If the script's folder has a file called
//
//	broken    requests fail whose method and path contain its text,
//	forbidden requests are forbidden whose method and path contain its text,
//	follower  each Quarantine that is read gets this status, as if a server followed it,
//	review    SubjectAccessReviews of nodes and of tokens on a node are answered with this status,
//	review-accounts and those of tokens, with this one.
func startContained(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: contained FILE [VERSION [RESOURCE...]]")
	}
	version := "v1.37.1"
	if len(args) > 1 {
		version = args[1]
	}
	c := &contained{file: func(name string) string {
		text, err := os.ReadFile(ts.MkAbs(name))
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(text))
	}}
	c.server = fakeapiserver.New(fakeapiserver.Options{
		Version: func() string { return version }, Fault: c.fault, ReviewStatus: c.review,
		Resources: containedResources(args[min(2, len(args)):]),
	})
	ts.Defer(c.server.Close)
	var objects map[string]map[string]any
	ts.Check(yaml.Unmarshal([]byte(c.file(args[0])), &objects))
	for path, object := range objects {
		ts.Check(c.server.Put(path, object))
	}
	ts.Setenv("SERVER", c.server.URL())
}

func containedResources(without []string) map[string]map[string]string {
	all := map[string]map[string]string{
		policyv1alpha1.GroupVersion().String(): {"quarantines": "Quarantine"},
		"node-authorizer.io/v1alpha1":          {"nodeattestations": "NodeAttestation"},
	}
	for version, resources := range served {
		all[version] = maps.Clone(resources)
	}
	for _, resources := range all {
		maps.DeleteFunc(resources, func(name, _ string) bool { return slices.Contains(without, name) })
	}
	return all
}

type contained struct {
	server *fakeapiserver.Server
	// file returns the text of a file in the script's folder; empty if there is none.
	file func(name string) string
}

func (c *contained) fault(r *http.Request) fakeapiserver.Fault {
	what := r.Method + " " + r.URL.Path
	for name, fault := range map[string]fakeapiserver.Fault{"broken": fakeapiserver.Unavailable, "forbidden": fakeapiserver.Forbidden} {
		if text := c.file(name); text != "" && strings.Contains(what, text) {
			return fault
		}
	}
	if status := c.file("follower"); status != "" && r.Method == http.MethodGet && path.Base(path.Dir(r.URL.Path)) == "quarantines" {
		c.follow(r.URL.Path, status)
	}
	return fakeapiserver.NoFault
}

// follow sets the status of a Quarantine.
func (c *contained) follow(path, status string) {
	q := &policyv1alpha1.Quarantine{}
	if found, err := c.server.Get(path, q); err != nil || !found {
		return
	}
	if err := yaml.Unmarshal([]byte(status), &q.Status); err != nil {
		panic(err)
	}
	if err := c.server.Put(path, q); err != nil {
		panic(err)
	}
}

func (c *contained) review(spec, status map[string]any) {
	extra, _ := spec["extra"].(map[string]any)
	user, _ := spec["user"].(string)
	answer := ""
	if strings.HasPrefix(user, nodeidentity.UserPrefix) || extra[nodeidentity.ExtraNode] != nil {
		answer = c.file("review")
	}
	if forAccounts := c.file("review-accounts"); forAccounts != "" && extra[nodeidentity.ExtraNode] != nil {
		answer = forAccounts
	}
	if err := yaml.Unmarshal([]byte(answer), &status); err != nil {
		panic(err)
	}
}

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
		{"accepted", metav1.ConditionTrue, 2, nil, yes},
		{"accepted, before its end", metav1.ConditionTrue, 2, at(now.Add(time.Second)), yes},
		{"accepted, at its end", metav1.ConditionTrue, 2, at(now), no},
		{"an earlier generation was accepted", metav1.ConditionTrue, 1, nil, unknown},
		{"an earlier generation was not accepted", metav1.ConditionFalse, 1, nil, unknown},
		{"not accepted", metav1.ConditionFalse, 2, nil, no},
		{"not known", metav1.ConditionUnknown, 2, nil, unknown},
		{"no condition", "", 2, nil, unknown},
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
	rules, err := allowRules([]string{allowLook, allowDrain, allowLook}, target)
	if err != nil {
		t.Fatal(err)
	}
	spec := &policyv1alpha1.QuarantineSpec{Node: "worker-1", Allow: rules}
	if words, others := allowed(spec); !slices.Equal(words, []string{allowDrain, allowLook}) || others != 0 {
		t.Errorf("words %v and %d rules", words, others)
	}
	spec.Allow = append(spec.Allow[1:], policyv1alpha1.QuarantineRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/healthz"}})
	if words, others := allowed(spec); !slices.Equal(words, []string{allowLook}) || others != len(allowances("worker-1")[allowDrain]) {
		t.Errorf("after a change, words %v and %d rules", words, others)
	}
}
