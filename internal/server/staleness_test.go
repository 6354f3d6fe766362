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
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// stubAges reports fixed kinds as too old.
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
{"kind": "Pod", "apiVersion": "v1", "metadata": {"namespace": "shop", "name": "web", "uid": "uid-web"},
  "spec": {"nodeName": "a", "serviceAccountName": "default", "volumes": [
    {"name": "s", "secret": {"secretName": "db"}}, {"name": "d", "persistentVolumeClaim": {"claimName": "data"}},
    {"name": "x", "csi": {"driver": "vault"}},
    {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}]}}
{"kind": "PersistentVolumeClaim", "apiVersion": "v1", "metadata": {"namespace": "shop", "name": "data"}, "spec": {"volumeName": "pv"}}
{"kind": "PersistentVolume", "apiVersion": "v1", "metadata": {"name": "pv"}, "spec": {"claimRef": {"namespace": "shop", "name": "data"}}}
{"kind": "CSIDriver", "apiVersion": "storage.k8s.io/v1", "metadata": {"name": "vault"},
  "spec": {"tokenRequests": [{"audience": "vault"}]}}
{"kind": "VolumeAttachment", "apiVersion": "storage.k8s.io/v1", "metadata": {"name": "va"}, "spec": {"nodeName": "a"}}
{"kind": "ResourceSlice", "apiVersion": "resource.k8s.io/v1", "metadata": {"name": "gpu"}, "spec": {"nodeName": "a"}}
{"kind": "ResourceSlice", "apiVersion": "resource.k8s.io/v1", "metadata": {"name": "other"}, "spec": {"nodeName": "b"}}
{"kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "r"},
  "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]}
{"kind": "ClusterRoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "b"},
  "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
  "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "ann"}]}
`

// agingDecider returns a decider about agingCluster with ages.
func agingDecider(t *testing.T, ages evaluate.Ages, access noderestriction.Authorizer) (*decider, *int) {
	t.Helper()
	state, err := source.LoadFiles(t.Context(), []string{"-"}, source.FileOptions{Stdin: strings.NewReader(agingCluster)})
	if err != nil {
		t.Fatal(err)
	}
	evaluator, err := evaluate.New(t.Context(), state, evaluate.Options{
		Features: kubeversion.For(kubeversion.Latest), Ages: ages, Access: access,
	})
	if err != nil {
		t.Fatal(err)
	}
	counted := new(int)
	return &decider{Evaluator: evaluator, tooOld: func(string) { *counted++ }}, counted
}

// denyAll allows no node any request.
type denyAll struct{}

func (denyAll) Authorize(context.Context, *access.Request) (bool, string, error) {
	return false, "", nil
}

// tokenRequest returns a request for a token of the pod web.
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

// An answer is an error if one of the kinds that it depends on is too old.
func TestAnswersThatDependOnOldStateAreErrors(t *testing.T) {
	all := map[string]source.Kinds{
		"pods": source.Pods, "nodes": source.Nodes, "volumes": source.PersistentVolumes,
		"claims": source.PersistentVolumeClaims, "accounts": source.ServiceAccounts, "drivers": source.CSIDrivers,
		"attachments": attachments, "slices": slicesKind, "rbac": source.RBACKinds(),
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
			d, counted := agingDecider(t, stubAges(kinds), denyAll{})
			opinion, err := d.authorize(d.AuthorizeNode)(t.Context(), req)
			if strings.Contains(" "+tc.dependsOn+" ", " "+name+" ") {
				tooOld := opinion.Code == decision.StateTooOld && !opinion.Stale
				if err == nil || opinion.Decision != verdict.NoOpinion || !tooOld || *counted != 1 {
					t.Errorf("%s, when %s are too old: %+v, %v, counted %d", question, name, opinion, err, *counted)
				}
			} else if err != nil || opinion.Decision != tc.decision || *counted != 0 {
				t.Errorf("%s, when %s are too old: %+v, %v, counted %d; want %v",
					question, name, opinion, err, *counted, tc.decision)
			}
		}
	}
}

// In a chain, an authorizer whose state is too old has no opinion. The others are asked, and one that
// has the state that it needs decides.
func TestAChainWithOldState(t *testing.T) {
	node, nodeGroups := nodeidentity.User("a")
	for name, tc := range map[string]struct {
		user   string
		groups []string
		secret string
		old    source.Kinds
		want   string
	}{
		"nothing is old":                          {node, nodeGroups, "db", 0, "Allow by Node"},
		"the relation is old":                     {node, nodeGroups, "db", source.Pods, "error"},
		"the relation is old, and another allows": {"ann", nil, "db", source.Pods, "Allow by RBAC"},
		"the missing relation is old":             {node, nodeGroups, "unrelated", source.Pods, "error"},
		"the relation is known, and RBAC is old":  {node, nodeGroups, "db", source.RBACKinds(), "Allow by Node"},
		"there is no relation, and RBAC is old":   {node, nodeGroups, "unrelated", source.RBACKinds(), "error"},
		"RBAC allows, and is old":                 {"ann", nil, "db", source.RBACKinds(), "error"},
		"RBAC refuses, and is old":                {"bob", nil, "db", source.RBACKinds(), "error"},
		"RBAC refuses":                            {"bob", nil, "db", source.Pods, "NoOpinion by "},
		"masters need no state":                   {"root", []string{"system:masters"}, "db", ^source.Kinds(0), "Allow by system:masters"},
		"a node that is also in system:masters": {
			node, append([]string{"system:masters"}, nodeGroups...), "db", source.Pods, "Allow by system:masters",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, counted := agingDecider(t, stubAges(tc.old), denyAll{})
			opinion, err := d.authorize(d.Authorize)(t.Context(), &access.Request{
				User: tc.user, Groups: tc.groups, ResourceRequest: true,
				Verb: "get", Resource: "secrets", Namespace: "shop", Name: tc.secret,
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

// If a relation is too old, an authorizer further on in the chain may allow.
func TestAChainContinuesWhenARelationIsOld(t *testing.T) {
	d, _ := agingDecider(t, stubAges(source.Pods), denyAll{})
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
	request := func(op noderestriction.Operation, resource, namespace, name string) *noderestriction.Request {
		return &noderestriction.Request{
			User: user, Groups: groups, Operation: op, Resource: resource, Namespace: namespace, Name: name,
		}
	}
	token := func(audience string) *noderestriction.Request {
		r := request(noderestriction.Create, "serviceaccounts", "shop", "default")
		r.Subresource, r.Object = "token", tokenRequest(audience)
		return r
	}
	remove := request(noderestriction.Delete, "pods", "shop", "web")
	lease := request(noderestriction.Delete, "leases", "kube-node-lease", "a")
	lease.Group = "coordination.k8s.io"
	other := *lease
	other.Name = "b"
	update := request(noderestriction.Update, "pods", "shop", "web")
	person := request(noderestriction.Delete, "pods", "shop", "web")
	person.User, person.Groups = "ann", nil
	forDriver := source.Pods | source.CSIDrivers | source.PersistentVolumes | source.PersistentVolumeClaims
	everything := ^source.Kinds(0)
	for name, tc := range map[string]struct {
		req  *noderestriction.Request
		old  source.Kinds
		want string
	}{
		"a token of the pod":                                  {token(""), everything &^ source.Pods, "RestrictionsMet"},
		"a token of a pod that is old":                        {token(""), source.Pods, "StateTooOld"},
		"a token for a driver":                                {token("vault"), everything &^ forDriver, "RestrictionsMet"},
		"a token for a driver that is old":                    {token("vault"), source.CSIDrivers, "StateTooOld"},
		"a token for an unknown audience":                     {token("bank"), source.Nodes, "AudienceNotAllowed"},
		"a token for an audience that may be a driver's":      {token("bank"), source.CSIDrivers, "StateTooOld"},
		"a deletion of a pod":                                 {remove, everything &^ source.Pods &^ source.Nodes, "RestrictionsMet"},
		"a deletion of a pod that is old":                     {remove, source.Pods, "StateTooOld"},
		"a lease, which depends on nothing":                   {lease, everything, "RestrictionsMet"},
		"another's lease, which depends on nothing":           {&other, everything, "NotOwnLease"},
		"an update of a pod, which depends on nothing":        {update, everything, "OperationNotAllowed"},
		"a user that is not a node, which depends on nothing": {person, everything, "NotANode"},
	} {
		t.Run(name, func(t *testing.T) {
			d, counted := agingDecider(t, stubAges(tc.old), denyAll{})
			answer := d.admit(t.Context(), tc.req)
			if string(answer.Code) != tc.want {
				t.Fatalf("got %+v, want %s", answer, tc.want)
			}
			tooOld := answer.Code == decision.StateTooOld
			if tooOld && (answer.Decision != verdict.Deny || answer.Status != 500 || answer.Err == nil) ||
				tooOld != (*counted == 1) {
				t.Errorf("got %+v, counted %d", answer, *counted)
			}
		})
	}
}

func TestStateAge(t *testing.T) {
	old := func(resources ...schema.GroupResource) error {
		e := &source.AgeError{MaxStaleness: 2 * time.Minute}
		for _, r := range resources {
			e.Resources = append(e.Resources, source.Watched{
				Resource: r, Age: 3 * time.Minute, Err: errors.New("list: Unauthorized"),
			})
		}
		return e
	}
	pods := schema.GroupResource{Resource: "pods"}
	gpus := schema.GroupResource{Group: "resource.k8s.io", Resource: "resourceslices"}
	const oldGPUs = "resourceslices.resource.k8s.io (3m0s old: list: Unauthorized)"
	for name, tc := range map[string]struct {
		err        error
		note, want string
	}{
		"young": {nil, "", ""},
		"a resource that stands alone": {
			old(gpus), "older than 2m0s, so that questions about these have no answer: " + oldGPUs, "",
		},
		"a resource that other answers depend on": {
			old(gpus, pods), "",
			"older than cluster.maxStaleness, 2m0s, so that what depends on it is an error: " +
				"pods (3m0s old: list: Unauthorized), " + oldGPUs,
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

// The API server of a complete server is down for longer than cluster.maxStaleness, and answers again.
func TestAnOutageThatLastsTooLong(t *testing.T) {
	t.Parallel()
	api := shop(t)
	s := newTestServer(t, api, func(c *v1alpha1.ServerConfiguration) {
		withoutWaits(c)
		c.Cluster.MaxStaleness = seconds(12)
	})
	s.ready()
	api.stop()
	eventually(t, "an error instead of the allow", func() bool {
		got := s.askNode("a", "get", "secrets", "db")
		return !got.Allowed && !got.Denied && strings.Contains(got.EvaluationError, "the state of the cluster is older than 12s: ")
	})
	if got := s.askNode("a", "get", "nodes", "a"); got.EvaluationError != "" {
		t.Errorf("a request that depends on no state: %+v", got)
	}
	if got := s.ask("ann", nil, "get", "secrets", "db"); got.Allowed || got.EvaluationError != "" {
		t.Errorf("a user that is not a node: %+v", got)
	}
	// Kinds become too old one after the other, and a token depends on other kinds than a secret.
	eventually(t, "an error instead of a token", func() bool {
		got := s.token("a", "web", "uid-web", "")
		return !got.Allowed && got.Result.Code == 500
	})
	eventually(t, "all is too old", func() bool {
		status, body := s.readiness()
		return status == 503 && strings.Contains(body, "[-]state-age failed: ") && strings.Contains(body, "pods (")
	})
	eventually(t, "this is logged", func() bool {
		return strings.Contains(s.log.String(), "the state of a resource is too old")
	})
	for _, endpoint := range []string{"authorize", "admit"} {
		name := fmt.Sprintf("node_authorizer_stale_answers_total{endpoint=%q}", endpoint)
		if got := s.metric(name); got == "" || got == "0" {
			t.Errorf("%s is %q", name, got)
		}
	}
	if got := s.metric(`node_authorizer_watch_stale{resource="pods"}`); got != "1" {
		t.Errorf("pods are not stale: %q", got)
	}
	api.start()
	eventually(t, "the secret is allowed again", func() bool { return s.askNode("a", "get", "secrets", "db").Allowed })
	s.ready()
	eventually(t, "this is logged too", func() bool {
		return strings.Contains(s.log.String(), "the state of a resource is current again")
	})
}

// The check of ages does not allocate for an allow.
func TestAllowDoesNotAllocateMore(t *testing.T) {
	d, _ := agingDecider(t, stubAges(0), denyAll{})
	user, groups := nodeidentity.User("a")
	req := &access.Request{
		User: user, Groups: groups, ResourceRequest: true, Verb: "get", Resource: "secrets", Namespace: "shop", Name: "db",
	}
	if n := testing.AllocsPerRun(1000, func() {
		if opinion, err := d.AuthorizeNode(t.Context(), req); err != nil || opinion.Decision != verdict.Allow {
			t.Fatal(opinion, err)
		}
	}); n > 1 { // the reason

		t.Errorf("%v allocations", n)
	}
}

// agingMeanwhile is a set of kinds that become too old during a request.
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

// allowAll allows nodes every request, and calls a function first.
type allowAll struct{ meanwhile func() }

func (e allowAll) Authorize(context.Context, *access.Request) (bool, string, error) {
	e.meanwhile()
	return true, "", nil
}

// The state may become too old, or be dropped, while the API server answers an access review.
func TestAWriteIsNotAllowedByStateThatBecomesTooOld(t *testing.T) {
	user, groups := nodeidentity.User("a")
	for name, tc := range map[string]struct {
		old  source.Kinds
		want verdict.Code
	}{
		"the pod is too old":      {source.Pods, decision.StateTooOld},
		"another kind is too old": {source.Nodes, noderestriction.RestrictionsMet},
		"nothing becomes too old": {0, noderestriction.RestrictionsMet},
		"the state was dropped":   {^source.Kinds(0), decision.StateTooOld},
	} {
		t.Run(name, func(t *testing.T) {
			old := false
			d, counted := agingDecider(t, agingMeanwhile{tc.old, &old}, allowAll{func() { old = tc.old != 0 }})
			answer := d.admit(t.Context(), &noderestriction.Request{
				User: user, Groups: groups, Operation: noderestriction.Create,
				Resource: "serviceaccounts", Subresource: "token", Namespace: "shop", Name: "default",
				Object: tokenRequest("bank"),
			})
			allowed := answer.Decision == verdict.Allow
			if answer.Code != tc.want || allowed != (tc.want == noderestriction.RestrictionsMet) || (*counted == 1) == allowed {
				t.Errorf("got %+v, counted %d", answer, *counted)
			}
		})
	}
}
