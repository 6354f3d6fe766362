package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/chain"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/internal/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// stubAges says that some kinds are too old.
type stubAges source.Kinds

func (a stubAges) Fresh() bool { return a == 0 }

func (a stubAges) TooOld(on source.Kinds) error {
	if source.Kinds(a)&on == 0 {
		return nil
	}
	return &source.AgeError{MaxStaleness: 2 * time.Minute}
}

const agingCluster = `
{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "a", "uid": "uid-a"}}
{"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"namespace": "shop", "name": "default", "uid": "uid-default"}}
{"kind": "Pod", "apiVersion": "v1", "metadata": {"namespace": "shop", "name": "web", "uid": "uid-web"}, "spec": {"nodeName": "a", "serviceAccountName": "default",
  "volumes": [{"name": "s", "secret": {"secretName": "db"}}, {"name": "d", "persistentVolumeClaim": {"claimName": "data"}}, {"name": "x", "csi": {"driver": "vault"}},
    {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}]}}
{"kind": "PersistentVolumeClaim", "apiVersion": "v1", "metadata": {"namespace": "shop", "name": "data"}, "spec": {"volumeName": "pv"}}
{"kind": "PersistentVolume", "apiVersion": "v1", "metadata": {"name": "pv"}, "spec": {"claimRef": {"namespace": "shop", "name": "data"}}}
{"kind": "CSIDriver", "apiVersion": "storage.k8s.io/v1", "metadata": {"name": "vault"}, "spec": {"tokenRequests": [{"audience": "vault"}]}}
{"kind": "VolumeAttachment", "apiVersion": "storage.k8s.io/v1", "metadata": {"name": "va"}, "spec": {"nodeName": "a"}}
{"kind": "ResourceSlice", "apiVersion": "resource.k8s.io/v1", "metadata": {"name": "gpu"}, "spec": {"nodeName": "a"}}
{"kind": "ResourceSlice", "apiVersion": "resource.k8s.io/v1", "metadata": {"name": "other"}, "spec": {"nodeName": "b"}}
{"kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "r"}, "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]}
{"kind": "ClusterRoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "b"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
  "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "ann"}]}
`

// agingDecider decides about agingCluster, of which some kinds are too old.
func agingDecider(t *testing.T, ages evaluate.Ages, access noderestriction.Authorizer) (*decider, *int) {
	t.Helper()
	state, err := source.LoadFiles(t.Context(), []string{"-"}, source.FileOptions{Stdin: strings.NewReader(agingCluster)})
	if err != nil {
		t.Fatal(err)
	}
	evaluator, err := evaluate.New(t.Context(), state, evaluate.Options{Features: kubeversion.For(kubeversion.Latest), Ages: ages, Access: access})
	if err != nil {
		t.Fatal(err)
	}
	counted := new(int)
	return &decider{Evaluator: evaluator, tooOld: func(string) { *counted++ }}, counted
}

// nobody lets no node request anything.
type nobody struct{}

func (nobody) Authorize(context.Context, *access.Request) (bool, string, error) {
	return false, "", nil
}

// tokenRequest asks for a token of the pod web.
func tokenRequest(audience string) *authenticationv1.TokenRequest {
	r := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: "web", UID: "uid-web"},
	}}
	if audience != "" {
		r.Spec.Audiences = []string{audience}
	}
	return r
}

var (
	attachments = source.KindsAbout(graph.VolumeAttachment)
	slicesKind  = source.KindsAbout(graph.ResourceSlice)
)

