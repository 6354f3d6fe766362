package replay

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/audit/auditlog"
	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
)

func TestRequestCountsOnceForAllItsStages(t *testing.T) {
	watch := func(id, stage string) entry {
		e := getSecret("db").node("worker-2")
		e.verb, e.id, e.stage = "watch", id, stage
		return e
	}
	other := watch("1", "ResponseComplete")
	other.uri += "?resourceVersion=2"
	for name, test := range map[string]struct {
		log  []entry
		want int
	}{
		"one that has ended": {
			[]entry{watch("1", "RequestReceived"), watch("1", "ResponseStarted"), watch("1", "ResponseComplete")}, 1,
		},
		"one that has not ended":      {[]entry{watch("1", "RequestReceived"), watch("1", "ResponseStarted")}, 1},
		"one without its first stage": {[]entry{watch("1", "ResponseComplete")}, 1},
		"one that ended in a panic":   {[]entry{watch("1", "ResponseStarted"), watch("1", "Panic")}, 1},
		"one without a response":      {[]entry{watch("1", "RequestReceived")}, 0},
		"two at once": {
			[]entry{
				watch("1", "ResponseStarted"), watch("2", "ResponseStarted"), watch("1", "ResponseComplete"),
				watch("2", "ResponseComplete"),
			},
			2,
		},
		"one whose last stage is read first": {
			[]entry{watch("1", "ResponseComplete"), watch("1", "RequestReceived"), watch("1", "ResponseStarted")}, 1,
		},
		"two whose last stages are read first": {
			[]entry{watch("1", "ResponseComplete"), watch("2", "Panic"), watch("1", "ResponseStarted"), watch("2", "ResponseStarted")}, 2,
		},
		"two of one id, one after the other": {
			[]entry{
				watch("1", "ResponseStarted"), watch("1", "ResponseComplete"), watch("1", "ResponseStarted"),
				watch("1", "ResponseComplete"),
			},
			2,
		},
		"two of one id, at once": {
			[]entry{
				watch("1", "ResponseStarted"), watch("1", "ResponseStarted"), watch("1", "ResponseComplete"),
				watch("1", "ResponseComplete"),
			},
			2,
		},
		"two of one id, last stages read first": {
			[]entry{
				watch("1", "ResponseComplete"), watch("1", "ResponseComplete"), watch("1", "ResponseStarted"),
				watch("1", "ResponseStarted"),
			},
			2,
		},
		"another one, whose client chose the same id": {[]entry{watch("1", "ResponseStarted"), other}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			report := replayed(t, evaluators(t), logOf(test.log...))
			if report.Totals.Requests != test.want || report.Totals.WouldBeRefused != test.want {
				t.Errorf("got %+v", report.Totals)
			}
		})
	}
}

// mostOpen is a bound for tests.
const mostOpen = 100

// stageLog puts stages of requests, each with its number as key, to stages.
type stageLog struct {
	*stages[int]
	counted []int
}

func newStageLog() *stageLog {
	s := &stageLog{}
	s.stages = newStages(func(key int) { s.counted = append(s.counted, key) }, nil)
	s.most = mostOpen
	return s
}

func (s *stageLog) add(key int, end bool) {
	if end {
		s.end(hashed(fmt.Sprint(key)), key)
		return
	}
	s.start(hashed(fmt.Sprint(key)))
	s.counted = append(s.counted, key)
}

func (s *stageLog) open() int {
	u := s.unmatched()
	return u.Starts + u.Ends - s.forgotStarts - s.forgotEnds
}

