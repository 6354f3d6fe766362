package query

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/resources"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// wholeSession reads the whole cluster, and partsSession the parts that answers depend on.
func (c *partsCluster) wholeSession() *command.Session {
	c.t.Helper()
	state, err := source.List(c.t.Context(), c.server.Config(), source.LiveOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return c.session(state)
}

func (c *partsCluster) partsSession() *command.Session {
	c.t.Helper()
	return c.partsSessionOver(c.server.Config())
}

func (c *partsCluster) partsSessionOver(config *rest.Config) *command.Session {
	c.t.Helper()
	state, err := source.Open(c.t.Context(), config, source.LiveOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return c.session(state)
}

func (c *partsCluster) session(state *source.State) *command.Session {
	c.t.Helper()
	flags := &command.StateFlags{App: &command.App{}, Namespace: command.DefaultNamespace}
	s, err := flags.NewSession(c.t.Context(), state, nil)
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
func answered(t *testing.T, s *command.Session, q partsQuestion) (result, answer string) {
	t.Helper()
	s.Namespace = q.namespace
	asked, err := s.Question(&command.App{Streams: command.Streams{ErrOut: new(strings.Builder)}}, q.args, &q.flags, "")
	if err != nil {
		t.Fatal(err)
	}
	who, err := s.Identity(&q.who)
	if err != nil {
		return "error: " + err.Error(), "error"
	}
	written := command.WrittenObjects{}
	if q.object != "" {
		written.Object = &command.ObjectText{File: "object", Text: []byte(q.object)}
	}
	said, err := decide(t.Context(), s, who, asked, written)
	if err != nil {
		return "error: " + err.Error(), "error"
	}
	explained := said.explained()
	if explained.Reason.Remedy, err = remedy(t.Context(), s, said); err != nil {
		t.Fatal(err)
	}
	return text(t, explained) + "\nstatus " + strconv.Itoa(said.status()), said.Answer
}

// sameCount hides how many nodes a cluster has, and which is meant: nodes without a Node object
// count only if the whole cluster is read.
func sameCount(text string) string {
	return regexp.MustCompile(` \([\d,]+ nodes?\).*|: there are no nodes in .*|no nodes to ask about in .*`).ReplaceAllString(text, "")
}

// clusters returns how many random clusters a test tries. PARTS_CLUSTERS is another number.
func clusters(t *testing.T, usual int) int {
	t.Helper()
	text := os.Getenv("PARTS_CLUSTERS")
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("PARTS_CLUSTERS: %v", err)
	}
	return n
}

// TestPartsAnswerAsTheWhole puts random questions to random clusters, of which the user may list
// everything or not all kinds: reading parts gives each decision, reason, path and missing kind
// that reading everything gives.
func TestPartsAnswerAsTheWhole(t *testing.T) {
	counts, tried := map[string]int{}, clusters(t, 50)
	for seed := range tried {
		c := newPartsCluster(t, uint64(seed))
		refused := c.refuse()
		whole := c.wholeSession()
		for range 30 {
			q := c.question()
			want, answer := answered(t, whole, q)
			got, _ := answered(t, c.partsSession(), q)
			counts[answer]++
			if q.object != "" {
				counts["token: "+answer]++
			}
			if answer == command.Yes && strings.Contains(want, string(chain.CodeBindingAllows)) {
				counts["role: "+answer]++
			}
			if sameCount(got) != sameCount(want) {
				t.Fatalf("cluster %d without %v: %s\nby parts: %s\nwhole: %s", seed, refused, q, got, want)
			}
		}
	}
	wanted := []string{
		command.Yes, command.No, command.Unknown, "error", "role: " + command.Yes, "token: " + command.Yes, "token: " + command.No,
	}
	for _, answer := range wanted {
		if least := tried / 3; counts[answer] < least && !strings.HasPrefix(answer, "token") || counts[answer] == 0 {
			t.Errorf("only %d answers are %q: %v", counts[answer], answer, counts)
		}
	}
}

// TestReachOfPartsIsThatOfTheWhole does the same for reach, with filters.
func TestReachOfPartsIsThatOfTheWhole(t *testing.T) {
	objects, tried := 0, clusters(t, 50)
	for seed := range tried {
		c := newPartsCluster(t, uint64(seed))
		refused := c.refuse()
		whole := c.wholeSession()
		for _, node := range []string{"n0", "n1", "bare", "none"} {
			only := command.Filter{Namespace: c.pick("", "", "shop")}
			if c.chance(3) {
				only.Resources = []resources.Resource{{Name: "secrets"}}
			}
			want, n := reachText(t, whole, node, only)
			got, _ := reachText(t, c.partsSession(), node, only)
			objects += n
			if sameCount(got) != sameCount(want) {
				t.Fatalf("cluster %d without %v: %s, %+v\nby parts: %s\nwhole: %s", seed, refused, node, only, got, want)
			}
		}
	}
	if objects < 4*tried {
		t.Errorf("only %d objects are within reach", objects)
	}
}

func reachText(t *testing.T, s *command.Session, node string, only command.Filter) (result string, objects int) {
	t.Helper()
	if err := s.RequireNode(node, ""); err != nil {
		return "error: " + err.Error(), 0
	}
	reached, err := Reach(s, node, only)
	if err != nil {
		t.Fatal(err)
	}
	return text(t, reached), len(reached.Objects)
}

// A user who may list pods of one namespace gets the answers that depend on no other.
func TestPodsOfOneNamespaceAreEnough(t *testing.T) {
	c := exampleCluster(t)
	c.forbid(func(resource, namespace string) bool { return resource == "pods" && namespace != "shop" })
	for ask, want := range map[string]string{
		"get secrets/db": command.Yes, "get secrets/ceph": command.Yes, "get configmaps/none": command.No, "get secrets/none": command.No,
		"get secrets/far": command.Unknown,
	} {
		q := partsQuestion{args: strings.Fields(ask), who: command.IdentityFlags{Node: "n0"}, namespace: "shop"}
		said, answer := answered(t, c.partsSession(), q)
		if answer != want || (want == command.Unknown) != strings.Contains(said, `"resource": "pods"`) {
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
		q, err := s.Question(&command.App{}, strings.Fields(ask), &command.QuestionFlags{}, "")
		if err != nil {
			t.Fatal(err)
		}
		_, err = decide(t.Context(), s, command.NewIdentity(nodeidentity.User("n0")), q, command.WrittenObjects{})
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
		q := partsQuestion{args: strings.Fields(ask), who: command.IdentityFlags{Node: "n0"}, namespace: "shop"}
		want, _ := answered(t, c.wholeSession(), q)
		got, _ := answered(t, c.partsSessionOver(old), q)
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
