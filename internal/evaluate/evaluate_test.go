package evaluate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/chain"
	"github.com/node-authorizer/node-authorizer/internal/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// header begins a snapshot, which says what could not be read of the cluster.
const header = `{"apiVersion": "snapshot.node-authorizer.io/v1alpha1", "kind": "Snapshot", "kubernetesVersion": "v1.37.1", "cluster": true,
 "rbacReadable": true, "missing": [%s], "objects": {"ClusterRole": 1, "ClusterRoleBinding": 1, "Pod": 1}}
`

// objects are the pod web of shop on node a, which uses the secret db.
const objects = `{"kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "r"}, "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]}]}
{"kind": "ClusterRoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "b"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"}, "subjects": [{"kind": "User", "name": "ann"}]}
{"kind": "Pod", "apiVersion": "v1", "metadata": {"namespace": "shop", "name": "web", "uid": "uid-web"}, "spec": {"nodeName": "a", "serviceAccountName": "default", "volumes": [{"name": "s", "secret": {"secretName": "db"}}]}}
`

// without is a cluster of which a resource could not be read.
func without(group, resource string) string {
	return strings.Replace(fmt.Sprintf(header, fmt.Sprintf(`{"group": %q, "resource": %q, "reason": "not allowed"}`, group, resource)), "\n ", " ", 1) + objects
}

