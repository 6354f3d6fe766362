package evaluate_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/scope/quarantine"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/nodescope"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// propertyRequests is the number of random requests; the environment variable sets the number for a campaign.
func propertyRequests(t *testing.T) int {
	text := os.Getenv("CONTAINMENT_REQUESTS")
	if text == "" {
		return 20_000
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("CONTAINMENT_REQUESTS: %v", err)
	}
	return n
}

// TestNothingIsAllowedThatWasRefusedBefore: with any NodeScopes and Quarantines, a request is allowed only
// if it is allowed without them, a refusal that is not theirs is the same, and in the mode Observe
// nothing changes.
func TestNothingIsAllowedThatWasRefusedBefore(t *testing.T) {
	const perCluster = 2000
	seed := uint64(time.Now().UnixNano())
	counts := map[string]int{}
	for total, cluster := propertyRequests(t), uint64(0); total > 0; cluster++ {
		p := newProperty(t, seed+cluster)
		for range min(perCluster, total) {
			if message := p.check(t, counts); message != "" {
				t.Fatalf("seed %d: %s", seed+cluster, message)
			}
		}
		total -= perCluster
	}
	t.Logf("seed %d: %v", seed, counts)
	for _, what := range []string{
		"allowed", "refused before too", "refused by a scope", "refused by a quarantine", "observed", "write refused",
	} {
		if counts[what] == 0 {
			t.Errorf("no request is %s", what)
		}
	}
}

// property has one cluster with and without containment.
type property struct {
	*rand.Rand
	without, with, observing *evaluate.Evaluator
}

func newProperty(t *testing.T, seed uint64) *property {
	t.Helper()
	p := &property{Rand: rand.New(rand.NewPCG(seed, 14))}
	state := p.state(t)
	var objects []*v1alpha1.NodeScope
	for i := range p.IntN(5) {
		objects = append(objects, p.scope(i))
	}
	var quarantines []*v1alpha1.Quarantine
	for i := range p.IntN(3) {
		quarantines = append(quarantines, p.quarantine(i))
	}
	p.without = newPropertyEvaluator(t, state, evaluate.Containment{})
	p.with = newPropertyEvaluator(t, state, p.containment(objects, quarantines))
	for _, o := range objects {
		o.Spec.Mode = v1alpha1.Observe
	}
	p.observing = newPropertyEvaluator(t, state, p.containment(objects, nil))
	return p
}

func newPropertyEvaluator(t *testing.T, state *source.State, c evaluate.Containment) *evaluate.Evaluator {
	t.Helper()
	e, err := evaluate.New(t.Context(), state, evaluate.Options{Features: kubeversion.For(kubeversion.Latest), Containment: c})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func (p *property) containment(objects []*v1alpha1.NodeScope, quarantines []*v1alpha1.Quarantine) evaluate.Containment {
	var scopes []*nodescope.Scope
	for _, o := range objects {
		if s, errs := nodescope.Compile(o); len(errs) == 0 {
			scopes = append(scopes, s)
		} else if s := nodescope.Broken(o); s != nil {
			scopes = append(scopes, s)
		}
	}
	policy, _ := nodescope.NewPolicy(scopes)
	pointer := &atomic.Pointer[nodescope.Policy]{}
	pointer.Store(policy)
	set, _ := quarantine.NewSet(quarantines, quarantine.Limit{Nodes: 1 + p.IntN(3)}, time.Now())
	return evaluate.Containment{Scopes: pointer, Quarantines: func() (*quarantine.Set, error) { return set, nil }}
}

// pick returns one of some texts.
func (p *property) pick(of ...string) string { return of[p.IntN(len(of))] }

func (p *property) some(of ...string) []string {
	var some []string
	for range 1 + p.IntN(3) {
		some = append(some, p.pick(of...))
	}
	return some
}

var (
	somePaths     = []string{"/metrics", "/healthz", "/*", "*"}
	someGroups    = []string{"", "coordination.k8s.io", "cilium.io", "*"}
	someResources = []string{
		"pods", "pods/exec", "pods/status", "nodes", "nodes/status", "secrets", "configmaps", "leases", "ciliumnodes",
		"serviceaccounts/token", "*", "*/status", "persistentvolumeclaims",
	}
	someVerbs = []string{
		"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "*", "impersonate",
		"impersonate:associated-node", "impersonate-on:associated-node:get",
	}
	someNames      = []string{"a", "b", "c", "web-a", "web-b", "db-a", "db-b", "", "other"}
	someNamespaces = []string{"shop", "kube-system", "kube-node-lease", ""}
	someAccounts   = []string{"agent", "cni", "web"}
)

// state has a pod with a secret on each of three nodes, and random roles for accounts and nodes.
func (p *property) state(t *testing.T) *source.State {
	t.Helper()
	var lines []string
	for _, node := range []string{"a", "b", "c"} {
		lines = append(lines, fmt.Sprintf(`{"kind": "Pod", "apiVersion": "v1", "metadata": {"namespace": "shop", "name": "web-%s", `+
			`"uid": "uid-%[1]s"}, "spec": {"nodeName": "%[1]s", "serviceAccountName": "web", "volumes": [{"name": "s", "secret": `+
			`{"secretName": "db-%[1]s"}}]}}`, node))
	}
	roles := 1 + p.IntN(4)
	for i := range roles {
		lines = append(lines, fmt.Sprintf(`{"kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1", `+
			`"metadata": {"name": "r%d"}, "rules": [{"apiGroups": [%s], "resources": [%s], "verbs": [%s]}, `+
			`{"nonResourceURLs": [%s], "verbs": ["get"]}]}`, i, quoted(p.some(someGroups...)), quoted(p.some(someResources...)),
			quoted(p.some(someVerbs...)), quoted(p.some(somePaths...))))
		subject := fmt.Sprintf(`{"kind": "ServiceAccount", "namespace": "kube-system", "name": %q}`, p.pick(someAccounts...))
		if p.IntN(3) == 0 {
			subject = `{"kind": "Group", "name": "` + p.pick("system:nodes", "system:authenticated") + `"}`
		}
		lines = append(lines, fmt.Sprintf(`{"kind": "ClusterRoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1", `+
			`"metadata": {"name": "b%d"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r%[1]d"}, `+
			`"subjects": [%s]}`, i, subject))
	}
	head := fmt.Sprintf(`{"apiVersion": "snapshot.node-authorizer.io/v1alpha1", "kind": "Snapshot", "kubernetesVersion": "v1.37.1", `+
		`"cluster": true, "rbacReadable": true, "missing": [], `+
		`"objects": {"ClusterRole": %d, "ClusterRoleBinding": %[1]d, "Pod": 3}}`, roles)
	text := head + "\n" + strings.Join(lines, "\n") + "\n"
	state, err := source.LoadFiles(t.Context(), []string{"-"}, source.FileOptions{Stdin: strings.NewReader(text)})
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func quoted(texts []string) string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = strconv.Quote(text)
	}
	return strings.Join(out, ", ")
}