func TestOldestStagesAreForgotten(t *testing.T) {
	for _, endFirst := range []bool{false, true} {
		t.Run(fmt.Sprintf("ends first %t", endFirst), func(t *testing.T) {
			s := newStageLog()
			for key := range mostOpen + 1 {
				s.add(key, endFirst)
			}
			s.add(0, !endFirst)
			s.add(mostOpen, !endFirst)
			if s.open() != mostOpen-1 || s.doubtful > 0 {
				t.Errorf("%d of %d requests lack a stage; %d may be counted twice, though nothing was forgotten",
					s.open(), mostOpen-1, s.doubtful)
			}
			s = newStageLog()
			for key := range 2*mostOpen + 2 {
				s.add(key, endFirst)
			}
			if s.open() > 2*mostOpen {
				t.Errorf("%d are remembered", s.open())
			}
			if forgotten := s.forgotStarts + s.forgotEnds; forgotten != mostOpen || endFirst && len(s.counted) != mostOpen {
				t.Errorf("%d are forgotten, and %d counted", forgotten, len(s.counted))
			}
			s.add(1, !endFirst)
			if s.doubtful != 1 {
				t.Errorf("%d requests may be counted twice, want the one that was forgotten", s.doubtful)
			}
			// The same stage again is another request.
			s.add(2*mostOpen, endFirst)
			if s.doubtful != 1 {
				t.Errorf("%d requests may be counted twice", s.doubtful)
			}
		})
	}
}

// Ends that a report lists need more memory than others.
func TestFewerEndsWithDetailsAreKept(t *testing.T) {
	counted := 0
	s := newStages(func(int) { counted++ }, func(int) bool { return true })
	s.mostDetailed = mostOpen
	for key := range 3 * mostOpen {
		s.end(hashed(fmt.Sprint(key)), key)
	}
	if counted != mostOpen {
		t.Errorf("%d were counted", counted)
	}
}

// Short requests have one stage with a response: they are not remembered.
func TestShortRequestsAreNotRemembered(t *testing.T) {
	report := replayed(t, evaluators(t), logOf(getSecret("db").node("worker-2"), getSecret("db").node("worker-2")))
	if report.Totals.Requests != 2 {
		t.Errorf("got %+v", report.Totals)
	}
	c := newCollector(t.Context(), evaluators(t))
	c.merge(&part{outcomes: []outcome{{by: who{standing: Conforming, node: "worker-2"}, last: true, logged: answeredAllowed}}})
	c.stages.eachEnd(func(*outcome) { t.Error("a short request is remembered") })
	if c.totals.Requests != 1 {
		t.Errorf("got %+v", c.totals)
	}
}

func TestReportNamesRequestsThatMayBeCountedTwice(t *testing.T) {
	c := newCollector(t.Context(), evaluators(t))
	c.stages.doubtful = 7
	report := c.report(auditlog.Summary{})
	var b bytes.Buffer
	if err := render.Write(&b, report, render.Options{Format: render.Table}); err != nil {
		t.Fatal(err)
	}
	if report.Totals.MaybeTwice != 7 || !strings.Contains(b.String(), "up to 7, of requests that take long") {
		t.Errorf("got %+v and\n%s", report.Totals, b.String())
	}
}

// Entries have one answer each: a list of pods is allowed with the node's own selector
// and refused without.
func TestRefusalsWithDifferentAnswersAreDifferentEntries(t *testing.T) {
	refused := func(query string, groups ...string) entry {
		e := entry{
			verb: "list", uri: "/api/v1/pods" + query, object: map[string]string{"resource": "pods", "apiVersion": "v1"}, code: 403,
			decision: "forbid",
		}
		return e.by("system:node:worker-1", groups...)
	}
	const own, others = "?fieldSelector=spec.nodeName%3Dworker-1", "?fieldSelector=spec.nodeName%3Dworker-2"
	list := []entry{
		refused(own, "system:nodes"), refused("", "system:nodes"), refused("?fieldSelector=status.phase%3DFailed", "system:nodes"),
		refused(others, "system:nodes"), refused(own, "system:nodes", "system:masters"), refused(own, "system:masters", "system:nodes"),
		refused(own),
	}
	type row struct {
		evaluators, selector, groups string
		code                         string
		count                        int
	}
	want := map[row]bool{
		{"allow", "spec.nodeName=worker-1", "system:authenticated,system:nodes", "", 1}:                       true,
		{"refuse", "", "system:authenticated,system:nodes", "FieldSelectorRequired", 2}:                       true,
		{"refuse", "spec.nodeName=worker-2", "system:authenticated,system:nodes", "FieldSelectorRequired", 1}: true,
		{"allow", "spec.nodeName=worker-1", "system:authenticated,system:masters,system:nodes", "", 2}:        true,
		{"refuse", "", "system:authenticated", "NoBindingAllows", 1}:                                          true,
	}
	for range 5 {
		rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		report := replayed(t, evaluators(t), logOf(list...))
		got := map[row]bool{}
		for _, r := range report.Refused {
			got[row{r.Evaluators, r.FieldSelector, strings.Join(r.Groups, ","), string(r.Code), r.Count}] = true
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got  %v\nwant %v", got, want)
		}
	}
}