func newEvaluator(t *testing.T, text string) *evaluate.Evaluator {
	t.Helper()
	state, err := source.LoadFiles(t.Context(), []string{"-"}, source.FileOptions{Stdin: strings.NewReader(text)})
	if err != nil {
		t.Fatal(err)
	}
	e, err := evaluate.New(t.Context(), state, evaluate.Options{Features: kubeversion.For(kubeversion.Latest)})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// readResources is everything that a state is read from, by group.
var readResources = map[string]string{
	"pods": "", "nodes": "", "serviceaccounts": "", "persistentvolumes": "", "persistentvolumeclaims": "",
	"csidrivers": "storage.k8s.io", "volumeattachments": "storage.k8s.io", "resourceslices": "resource.k8s.io",
	"podcertificaterequests": "certificates.k8s.io",
	"roles":                  "rbac.authorization.k8s.io", "rolebindings": "rbac.authorization.k8s.io",
	"clusterroles": "rbac.authorization.k8s.io", "clusterrolebindings": "rbac.authorization.k8s.io",
}

// The rows are refusals; the columns, which resources could turn them: without one of
// these a refusal is not decided, and without any other it is.
func TestWhatTurnsAnAuthorization(t *testing.T) {
	const rbac = "roles rolebindings clusterroles clusterrolebindings"
	for _, tc := range []struct {
		user, verb, group, resource, subresource, namespace, name string
		node, all                                                 string // what turns the Node authorizer's answer, and that of all
	}{
		{"a", "get", "", "secrets", "", "shop", "other", "pods persistentvolumes", rbac},
		{"a", "get", "", "configmaps", "", "shop", "other", "pods", rbac},
		{"a", "get", "", "pods", "", "shop", "other", "pods", rbac},
		{"a", "get", "", "persistentvolumeclaims", "", "shop", "other", "pods", rbac},
		{"a", "get", "", "persistentvolumes", "", "", "other", "pods persistentvolumes", rbac},
		{"a", "create", "", "serviceaccounts", "token", "shop", "other", "pods", rbac},
		{"a", "get", "storage.k8s.io", "volumeattachments", "", "", "other", "volumeattachments", rbac},
		{"a", "get", "resource.k8s.io", "resourceslices", "", "", "other", "resourceslices", rbac},
		{"a", "get", "resource.k8s.io", "resourceclaims", "", "shop", "other", "pods", rbac},
		{"a", "get", "certificates.k8s.io", "podcertificaterequests", "", "shop", "other", "podcertificaterequests", rbac},
		{"a", "delete", "", "secrets", "", "shop", "db", "", rbac},
		{"a", "get", "", "nodes", "", "", "b", "", rbac},
		{"", "get", "", "secrets", "", "shop", "db", "", rbac},
	} {
		user, groups := nodeidentity.User(tc.user)
		if tc.user == "" {
			user, groups = "ann", nil
		}
		req := &access.Request{
			User: user, Groups: groups, ResourceRequest: true, Verb: tc.verb, Group: tc.group, Resource: tc.resource,
			Subresource: tc.subresource, Namespace: tc.namespace, Name: tc.name,
		}
		for resource, group := range readResources {
			e := newEvaluator(t, without(group, resource))
			opinion, err := e.AuthorizeNode(t.Context(), req)
			checkTurns(t, fmt.Sprintf("node authorizer: %+v without %s", tc, resource), opinion.Decision, err, has(tc.node, resource))
			opinion, err = e.Authorize(t.Context(), req)
			checkTurns(t, fmt.Sprintf("all authorizers: %+v without %s", tc, resource), opinion.Decision, err, has(tc.node+" "+tc.all, resource))
		}
	}
}

func has(list, word string) bool { return strings.Contains(" "+list+" ", " "+word+" ") }

func checkTurns(t *testing.T, what string, decision verdict.Decision, err error, turns bool) {
	t.Helper()
	if _, unread := errors.AsType[*evaluate.UnreadError](err); decision != verdict.NoOpinion || unread != turns || err != nil && !unread {
		t.Errorf("%s: %v, %v; want an error: %v", what, decision, err, turns)
	}
}

// The same for writes.
func TestWhatTurnsAnAdmission(t *testing.T) {
	const rbac = "roles rolebindings clusterroles clusterrolebindings"
	user, groups := nodeidentity.User("a")
	token := func(pod, audience string) *noderestriction.Request {
		return &noderestriction.Request{
			User: user, Groups: groups, Operation: noderestriction.Create, Resource: "serviceaccounts", Subresource: "token", Namespace: "shop", Name: "default",
			Object: &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
				Audiences:      []string{audience},
				BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod, UID: "uid-web"},
			}},
		}
	}
	deletion := func(pod string) *noderestriction.Request {
		return &noderestriction.Request{User: user, Groups: groups, Operation: noderestriction.Delete, Resource: "pods", Namespace: "shop", Name: pod}
	}
	other := deletion("web")
	other.User, other.Groups = nodeidentity.User("b")
	for _, tc := range []struct {
		rule    string
		request *noderestriction.Request
		code    verdict.Code
		turns   string
	}{
		{"a token for an audience that the pod does not use", token("web", "vault"), noderestriction.AudienceNotAllowed, "pods persistentvolumeclaims persistentvolumes csidrivers " + rbac},
		{"a token of a pod that does not exist", token("gone", "vault"), noderestriction.PodNotFound, "pods"},
		{"deletion of a pod that does not exist", deletion("gone"), noderestriction.PodNotFound, "pods"},
		{"deletion of another node's pod", other, noderestriction.PodNotOnNode, "pods"},
		{"another's lease", &noderestriction.Request{
			User: user, Groups: groups, Operation: noderestriction.Delete, Group: "coordination.k8s.io", Resource: "leases", Namespace: "kube-node-lease", Name: "b",
		}, noderestriction.NotOwnLease, ""},
	} {
		for resource, group := range readResources {
			e := newEvaluator(t, without(group, resource))
			a := e.Admit(t.Context(), tc.request)
			if a.Code != tc.code || (len(a.Unread) == 1) != has(tc.turns, resource) || len(a.Lacks) > 0 || a.TooOld != nil {
				t.Errorf("%s, without %s: %s, unread %v, lacks %v", tc.rule, resource, a.Code, a.Unread, a.Lacks)
			}
		}
	}
}