// The rows are what is asked; the columns, which kinds an answer depends on: it
// is an error when one of them is too old, and given otherwise.
func TestAnswersThatDependOnOldStateAreErrors(t *testing.T) {
	all := map[string]source.Kinds{
		"pods": source.Pods, "nodes": source.Nodes, "volumes": source.PersistentVolumes, "claims": source.PersistentVolumeClaims,
		"accounts": source.ServiceAccounts, "drivers": source.CSIDrivers, "attachments": attachments, "slices": slicesKind, "rbac": source.RBACKinds(),
	}
	for _, tc := range []struct {
		user, verb, group, resource, subresource, namespace, name string
		dependsOn                                                 string
		decision                                                  verdict.Decision
	}{
		{"", "get", "", "secrets", "", "shop", "db", "pods volumes", verdict.Allow},
		{"", "get", "", "secrets", "", "shop", "unrelated", "pods volumes", verdict.NoOpinion},
		{"", "get", "", "configmaps", "", "shop", "unrelated", "pods", verdict.NoOpinion},
		{"", "get", "", "pods", "", "shop", "web", "pods", verdict.Allow},
		{"", "get", "", "persistentvolumeclaims", "", "shop", "data", "pods", verdict.Allow},
		{"", "get", "", "persistentvolumes", "", "", "pv", "pods volumes", verdict.Allow},
		{"", "create", "", "serviceaccounts", "token", "shop", "default", "pods", verdict.Allow},
		{"", "get", "storage.k8s.io", "volumeattachments", "", "", "va", "attachments", verdict.Allow},
		{"", "get", "resource.k8s.io", "resourceslices", "", "", "gpu", "slices", verdict.Allow},
		{"", "get", "resource.k8s.io", "resourceslices", "", "", "other", "slices", verdict.NoOpinion},
		{"", "get", "", "nodes", "", "", "a", "", verdict.Allow},
		{"", "get", "", "nodes", "", "", "b", "", verdict.NoOpinion},
		{"", "create", "resource.k8s.io", "resourceslices", "", "", "", "", verdict.Allow},
		{"", "list", "", "services", "", "", "", "", verdict.Allow},
		{"", "delete", "", "secrets", "", "shop", "db", "", verdict.NoOpinion},
		{"ann", "get", "", "secrets", "", "shop", "db", "", verdict.NoOpinion},
	} {
		user, groups := nodeidentity.User("a")
		if tc.user != "" {
			user, groups = tc.user, nil
		}
		req := &access.Request{
			User: user, Groups: groups, ResourceRequest: true, Verb: tc.verb, Group: tc.group, Resource: tc.resource,
			Subresource: tc.subresource, Namespace: tc.namespace, Name: tc.name,
		}
		question := fmt.Sprint(tc.user, " ", tc.verb, " ", tc.resource, "/", tc.name)
		for name, kinds := range all {
			d, counted := agingDecider(t, stubAges(kinds), nobody{})
			opinion, err := d.authorize(d.AuthorizeNode)(t.Context(), req)
			if strings.Contains(" "+tc.dependsOn+" ", " "+name+" ") {
				if err == nil || opinion.Decision != verdict.NoOpinion || opinion.Code != decision.StateTooOld || opinion.Stale || *counted != 1 {
					t.Errorf("%s, when %s are too old: %+v, %v, counted %d", question, name, opinion, err, *counted)
				}
			} else if err != nil || opinion.Decision != tc.decision || *counted != 0 {
				t.Errorf("%s, when %s are too old: %+v, %v, counted %d; want %v", question, name, opinion, err, *counted, tc.decision)
			}
		}
	}
}