// An examined write and one that the log does not hold are different entries.
func TestUnexaminedWritesAreSeparateEntries(t *testing.T) {
	token := func(written string) entry {
		e := entry{
			verb: "create", uri: "/api/v1/namespaces/shop/serviceaccounts/api/token", written: written, code: 403,
			object: map[string]string{
				"resource": "serviceaccounts", "subresource": "token", "namespace": "shop", "name": "api", "apiVersion": "v1",
			},
		}
		return e.node("worker-1")
	}
	const unbound = `{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","spec":{"audiences":[]}}`
	report := replayed(t, evaluators(t), logOf(token(""), token(unbound), token("")))
	got := map[string]int{}
	for _, r := range report.Refused {
		got[r.Evaluators] += r.Count
	}
	if want := map[string]int{"undecided": 2, "refuse": 1}; len(report.Refused) != 2 || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v in %d entries, want %v", got, len(report.Refused), want)
	}
}

func TestAnswerOfAnEvent(t *testing.T) {
	for name, test := range map[string]struct {
		code     int
		decision string
		want     answered
	}{
		"allowed":                                  {200, "allow", answeredAllowed},
		"allowed, and nothing found":               {404, "allow", answeredAllowed},
		"allowed, and failed":                      {500, "allow", answeredAllowed},
		"forbidden":                                {403, "forbid", answeredRefused},
		"allowed, and forbidden by admission":      {403, "allow", answeredRefused},
		"throttled before authorization":           {429, "-", answeredNothing},
		"not decided because of an error":          {500, "-", answeredNothing},
		"not answered":                             {-1, "-", answeredNothing},
		"not authenticated":                        {401, "-", answeredUnknown},
		"allowed, by the status alone":             {201, "-", answeredAllowed},
		"allowed, by a later conflict alone":       {409, "-", answeredAllowed},
		"forbidden, by the status alone":           {403, "-", answeredRefused},
		"allowed, and a backend responds with 401": {401, "allow", answeredAllowed},
	} {
		e := &auditlog.Event{Status: auditlog.Status{Code: max(test.code, 0)}}
		if test.decision != "-" {
			e.Annotations.Decision = test.decision
		}
		if got := answerOf(e); got != test.want {
			t.Errorf("%s: got %d, want %d", name, got, test.want)
		}
	}
}

func TestRefusalsThatDependOnDeletedObjectsAreMarked(t *testing.T) {
	for name, test := range map[string]struct {
		entry  entry
		caveat Caveat
	}{
		"something that pods on another node refer to": {getSecret("db").node("worker-2"), ""},
		"something that nothing refers to":             {getSecret("old").node("worker-2"), ObjectNotInState},
		"a node that was deleted":                      {getSecret("db").node("worker-9"), NodeNotInState},
		"a refusal that does not depend on objects":    {renewLease("worker-1").node("worker-9"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			report := replayed(t, evaluators(t), logOf(test.entry))
			if len(report.WouldBeRefused) != 1 || report.WouldBeRefused[0].Caveat != test.caveat {
				t.Errorf("got %+v", report.WouldBeRefused)
			}
			if want := min(len(test.caveat), 1); report.Totals.NotInState != want {
				t.Errorf("%d are counted, want %d", report.Totals.NotInState, want)
			}
		})
	}
}