func (p *property) effect() v1alpha1.Effect {
	return v1alpha1.Effect(p.pick("", string(v1alpha1.Allow), string(v1alpha1.Deny)))
}

// scope returns a random scope, which may be broken.
func (p *property) scope(i int) *v1alpha1.NodeScope {
	s := &v1alpha1.NodeScope{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("s", i)}}
	s.Spec.Mode = v1alpha1.Mode(p.pick(string(v1alpha1.Observe), string(v1alpha1.Enforce), string(v1alpha1.Enforce)))
	s.Spec.Subjects = []v1alpha1.Subject{{Namespace: "kube-system", Name: p.pick(append(someAccounts, "")...)}}
	if p.IntN(20) == 0 {
		s.Spec.Subjects = append(s.Spec.Subjects, v1alpha1.Subject{})
	}
	s.Spec.AsNode, s.Spec.TokensWithoutNode, s.Spec.Otherwise = p.IntN(2) == 0, p.effect(), p.effect()
	groups, resources, verbs := p.some(someGroups...), p.some(someResources...), p.some(someVerbs...)
	if p.IntN(2) == 0 {
		s.Spec.NamedAsNode = []v1alpha1.NamedRule{{APIGroups: groups, Resources: resources, Verbs: verbs}}
	}
	if p.IntN(2) == 0 {
		s.Spec.SelectsNode = []v1alpha1.SelectedRule{
			{APIGroups: groups, Resources: resources, Verbs: p.some("list", "watch"), Field: "spec.nodeName"},
		}
	}
	if p.IntN(2) == 0 {
		s.Spec.PodsOnNode = []v1alpha1.PodRule{{Resources: p.some("pods", "pods/*", "pods/exec"), Verbs: verbs}}
	}
	if p.IntN(2) == 0 {
		s.Spec.PodsOnNode = append(s.Spec.PodsOnNode, v1alpha1.PodRule{
			APIGroups: p.some("", "coordination.k8s.io", "cilium.io"), Verbs: verbs,
			Resources: p.some("pods", "pods/*", "secrets", "leases", "ciliumnodes", "ciliumnodes/status", "serviceaccounts/token"),
		})
	}
	if p.IntN(2) == 0 {
		s.Spec.Anywhere = []v1alpha1.AnywhereRule{
			{APIGroups: groups, Resources: resources, Verbs: verbs}, {NonResourceURLs: p.some(somePaths...), Verbs: verbs},
		}
	}
	return s
}