// In a chain, an authorizer whose state is too old has no opinion; the others
// are asked, and one that knows enough decides.
func TestAChainWithOldState(t *testing.T) {
	node, nodeGroups := nodeidentity.User("a")
	for name, tc := range map[string]struct {
		user   string
		groups []string
		secret string
		old    source.Kinds
		want   string
	}{
		"nothing is old":                               {node, nodeGroups, "db", 0, "Allow by Node"},
		"the relation is old":                          {node, nodeGroups, "db", source.Pods, "error"},
		"the relation is old, and another allows":      {"ann", nil, "db", source.Pods, "Allow by RBAC"},
		"the missing relation is old":                  {node, nodeGroups, "unrelated", source.Pods, "error"},
		"the relation is known, and RBAC is old":       {node, nodeGroups, "db", source.RBACKinds(), "Allow by Node"},
		"there is no relation, and RBAC is old":        {node, nodeGroups, "unrelated", source.RBACKinds(), "error"},
		"RBAC allows, and is old":                      {"ann", nil, "db", source.RBACKinds(), "error"},
		"RBAC refuses, and is old":                     {"bob", nil, "db", source.RBACKinds(), "error"},
		"RBAC refuses":                                 {"bob", nil, "db", source.Pods, "NoOpinion by "},
		"masters need no state":                        {"root", []string{"system:masters"}, "db", ^source.Kinds(0), "Allow by system:masters"},
		"a node in a group that RBAC lets is known so": {node, append([]string{"system:masters"}, nodeGroups...), "db", source.Pods, "Allow by system:masters"},
	} {
		t.Run(name, func(t *testing.T) {
			d, counted := agingDecider(t, stubAges(tc.old), nobody{})
			opinion, err := d.authorize(d.Authorize)(t.Context(), &access.Request{
				User: tc.user, Groups: tc.groups, ResourceRequest: true, Verb: "get", Resource: "secrets", Namespace: "shop", Name: tc.secret,
			})
			got := fmt.Sprint(opinion.Decision, " by ", opinion.Authorizer)
			if err != nil {
				got = "error"
				if opinion.Code != decision.StateTooOld || opinion.Decision != verdict.NoOpinion || *counted != 1 {
					t.Errorf("%+v, counted %d", opinion, *counted)
				}
			}
			if got != tc.want {
				t.Errorf("got %s, %v; want %s", got, err, tc.want)
			}
		})
	}
}

// A relation that is old gives way to an authorizer behind it that allows.
func TestAChainAsksOnWhenARelationIsOld(t *testing.T) {
	d, _ := agingDecider(t, stubAges(source.Pods), nobody{})
	d.Chain = append(d.Chain, chain.AlwaysAllow())
	user, groups := nodeidentity.User("a")
	opinion, err := d.authorize(d.Authorize)(t.Context(), &access.Request{
		User: user, Groups: groups, ResourceRequest: true, Verb: "get", Resource: "secrets", Namespace: "shop", Name: "db",
	})
	if err != nil || opinion.Decision != verdict.Allow || opinion.Authorizer != chain.AlwaysAllow().Name() {
		t.Errorf("got %+v, %v", opinion, err)
	}
}

