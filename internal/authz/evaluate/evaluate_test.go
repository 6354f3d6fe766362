package evaluate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// header is the first line of a snapshot. It lists the resources that could not be read.
const header = `{"apiVersion": "snapshot.node-authorizer.io/v1alpha1", "kind": "Snapshot", "kubernetesVersion": "v1.37.1", "cluster": true,
 "rbacReadable": true, "missing": [%s], "objects": {"ClusterRole": 1, "ClusterRoleBinding": 1, "Pod": 1}}
`

// objects are the pod web of namespace shop on node a, which uses the secret db, and RBAC.
const objects = `{"kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "r"}, ` +
	`"rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]}]}` + "\n" +
	`{"kind": "ClusterRoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "b"}, ` +
	roleRef + `"subjects": [{"kind": "User", "name": "ann"}]}` + "\n" +
	`{"kind": "Pod", "apiVersion": "v1", "metadata": {"namespace": "shop", "name": "web", "uid": "uid-web"}, ` +
	`"spec": {"nodeName": "a", "serviceAccountName": "default", "volumes": [{"name": "s", "secret": {"secretName": "db"}}]}}` + "\n"

const roleRef = `"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"}, `

// without is a snapshot of a cluster in which one resource could not be read.
func without(group, resource string) string {
	missing := fmt.Sprintf(`{"group": %q, "resource": %q, "reason": "not allowed"}`, group, resource)
	return strings.Replace(fmt.Sprintf(header, missing), "\n ", " ", 1) + objects
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

// readResources are all resources that a state is read from, with their groups.
var readResources = map[string]string{
	"pods": "", "nodes": "", "serviceaccounts": "", "persistentvolumes": "", "persistentvolumeclaims": "",
	"csidrivers": "storage.k8s.io", "volumeattachments": "storage.k8s.io", "resourceslices": "resource.k8s.io",
	"podcertificaterequests": "certificates.k8s.io",
	"roles":                  "rbac.authorization.k8s.io", "rolebindings": "rbac.authorization.k8s.io",
	"clusterroles": "rbac.authorization.k8s.io", "clusterrolebindings": "rbac.authorization.k8s.io",
}

// Each row is a refusal and the resources that could change it. If one of these could not
// be read, the refusal is undecided; any other unread resource does not matter.
func TestUnreadResourcesThatCouldChangeAnAuthorization(t *testing.T) {
	const rbac = "roles rolebindings clusterroles clusterrolebindings"
	for _, tc := range []struct {
		user, verb, group, resource, subresource, namespace, name string
		node                                                      string // resources that could change the Node authorizer's answer
		all                                                       string // further ones that could change the answer of all authorizers
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
			checkUndecided(t, fmt.Sprintf("node authorizer: %+v without %s", tc, resource), opinion.Decision, err, has(tc.node, resource))
			opinion, err = e.Authorize(t.Context(), req)
			all := has(tc.node+" "+tc.all, resource)
			checkUndecided(t, fmt.Sprintf("all authorizers: %+v without %s", tc, resource), opinion.Decision, err, all)
		}
	}
}

func has(list, word string) bool { return strings.Contains(" "+list+" ", " "+word+" ") }

func checkUndecided(t *testing.T, what string, decision verdict.Decision, err error, undecided bool) {
	t.Helper()
	_, unread := errors.AsType[*evaluate.UnreadError](err)
	if decision != verdict.NoOpinion || unread != undecided || err != nil && !unread {
		t.Errorf("%s: %v, %v; want an error: %v", what, decision, err, undecided)
	}
}

// tokenRequest is node a's request of a token for the audience vault, bound to a pod.
func tokenRequest(pod string) *noderestriction.Request {
	user, groups := nodeidentity.User("a")
	return &noderestriction.Request{
		User: user, Groups: groups, Operation: noderestriction.Create,
		Resource: "serviceaccounts", Subresource: "token", Namespace: "shop", Name: "default",
		Object: &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			Audiences:      []string{"vault"},
			BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod, UID: "uid-web"},
		}},
	}
}