func (p *property) quarantine(i int) *v1alpha1.Quarantine {
	q := &v1alpha1.Quarantine{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("q", i)}}
	if q.Spec.Node = p.pick("a", "b", "c"); p.IntN(4) == 0 {
		q.Spec.Node, q.Spec.Credential = "", "JTI=1"
	}
	if p.IntN(2) == 0 {
		q.Spec.Allow = []v1alpha1.QuarantineRule{
			{APIGroups: p.some(someGroups...), Resources: p.some(someResources...), Verbs: p.some(someVerbs...)},
		}
	}
	return q
}

// request returns a random request, of an account with or without a node, a node or a person.
func (p *property) request() *access.Request {
	req := &access.Request{Verb: p.pick(someVerbs...), ResourceRequest: p.IntN(10) > 0}
	switch p.IntN(8) {
	case 0:
		req.User, req.Groups = nodeidentity.User(p.pick("a", "b", "c"))
	case 1:
		req.User, req.Groups = "ann", []string{"system:authenticated"}
	default:
		req.User, req.Groups = nodeidentity.ServiceAccountUser("kube-system", p.pick(someAccounts...)), []string{"system:authenticated"}
	}
	req.Extra = p.extra()
	if !req.ResourceRequest {
		req.Path = p.pick("/metrics", "/healthz", "/x")
		return req
	}
	resource, subresource, _ := strings.Cut(p.pick(someResources...), "/")
	req.Group, req.Resource, req.Subresource = p.pick(someGroups...), resource, subresource
	req.Namespace, req.Name = p.pick(someNamespaces...), p.pick(someNames...)
	if p.IntN(4) == 0 {
		req.FieldSelector = fields.Requirements{{Field: "spec.nodeName", Operator: selection.Equals, Value: p.pick("a", "b")}}
	}
	return req
}

func (p *property) extra() map[string][]string {
	extra := map[string][]string{}
	switch p.IntN(8) {
	case 0:
	case 1:
		extra[nodeidentity.ExtraNode] = []string{"a", "b"}
	case 2:
		extra[nodeidentity.ExtraAssociatedNodeKeys] = []string{nodeidentity.ExtraNode}
	default:
		extra[nodeidentity.ExtraNode] = []string{p.pick("a", "b", "c")}
	}
	if p.IntN(4) == 0 {
		extra[nodeidentity.ExtraCredential] = []string{p.pick("JTI=1", "JTI=2")}
	}
	return extra
}

// check puts one request to all evaluators, and returns an error if they disagree.
func (p *property) check(t *testing.T, counts map[string]int) string {
	req := p.request()
	before, _ := p.without.Authorize(t.Context(), req)
	after, _ := p.with.Authorize(t.Context(), req)
	observed, _ := p.observing.Authorize(t.Context(), req)
	switch {
	case after.Decision == verdict.Allow && before.Decision != verdict.Allow:
		return fmt.Sprintf("%+v is allowed: %+v", req, after)
	case observed.Decision != before.Decision || observed.Reason != before.Reason || observed.Code != before.Code:
		return fmt.Sprintf("%+v is observed, and gets %+v instead of %+v", req, observed, before)
	}
	contained := after.Authorizer == "NodeScope" || after.Authorizer == "Quarantine"
	if contained != (after.Decision == verdict.Deny) || !contained && (after.Decision != before.Decision || after.Reason != before.Reason) {
		return fmt.Sprintf("%+v gets %+v instead of %+v", req, after, before)
	}
	switch {
	case after.Authorizer == "NodeScope":
		counts["refused by a scope"]++
	case contained:
		counts["refused by a quarantine"]++
	case after.Decision == verdict.Allow:
		counts["allowed"]++
	default:
		counts["refused before too"]++
	}
	if observed.Scope != nil {
		counts["observed"]++
	}
	return p.checkWrite(t, req, counts)
}

func (p *property) checkWrite(t *testing.T, req *access.Request, counts map[string]int) string {
	write := &noderestriction.Request{
		User: req.User, Groups: req.Groups, Extra: req.Extra, Group: req.Group, Resource: req.Resource, Subresource: req.Subresource,
		Namespace: req.Namespace, Name: req.Name,
		Operation: noderestriction.Operation(p.pick("CREATE", "UPDATE", "DELETE", "CONNECT")),
	}
	before, after := p.without.Admit(t.Context(), write), p.with.Admit(t.Context(), write)
	observed := p.observing.Admit(t.Context(), write)
	switch {
	case after.Decision == verdict.Allow && before.Decision != verdict.Allow:
		return fmt.Sprintf("the write %+v is allowed: %+v", write, after)
	case observed.Decision != before.Decision || observed.Code != before.Code || observed.Reason.Message != before.Reason.Message:
		return fmt.Sprintf("the write %+v is observed, and gets %+v instead of %+v", write, observed.Answer, before.Answer)
	case after.Decision != before.Decision:
		counts["write refused"]++
	}
	return ""
}