func TestWritesThatDependOnOldStateAreErrors(t *testing.T) {
	user, groups := nodeidentity.User("a")
	token := func(audience string) *noderestriction.Request {
		return &noderestriction.Request{
			User: user, Groups: groups, Operation: noderestriction.Create, Resource: "serviceaccounts", Subresource: "token", Namespace: "shop", Name: "default",
			Object: tokenRequest(audience),
		}
	}
	remove := &noderestriction.Request{User: user, Groups: groups, Operation: noderestriction.Delete, Resource: "pods", Namespace: "shop", Name: "web"}
	lease := &noderestriction.Request{
		User: user, Groups: groups, Operation: noderestriction.Delete, Group: "coordination.k8s.io", Resource: "leases", Namespace: "kube-node-lease", Name: "a",
	}
	other := *lease
	other.Name = "b"
	update := &noderestriction.Request{User: user, Groups: groups, Operation: noderestriction.Update, Resource: "pods", Namespace: "shop", Name: "web"}
	person := &noderestriction.Request{User: "ann", Operation: noderestriction.Delete, Resource: "pods", Namespace: "shop", Name: "web"}
	everything := ^source.Kinds(0)
	for name, tc := range map[string]struct {
		req  *noderestriction.Request
		old  source.Kinds
		want string
	}{
		"a token of the pod":                                  {token(""), everything &^ source.Pods, "RestrictionsMet"},
		"a token of a pod that is old":                        {token(""), source.Pods, "StateTooOld"},
		"a token for a driver":                                {token("vault"), everything &^ (source.Pods | source.CSIDrivers | source.PersistentVolumes | source.PersistentVolumeClaims), "RestrictionsMet"},
		"a token for a driver that is old":                    {token("vault"), source.CSIDrivers, "StateTooOld"},
		"a token for nobody":                                  {token("bank"), source.Nodes, "AudienceNotAllowed"},
		"a token for nobody, as far as is known":              {token("bank"), source.CSIDrivers, "StateTooOld"},
		"a pod's end":                                         {remove, everything &^ source.Pods &^ source.Nodes, "RestrictionsMet"},
		"a pod's end, of which the state is old":              {remove, source.Pods, "StateTooOld"},
		"a lease, which depends on nothing":                   {lease, everything, "RestrictionsMet"},
		"another's lease, which depends on nothing":           {&other, everything, "NotOwnLease"},
		"an update of a pod, which depends on nothing":        {update, everything, "OperationNotAllowed"},
		"a user that is not a node, which depends on nothing": {person, everything, "NotANode"},
	} {
		t.Run(name, func(t *testing.T) {
			d, counted := agingDecider(t, stubAges(tc.old), nobody{})
			answer := d.admit(t.Context(), tc.req)
			if string(answer.Code) != tc.want {
				t.Fatalf("got %+v, want %s", answer, tc.want)
			}
			if tooOld := answer.Code == decision.StateTooOld; tooOld != (*counted == 1) || tooOld && (answer.Decision != verdict.Deny || answer.Status != 500 || answer.Err == nil) {
				t.Errorf("got %+v, counted %d", answer, *counted)
			}
		})
	}
}

func TestStateAge(t *testing.T) {
	old := func(resources ...schema.GroupResource) error {
		e := &source.AgeError{MaxStaleness: 2 * time.Minute}
		for _, r := range resources {
			e.Resources = append(e.Resources, source.Watched{Resource: r, Age: 3 * time.Minute, Err: errors.New("list: Unauthorized")})
		}
		return e
	}
	pods, gpus := schema.GroupResource{Resource: "pods"}, schema.GroupResource{Group: "resource.k8s.io", Resource: "resourceslices"}
	for name, tc := range map[string]struct {
		err        error
		note, want string
	}{
		"young": {nil, "", ""},
		"what stands alone": {
			old(gpus), "older than 2m0s, so that questions about these have no answer: resourceslices.resource.k8s.io (3m0s old: list: Unauthorized)", "",
		},
		"what others depend on": {
			old(gpus, pods), "",
			"older than cluster.maxStaleness, 2m0s, so that what depends on it is an error: pods (3m0s old: list: Unauthorized), resourceslices.resource.k8s.io (3m0s old: list: Unauthorized)",
		},
	} {
		note, err := stateAge(tc.err)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if note != tc.note || got != tc.want {
			t.Errorf("%s: got %q, %q", name, note, got)
		}
	}
}