func TestAllowedRequestOfANodeIsNotListed(t *testing.T) {
	version := entry{verb: "get", uri: "/version"}.node("worker-1")
	report := replayed(t, evaluators(t), logOf(getSecret("db").node("worker-1"), renewLease("worker-1").node("worker-1"), version))
	if !report.Clean() || !report.Complete() || report.Totals.Allowed != 3 || len(report.WouldBeRefused) != 0 {
		t.Errorf("got %+v", report)
	}
}

func TestAnswerToANonconformingKubeletAsItsNode(t *testing.T) {
	report := replayed(t, evaluators(t), logOf(
		renewLease("worker-1").by("WorkerNodeRole", "system:nodes"),
		getSecret("db").by("WorkerNodeRole", "system:nodes"), getSecret("other").by("WorkerNodeRole", "system:nodes"),
	))
	got := map[string]string{}
	for _, r := range report.WouldBeRefused {
		got[r.Name] = r.AsNode
	}
	if want := map[string]string{"worker-1": "allow", "db": "allow", "other": "refuse"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestUndecidedIsNotRefused(t *testing.T) {
	ev := evaluators(t)
	ev.Chain = append(ev.Chain, chain.Unavailable("hook", errors.New("connection refused")))
	log := logOf(getSecret("db").node("worker-1"), getSecret("db").node("worker-2"), getSecret("db").node("worker-2"))
	report := replayed(t, ev, log)
	if report.Totals.WouldBeRefused != 0 || report.Totals.Undecided != 2 || report.Complete() || len(report.Undecided) != 1 {
		t.Fatalf("got %+v", report.Totals)
	}
	if got := report.Undecided[0]; got.Error != "authorizer hook: connection refused" || got.Count != 2 || got.Code != "" {
		t.Errorf("got %+v", got)
	}

	ev = evaluators(t)
	ev.Missing = func(*access.Request, chain.Result) string { return "could not read pods" }
	report = replayed(t, ev, log)
	if report.Totals.WouldBeRefused != 0 || report.Totals.Undecided != 2 || report.Undecided[0].Error != "could not read pods" ||
		report.Undecided[0].Count != 2 {
		t.Errorf("got %+v, %+v", report.Totals, report.Undecided)
	}
}

func TestLogWithoutResponsesIsNotComplete(t *testing.T) {
	e := getSecret("db").node("worker-2")
	e.stage = "RequestReceived"
	if report := replayed(t, evaluators(t), logOf(e)); report.Complete() || !report.OnlyReceived() {
		t.Errorf("got %+v", report.Totals)
	}
	if report := replayed(t, evaluators(t), ""); report.Complete() || report.OnlyReceived() {
		t.Errorf("an empty log: got %+v", report.Totals)
	}
}

func TestListsAreBoundedAndTheRemainderIsCounted(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a log of 20,000 requests")
	}
	const more = 25
	var l auditLog
	l.add(getSecret("db").node("worker-2"))
	for range 2 {
		for i := range MaxDistinct + more {
			l.add(getSecret(fmt.Sprint("s", i)).node("worker-2"))
		}
	}
	l.add(renewLease("worker-1").node("worker-2"))
	report := replayed(t, evaluators(t), l.lines.String())
	marked, plain := 0, 0
	for _, r := range report.WouldBeRefused {
		switch {
		case r.Caveat == "":
			plain++
		case r.Count != 2 || r.Message == "":
			t.Fatalf("got %+v", r)
		default:
			marked++
		}
	}
	// Refusals with a caveat leave room for those without.
	if marked != MaxDistinct || plain == 0 || report.Totals.WouldBeRefused != 2*(MaxDistinct+more)+plain {
		t.Errorf("%d and %d are listed of %d", marked, plain, report.Totals.WouldBeRefused)
	}
	want := []Remainder{{Node: "worker-2", Resource: "secrets", Code: nodeauthz.NoPathToObject, Count: 2 * more}}
	if report.More == nil || !reflect.DeepEqual(report.More.WouldBeRefused, want) {
		t.Errorf("got %+v, want %+v", report.More, want)
	}
}

func TestIdentitiesAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a log of 10,000 requests")
	}
	var l auditLog
	for i := range MaxIdentities + 7 {
		l.add(entry{verb: "get", uri: "/version"}.by(fmt.Sprint("user", i), "system:nodes"))
	}
	report := replayed(t, evaluators(t), l.lines.String())
	if len(report.Nonconforming) != MaxIdentities || report.Nodes.NotTold != 7 || report.Totals.Nonconforming != MaxIdentities+7 {
		t.Errorf("%d identities, %+v", len(report.Nonconforming), report.Nodes)
	}
}

