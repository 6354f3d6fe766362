package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/internal/resources"
	"github.com/node-authorizer/node-authorizer/internal/source"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// wholeSession reads the whole cluster, and partsSession the parts that answers depend on.
func (c *partsCluster) wholeSession() *session {
	c.t.Helper()
	state, err := source.List(c.t.Context(), c.server.Config(), source.LiveOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return c.session(state)
}

func (c *partsCluster) partsSession() *session {
	c.t.Helper()
	return c.partsSessionOver(c.server.Config())
}

func (c *partsCluster) partsSessionOver(config *rest.Config) *session {
	c.t.Helper()
	state, err := source.Open(c.t.Context(), config, source.LiveOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return c.session(state)
}

func (c *partsCluster) session(state *source.State) *session {
	c.t.Helper()
	flags := &stateFlags{namespace: defaultNamespace}
	s, err := flags.newSession(c.t.Context(), state, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}

// refuse makes some kinds unreadable.
func (c *partsCluster) refuse() map[string]bool {
	kinds := []string{
		"pods", "nodes", "persistentvolumes", "persistentvolumeclaims", "serviceaccounts", "csidrivers", "volumeattachments",
		"resourceslices", "podcertificaterequests", "roles", "rolebindings", "clusterroles", "clusterrolebindings",
	}
	refused := map[string]bool{}
	for c.chance(2) {
		refused[c.pick(kinds...)] = true
	}
	c.forbid(func(resource, _ string) bool { return refused[resource] })
	return refused
}

// answered returns everything that explain shows of a question, and the exit status.
func (s *session) answered(t *testing.T, q partsQuestion) (result, answer string) {
	t.Helper()
	s.namespace = q.namespace
	asked, err := s.question(&app{streams: streams{errOut: new(strings.Builder)}}, q.args, &q.flags, false)
	if err != nil {
		t.Fatal(err)
	}
	who, err := s.identity(&q.who)
	if err != nil {
		return "error: " + err.Error(), "error"
	}
	said, err := s.decide(t.Context(), who, asked, writtenObjects{})
	if err != nil {
		t.Fatal(err)
	}
	explained := said.explained()
	if explained.Reason.Remedy, err = s.remedy(t.Context(), said); err != nil {
		t.Fatal(err)
	}
	return text(t, explained) + "\nstatus " + strconv.Itoa(said.status()), said.Answer
}

// sameCount hides how many nodes a cluster has, and which is meant: nodes without a Node object
// count only if the whole cluster is read.
func sameCount(text string) string {
	return regexp.MustCompile(`, which has \d+.*|names no nodes.*`).ReplaceAllString(text, "")
}

// clusters returns how many random clusters a test tries.
func clusters(t *testing.T, usual int) int {
	t.Helper()
	if n, err := strconv.Atoi(os.Getenv("PARTS_CLUSTERS")); err == nil {
		return n
	}
	return usual
}

// TestPartsAnswerAsTheWhole puts random questions to random clusters, of which the user may list
// everything or not all kinds: reading parts gives each decision, reason, path and missing kind
// that reading everything gives.
func TestPartsAnswerAsTheWhole(t *testing.T) {
	counts := map[string]int{}
	for seed := range clusters(t, 150) {
		c := newPartsCluster(t, uint64(seed))
		refused := c.refuse()
		whole := c.wholeSession()
		for range 30 {
			q := c.question()
			want, answer := whole.answered(t, q)
			got, _ := c.partsSession().answered(t, q)
			counts[answer]++
			if sameCount(got) != sameCount(want) {
				t.Fatalf("cluster %d without %v: %s\nby parts: %s\nwhole: %s", seed, refused, q, got, want)
			}
		}
	}
	for _, answer := range []string{yes, no, unknown, "error"} {
		if counts[answer] < 50 {
			t.Errorf("only %d answers are %q: %v", counts[answer], answer, counts)
		}
	}
}

// TestReachOfPartsIsThatOfTheWhole does the same for reach, with filters.
func TestReachOfPartsIsThatOfTheWhole(t *testing.T) {
	objects := 0
	for seed := range clusters(t, 150) {
		c := newPartsCluster(t, uint64(seed))
		refused := c.refuse()
		whole := c.wholeSession()
		for _, node := range []string{"n0", "n1", "bare", "none"} {
			only := filter{namespace: c.pick("", "", "shop")}
			if c.chance(3) {
				only.resources = []resources.Resource{{Name: "secrets"}}
			}
			want, n := whole.reachText(t, node, only)
			got, _ := c.partsSession().reachText(t, node, only)
			objects += n
			if sameCount(got) != sameCount(want) {
				t.Fatalf("cluster %d without %v: %s, %+v\nby parts: %s\nwhole: %s", seed, refused, node, only, got, want)
			}
		}
	}
	if objects < 1000 {
		t.Errorf("only %d objects are within reach", objects)
	}
}

func (s *session) reachText(t *testing.T, node string, only filter) (result string, objects int) {
	t.Helper()
	if err := s.requireNode(node, ""); err != nil {
		return "error: " + err.Error(), 0
	}
	reached, err := s.reach(node, only)
	if err != nil {
		t.Fatal(err)
	}
	return text(t, reached), len(reached.Objects)
}

// What is asked of the API server for one question. The first request of each is for one role, to
// know whether the cluster uses RBAC.
func TestQuestionsReadWhatTheyDependOn(t *testing.T) {
	const (
		anyRole    = "/apis/rbac.authorization.k8s.io/v1/clusterroles?limit=1"
		node       = "/api/v1/nodes?fieldSelector=metadata.name%3Dn0"
		podsOnNode = "/api/v1/namespaces/shop/pods?fieldSelector=spec.nodeName%3Dn0"
		podsOfShop = "/api/v1/namespaces/shop/pods?limit=500"
		volumes    = "/api/v1/persistentvolumes?limit=500"
	)
	rbac := []string{
		"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings?limit=500", "/apis/rbac.authorization.k8s.io/v1/clusterroles?limit=500",
		"/apis/rbac.authorization.k8s.io/v1/rolebindings?limit=500", "/apis/rbac.authorization.k8s.io/v1/roles?limit=500",
	}
	c := exampleCluster(t)
	for _, test := range []struct {
		rule   string
		ask    string
		as     identityFlags
		answer string
		lists  []string
		refuse string
		rbac   bool
	}{
		{rule: "a secret that a pod names: pods of the node", ask: "get secrets/db", answer: yes, lists: []string{anyRole, node, podsOnNode}},
		{
			rule: "a secret that nothing names: also all volumes, and pods of its namespace", ask: "get secrets/none", answer: no,
			lists: []string{anyRole, node, podsOnNode, podsOfShop, volumes}, rbac: true,
		},
		{
			rule: "a secret of a volume: also all volumes", ask: "get secrets/ceph", answer: yes,
			lists: []string{anyRole, node, podsOnNode, volumes},
		},
		{
			rule: "a secret of a volume of another node: also the pods of its claim's namespace", ask: "get secrets/far", answer: no,
			lists: []string{
				anyRole, node, podsOnNode, podsOfShop, volumes, "/api/v1/namespaces/pay/pods?fieldSelector=spec.nodeName%3Dn0",
				"/api/v1/namespaces/pay/pods?limit=500",
			}, rbac: true,
		},
		{
			rule: "a volume: the volume, and pods of the node in the namespace of its claim", ask: "get persistentvolumes/v0", answer: yes,
			lists: []string{anyRole, node, podsOnNode, "/api/v1/persistentvolumes?fieldSelector=metadata.name%3Dv0"},
		},
		{
			rule: "a config map that nothing names: pods of its namespace, no volumes", ask: "get configmaps/none", answer: no,
			lists: []string{anyRole, node, podsOnNode, podsOfShop}, rbac: true,
		},
		{
			rule: "a pod: the pod", ask: "get pods/api", answer: yes,
			lists: []string{anyRole, node, "/api/v1/namespaces/shop/pods?fieldSelector=metadata.name%3Dapi"},
		},
		{
			rule: "a pod of another node: the pod", ask: "get pods/far", answer: no, rbac: true,
			lists: []string{anyRole, node, "/api/v1/namespaces/shop/pods?fieldSelector=metadata.name%3Dfar"},
		},
		{rule: "what every node may: nothing", ask: "get services/x", answer: yes, lists: []string{anyRole, node}},
		{rule: "what no node may: roles", ask: "get deployments.apps/x", answer: no, lists: []string{anyRole, node}, rbac: true},
		{rule: "a user: roles", ask: "get secrets/db", as: identityFlags{user: "ada"}, answer: no, lists: []string{anyRole}, rbac: true},
		{
			rule: "a token: the pods that use the account", ask: "create serviceaccounts/default token", answer: yes,
			lists: []string{anyRole, node, podsOnNode},
		},
		{
			rule: "a write of a node's own pod: the pod", ask: "delete pods/far", answer: no,
			lists: []string{anyRole, node, "/api/v1/namespaces/shop/pods?fieldSelector=metadata.name%3Dfar"},
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			c.lists()
			q := partsQuestion{args: strings.Fields(test.ask), who: test.as, namespace: "shop"}
			if len(q.args) > 2 {
				q.args, q.flags.subresource = q.args[:2], q.args[2]
			}
			if q.who.user == "" {
				q.who.node = "n0"
			}
			said, answer := c.partsSession().answered(t, q)
			want := test.lists
			if test.rbac {
				want = append(slices.Clone(want), rbac...)
			}
			slices.Sort(want)
			if got := c.lists(); answer != test.answer || !slices.Equal(got, want) {
				t.Errorf("lists\n%s\nwant\n%s\nanswer %s, want %s: %s",
					strings.Join(got, "\n"), strings.Join(want, "\n"), answer, test.answer, said)
			}
		})
	}
}

// exampleCluster has node n0 with a pod that names a secret and a claim, and node n1 with pods in
// two namespaces.
func exampleCluster(t *testing.T) *partsCluster {
	t.Helper()
	c := emptyPartsCluster(t, "v1.37.0")
	for _, name := range []string{"n0", "n1"} {
		c.put("/api/v1/nodes/"+name, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	pod := func(namespace, name, node, claim string) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		pod.Spec.NodeName, pod.Spec.ServiceAccountName = node, "default"
		pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "db"}}
		pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}}}
		c.put("/api/v1/namespaces/"+namespace+"/pods/"+name, pod)
	}
	pod("shop", "api", "n0", "c0")
	pod("shop", "far", "n1", "c1")
	pod("pay", "far", "n1", "c1")
	volume := func(name, namespace, claim, secret string) {
		volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
		volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: namespace, Name: claim}
		volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{
			Driver: "csi.example.com", NodeStageSecretRef: &corev1.SecretReference{Namespace: "shop", Name: secret},
		}
		c.put("/api/v1/persistentvolumes/"+name, volume)
	}
	volume("v0", "shop", "c0", "ceph")
	volume("v1", "pay", "c1", "far")
	c.put("/apis/rbac.authorization.k8s.io/v1/clusterroles/r0", &rbacv1.ClusterRole{})
	return c
}