// A whole server, whose API server goes away for longer than the state may be
// old, and comes back.
func TestAnOutageThatLastsTooLong(t *testing.T) {
	t.Parallel()
	api := shop(t)
	s := newTestServer(t, api, func(c *v1alpha1.ServerConfiguration) {
		withoutWaits(c)
		c.Cluster.MaxStaleness = seconds(2)
	})
	s.ready()
	api.stop()
	eventually(t, "an error instead of the allow", func() bool {
		got := s.askNode("a", "get", "secrets", "db")
		return !got.Allowed && !got.Denied && strings.Contains(got.EvaluationError, "the state of the cluster is older than 2s: ")
	})
	if got := s.askNode("a", "get", "nodes", "a"); got.EvaluationError != "" {
		t.Errorf("what depends on no state: %+v", got)
	}
	if got := s.ask("ann", nil, "get", "secrets", "db"); got.Allowed || got.EvaluationError != "" {
		t.Errorf("a user that is not a node: %+v", got)
	}
	// Kinds get too old one after the other, and a token depends on others than a secret.
	eventually(t, "an error instead of a token", func() bool {
		got := s.token("a", "web", "uid-web", "")
		return !got.Allowed && got.Result.Code == 500
	})
	eventually(t, "all is too old", func() bool {
		status, body := s.readiness()
		return status == 503 && strings.Contains(body, "[-]state-age failed: ") && strings.Contains(body, "pods (")
	})
	eventually(t, "the log says so", func() bool {
		return strings.Contains(s.log.String(), "the state of a resource is too old")
	})
	for _, name := range []string{`node_authorizer_stale_answers_total{endpoint="authorize"}`, `node_authorizer_stale_answers_total{endpoint="admit"}`} {
		if got := s.metric(name); got == "" || got == "0" {
			t.Errorf("%s is %q", name, got)
		}
	}
	if got := s.metric(`node_authorizer_watch_stale{resource="pods"}`); got != "1" {
		t.Errorf("pods are not stale: %q", got)
	}
	api.start()
	eventually(t, "the answer comes back", func() bool { return s.askNode("a", "get", "secrets", "db").Allowed })
	s.ready()
	eventually(t, "the log says that too", func() bool {
		return strings.Contains(s.log.String(), "the state of a resource is young enough again")
	})
}

// The check of ages takes no memory from an allow.
func TestAllowTakesNoMoreMemory(t *testing.T) {
	d, _ := agingDecider(t, stubAges(0), nobody{})
	user, groups := nodeidentity.User("a")
	req := &access.Request{User: user, Groups: groups, ResourceRequest: true, Verb: "get", Resource: "secrets", Namespace: "shop", Name: "db"}
	if n := testing.AllocsPerRun(1000, func() {
		if opinion, err := d.AuthorizeNode(t.Context(), req); err != nil || opinion.Decision != verdict.Allow {
			t.Fatal(opinion, err)
		}
	}); n > 1 { // the reason

		t.Errorf("%v allocations", n)
	}
}

// agingMeanwhile get too old while a question is asked.
type agingMeanwhile struct {
	source.Kinds
	old *bool
}

func (a agingMeanwhile) Fresh() bool { return !*a.old }

func (a agingMeanwhile) TooOld(on source.Kinds) error {
	if !*a.old {
		return nil
	}
	return stubAges(a.Kinds).TooOld(on)
}

// everybody lets nodes request everything, and takes its time.
type everybody struct{ meanwhile func() }

func (e everybody) Authorize(context.Context, *access.Request) (bool, string, error) {
	e.meanwhile()
	return true, "", nil
}

// What was found in the state may be too old, or dropped, when the API server has
// answered what only it knows.
func TestAWriteIsNotAllowedByStateThatBecomesTooOldMeanwhile(t *testing.T) {
	user, groups := nodeidentity.User("a")
	for name, tc := range map[string]struct {
		old  source.Kinds
		want verdict.Code
	}{
		"the pod is too old":         {source.Pods, decision.StateTooOld},
		"another kind is too old":    {source.Nodes, noderestriction.RestrictionsMet},
		"nothing becomes too old":    {0, noderestriction.RestrictionsMet},
		"all was dropped and is new": {^source.Kinds(0), decision.StateTooOld},
	} {
		t.Run(name, func(t *testing.T) {
			old := false
			d, counted := agingDecider(t, agingMeanwhile{tc.old, &old}, everybody{func() { old = tc.old != 0 }})
			answer := d.admit(t.Context(), &noderestriction.Request{
				User: user, Groups: groups, Operation: noderestriction.Create, Resource: "serviceaccounts", Subresource: "token", Namespace: "shop", Name: "default",
				Object: tokenRequest("bank"),
			})
			if answer.Code != tc.want || (answer.Decision == verdict.Allow) != (tc.want == noderestriction.RestrictionsMet) || (*counted == 1) == (answer.Decision == verdict.Allow) {
				t.Errorf("got %+v, counted %d", answer, *counted)
			}
		})
	}
}