// The one opinion that stands for all.
func TestTheMainOpinion(t *testing.T) {
	masters := chain.Opinion{Authorizer: chain.NameMasters, Reason: verdict.Reason{Code: chain.CodeNotPrivileged}}
	node := chain.Opinion{Authorizer: chain.NameNode, Reason: verdict.Reason{Code: nodeauthz.NoPathToObject}}
	nobody := chain.Opinion{Authorizer: chain.NameNode, Reason: verdict.Reason{Code: nodeauthz.NotANode}}
	rbac := chain.Opinion{Authorizer: chain.NameRBAC, Reason: verdict.Reason{Code: chain.CodeNoBindingAllows}}
	for _, tc := range []struct {
		rule     string
		decided  string
		opinions []chain.Opinion
		want     verdict.Code
	}{
		{"who decided", chain.NameRBAC, []chain.Opinion{masters, node, rbac}, chain.CodeNoBindingAllows},
		{"the Node authorizer for nodes", "", []chain.Opinion{masters, node, rbac}, nodeauthz.NoPathToObject},
		{"the last for others", "", []chain.Opinion{masters, nobody, rbac}, chain.CodeNoBindingAllows},
		{"nobody was asked", "", nil, ""},
	} {
		if got := evaluate.Main(chain.Result{DecidedBy: tc.decided, Opinions: tc.opinions}).Code; got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.rule, got, tc.want)
		}
	}
}

// What NodeRestriction asks about other rights of a node, the authorizers answer.
func TestRightsOfNodesAreAskedOfTheAuthorizers(t *testing.T) {
	user, groups := nodeidentity.User("a")
	token := &noderestriction.Request{
		User: user, Groups: groups, Operation: noderestriction.Create, Resource: "serviceaccounts", Subresource: "token", Namespace: "shop", Name: "default",
		Object: &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			Audiences:      []string{"vault"},
			BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: "web", UID: "uid-web"},
		}},
	}
	const roles = `{"kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "r"}, "rules": [{"apiGroups": [""], "resources": ["vault"], "verbs": ["request-serviceaccounts-token-audience"]}]}
`
	const binding = `{"kind": "ClusterRoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "b"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"}, "subjects": [{"kind": "Group", "name": "system:nodes"}]}
`
	pods := objects[strings.Index(objects, `{"kind": "Pod"`):]
	for _, tc := range []struct {
		rule, state string
		code        verdict.Code
		err         string
	}{
		{"a role allows it", roles + binding + pods, noderestriction.RestrictionsMet, ""},
		{"no role allows it", objects, noderestriction.AudienceNotAllowed, ""},
		{"there are no roles", pods, noderestriction.AuthorizationFailed, "stdin has no roles and bindings"},
		{"a role is lacking", binding + pods, noderestriction.AuthorizationFailed, `the input lacks ClusterRole "r", which ClusterRoleBinding "b" grants`},
	} {
		a := newEvaluator(t, tc.state).Admit(t.Context(), token)
		got := ""
		if a.Err != nil {
			got = a.Err.Error()
		}
		if a.Code != tc.code || !strings.Contains(got, tc.err) || got != "" && tc.err == "" {
			t.Errorf("%s: %s, %q", tc.rule, a.Code, got)
		}
	}
}

// denier denies everything.
type denier struct{}

func (denier) Name() string { return "denier" }

func (denier) Authorize(context.Context, *access.Request, chain.Detail) (chain.Opinion, error) {
	return chain.Opinion{Decision: verdict.Deny}, nil
}

// A denial rests on what those before could not see. A server denies all the same; whoever
// asks what an API server answers learns that it is not known.
func TestADenialAfterWhatCouldNotBeRead(t *testing.T) {
	user, groups := nodeidentity.User("a")
	req := &access.Request{User: user, Groups: groups, ResourceRequest: true, Verb: "get", Resource: "secrets", Namespace: "shop", Name: "other"}
	for resource, unread := range map[string]bool{"clusterroles": true, "pods": true, "persistentvolumes": true, "nodes": false} {
		e := newEvaluator(t, without(readResources[resource], resource))
		e.Chain = append(e.Chain, denier{})
		if opinion, err := e.Authorize(t.Context(), req); opinion.Decision != verdict.Deny || err != nil {
			t.Errorf("a server without %s: %v, %v", resource, opinion.Decision, err)
		}
		opinion, err := e.Review(t.Context(), req)
		if _, is := errors.AsType[*evaluate.UnreadError](err); is != unread || !is && (err != nil || opinion.Decision != verdict.Deny) {
			t.Errorf("a review without %s: %v, %v", resource, opinion.Decision, err)
		}
	}
}