func TestReachReadsOneNode(t *testing.T) {
	c := exampleCluster(t)
	s := c.partsSession()
	reached, err := s.reach("n0", filter{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"/api/v1/namespaces/shop/persistentvolumeclaims?fieldSelector=metadata.name%3Dc0",
		"/api/v1/nodes?limit=1",
		"/api/v1/persistentvolumes?limit=500",
		"/api/v1/pods?fieldSelector=spec.nodeName%3Dn0",
		"/api/v1/serviceaccounts?limit=1",
		"/apis/certificates.k8s.io/v1/podcertificaterequests?fieldSelector=spec.nodeName%3Dn0",
		"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings?limit=500",
		"/apis/rbac.authorization.k8s.io/v1/clusterroles?limit=1",
		"/apis/rbac.authorization.k8s.io/v1/clusterroles?limit=500",
		"/apis/rbac.authorization.k8s.io/v1/rolebindings?limit=500",
		"/apis/rbac.authorization.k8s.io/v1/roles?limit=500",
		"/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.nodeName%3Dn0",
		"/apis/storage.k8s.io/v1/csidrivers?limit=500",
		"/apis/storage.k8s.io/v1/volumeattachments?limit=500",
	}
	if got := c.lists(); !slices.Equal(got, want) {
		t.Errorf("lists\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(reached.Objects) != 6 { // pod, account, two secrets, claim, volume
		t.Errorf("n0 reaches %v", reached.Totals)
	}
}

// A user who may list pods of one namespace gets the answers that depend on no other.
func TestPodsOfOneNamespaceAreEnough(t *testing.T) {
	c := exampleCluster(t)
	c.forbid(func(resource, namespace string) bool { return resource == "pods" && namespace != "shop" })
	for ask, want := range map[string]string{
		"get secrets/db": yes, "get secrets/ceph": yes, "get configmaps/none": no, "get secrets/none": no, "get secrets/far": unknown,
	} {
		q := partsQuestion{args: strings.Fields(ask), who: identityFlags{node: "n0"}, namespace: "shop"}
		said, answer := c.partsSession().answered(t, q)
		if answer != want || (want == unknown) != strings.Contains(said, `"resource": "pods"`) {
			t.Errorf("%s: %s, want %s", ask, said, want)
		}
	}
}

func TestFailureToReadIsNoAnswer(t *testing.T) {
	c := exampleCluster(t)
	for resource, ask := range map[string]string{
		"pods": "get secrets/db", "persistentvolumes": "get secrets/none", "rolebindings": "get deployments.apps/x",
	} {
		s := c.partsSession()
		c.breakLists(resource)
		q, err := s.question(&app{}, strings.Fields(ask), &questionFlags{}, false)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.decide(t.Context(), newIdentity(nodeidentity.User("n0")), q, writtenObjects{})
		if err == nil || !strings.Contains(err.Error(), resource) {
			t.Errorf("%s without %s: %v", ask, resource, err)
		}
		c.breakLists("")
	}
}

// Kinds are read whole from a server that does not support a field selector.
func TestServersWithoutFieldSelectorsAreReadWhole(t *testing.T) {
	c := exampleCluster(t)
	old := c.server.Config()
	old.Wrap(func(next http.RoundTripper) http.RoundTripper { return withoutSelectors{next} })
	for _, ask := range []string{"get secrets/db", "get secrets/far", "get persistentvolumes/v0", "get pods/far", "get configmaps/none"} {
		q := partsQuestion{args: strings.Fields(ask), who: identityFlags{node: "n0"}, namespace: "shop"}
		want, _ := c.wholeSession().answered(t, q)
		got, _ := c.partsSessionOver(old).answered(t, q)
		if got != want {
			t.Errorf("%s\nby parts: %s\nwhole: %s", ask, got, want)
		}
	}
}

// withoutSelectors is the connection to a server that supports no field selector.
type withoutSelectors struct{ http.RoundTripper }

func (w withoutSelectors) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("fieldSelector") == "" {
		return w.RoundTripper.RoundTrip(r)
	}
	recorder := httptest.NewRecorder()
	recorder.Header().Set("Content-Type", "application/json")
	recorder.WriteHeader(http.StatusBadRequest)
	err := json.NewEncoder(recorder).Encode(apierrors.NewBadRequest("field label not supported").Status())
	return recorder.Result(), err
}

// Whoever asks the Node authorizer before the parts are read gets no refusal.
func TestRefusalFromUnreadPartsIsUndecided(t *testing.T) {
	s := exampleCluster(t).partsSession()
	user, groups := nodeidentity.User("n0")
	req := &access.Request{
		User: user, Groups: groups, Verb: "get", Resource: "secrets", Namespace: "shop", Name: "db", ResourceRequest: true,
	}
	if _, err := s.AuthorizeNode(t.Context(), req); err == nil {
		t.Error("the Node authorizer refuses without having read the pods")
	}
	if lacks := s.Lacking(req, nodeauthz.NoPathToObject, true); len(lacks) == 0 {
		t.Error("pods and roles were not read, and nothing lacks")
	}
	if s.State.Complete() || len(s.LackingForNode("n0")) == 0 || len(s.LackingForPaths("n0")) == 0 {
		t.Error("the state counts as complete")
	}
	if _, lacks := s.MissingForKind("n0", graph.Secret); len(lacks) == 0 {
		t.Error("the pods of the node count as read")
	}
}