// TestUnreadResourcesThatCouldChangeAnAdmission is the same for writes.
func TestUnreadResourcesThatCouldChangeAnAdmission(t *testing.T) {
	const rbac = "roles rolebindings clusterroles clusterrolebindings"
	user, groups := nodeidentity.User("a")
	deletion := func(pod string) *noderestriction.Request {
		return &noderestriction.Request{
			User: user, Groups: groups, Operation: noderestriction.Delete,
			Resource: "pods", Namespace: "shop", Name: pod,
		}
	}
	other := deletion("web")
	other.User, other.Groups = nodeidentity.User("b")
	for _, tc := range []struct {
		rule    string
		request *noderestriction.Request
		code    verdict.Code
		unread  string // resources that could change the refusal
	}{
		{
			"a token for an audience that the pod does not use", tokenRequest("web"), noderestriction.AudienceNotAllowed,
			"pods persistentvolumeclaims persistentvolumes csidrivers " + rbac,
		},
		{"a token of a pod that does not exist", tokenRequest("gone"), noderestriction.PodNotFound, "pods"},
		{"deletion of a pod that does not exist", deletion("gone"), noderestriction.PodNotFound, "pods"},
		{"deletion of another node's pod", other, noderestriction.PodNotOnNode, "pods"},
		{"the lease of another node", &noderestriction.Request{
			User: user, Groups: groups, Operation: noderestriction.Delete,
			Group: "coordination.k8s.io", Resource: "leases", Namespace: "kube-node-lease", Name: "b",
		}, noderestriction.NotOwnLease, ""},
	} {
		for resource, group := range readResources {
			e := newEvaluator(t, without(group, resource))
			a := e.Admit(t.Context(), tc.request)
			if a.Code != tc.code || (len(a.Unread) == 1) != has(tc.unread, resource) || len(a.Lacks) > 0 || a.TooOld != nil {
				t.Errorf("%s, without %s: %s, unread %v, lacks %v", tc.rule, resource, a.Code, a.Unread, a.Lacks)
			}
		}
	}
}

func TestMainOpinion(t *testing.T) {
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
		{"the authorizer that decided", chain.NameRBAC, []chain.Opinion{masters, node, rbac}, chain.CodeNoBindingAllows},
		{"the Node authorizer for nodes", "", []chain.Opinion{masters, node, rbac}, nodeauthz.NoPathToObject},
		{"the last for others", "", []chain.Opinion{masters, nobody, rbac}, chain.CodeNoBindingAllows},
		{"no authorizer was asked", "", nil, ""},
	} {
		if got := evaluate.Main(chain.Result{DecidedBy: tc.decided, Opinions: tc.opinions}).Code; got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.rule, got, tc.want)
		}
	}
}

// TestAuthorizersAnswerAccessReviews: the authorizers answer the reviews that NodeRestriction asks
// about other rights of a node.
func TestAuthorizersAnswerAccessReviews(t *testing.T) {
	const roles = `{"kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "r"}, ` +
		`"rules": [{"apiGroups": [""], "resources": ["vault"], "verbs": ["request-serviceaccounts-token-audience"]}]}` + "\n"
	const binding = `{"kind": "ClusterRoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "b"}, ` +
		roleRef + `"subjects": [{"kind": "Group", "name": "system:nodes"}]}` + "\n"
	pods := objects[strings.Index(objects, `{"kind": "Pod"`):]
	for _, tc := range []struct {
		rule, state string
		code        verdict.Code
		err         string
	}{
		{"a role allows it", roles + binding + pods, noderestriction.RestrictionsMet, ""},
		{"no role allows it", objects, noderestriction.AudienceNotAllowed, ""},
		{"there are no roles", pods, noderestriction.AuthorizationFailed, "there are no roles and bindings in file stdin"},
		{
			"a role is missing", binding + pods, noderestriction.AuthorizationFailed,
			`the input lacks ClusterRole "r", which ClusterRoleBinding "b" grants`,
		},
	} {
		a := newEvaluator(t, tc.state).Admit(t.Context(), tokenRequest("web"))
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

// An authorizer before the one that denies could have allowed the request, had it read
// everything. Authorize denies all the same; Review reports that the answer is unknown.
func TestDenialAfterUnreadResources(t *testing.T) {
	user, groups := nodeidentity.User("a")
	req := &access.Request{
		User: user, Groups: groups, ResourceRequest: true,
		Verb: "get", Resource: "secrets", Namespace: "shop", Name: "other",
	}
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