// mixed is a log with requests of every kind.
func mixed() string {
	forbidden := func(e entry, reason string) entry {
		e.decision, e.code, e.reason = "forbid", 403, reason
		return e
	}
	byAdmission := patchStatus("worker-1").node("worker-2")
	byAdmission.code, byAdmission.message = 403, `nodes "worker-1" is forbidden: node "worker-2" is not allowed to modify node "worker-1"`
	failed := entry{stage: "ResponseStarted", verb: "get", uri: "/api/v1/nodes/worker-3", code: 401, decision: "-"}
	away := getSecret("db").node("worker-1")
	away.code, away.decision = 429, "-"
	return logOf(
		getSecret("db").node("worker-1"), renewLease("worker-1").node("worker-1"), patchStatus("worker-1").node("worker-1"),
		getSecret("db").node("worker-2"), getSecret("db").node("worker-2"), getSecret("old").node("worker-2"),
		renewLease("worker-3").by("WorkerNodeRole", "system:bootstrappers", "system:nodes"),
		entry{verb: "create", uri: "/apis/certificates.k8s.io/v1/certificatesigningrequests", object: map[string]string{
			"resource": "certificatesigningrequests", "name": "csr-1", "apiGroup": "certificates.k8s.io", "apiVersion": "v1",
		}}.by("system:bootstrap:abcdef", "system:bootstrappers"),
		entry{verb: "get", uri: "/debug"}.node("worker-1"),
		patchStatus("worker-1").node("worker-2"),
		forbidden(getSecret("db").node("worker-2"), "no relationship found between node and this object"),
		forbidden(getSecret("db").node("worker-1"), ""),
		byAdmission, failed, away,
	)
}

func TestReportsMatchGoldenFiles(t *testing.T) {
	report := replayed(t, evaluators(t), mixed())
	report.LeftOut = []string{"ClusterRoleBinding system:node"}
	for _, format := range []render.Format{render.Table, render.Wide, render.JSON} {
		var b bytes.Buffer
		if err := render.Write(&b, report, render.Options{Format: format}); err != nil {
			t.Fatal(err)
		}
		golden := filepath.Join("testdata", "mixed."+string(format)+".golden")
		if os.Getenv("UPDATE_GOLDEN") != "" {
			if err := os.WriteFile(golden, b.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(b.Bytes(), want) {
			t.Errorf("%s: got\n%s", format, b.Bytes())
		}
	}
}

func TestReportsAreDeterministic(t *testing.T) {
	log := strings.Repeat(mixed(), 500)
	want := replayed(t, evaluators(t), log)
	for range 3 {
		if got := replayed(t, evaluators(t), log); !reflect.DeepEqual(got, want) {
			t.Fatal("two reports of one log differ")
		}
	}
}
