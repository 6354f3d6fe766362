package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/audit/auditlog"
)

// randomLog returns the lines of a log with requests of every kind, in the order in which an
// API server writes them: conforming and other kubelets, users whose node only their
// addresses show, and watches of which both stages, or one, are logged.
func randomLog(random *rand.Rand, requests int) []string { return randomLogOf(random, requests, false) }

// randomLogOf returns a random log; if it is apart, each line can be understood without the others.
func randomLogOf(random *rand.Rand, requests int, apart bool) []string {
	var l auditLog
	pick := func(all ...string) string { return all[random.IntN(len(all))] }
	type ending struct {
		entry
		at int
	}
	var open []ending
	for i := range requests {
		node := fmt.Sprint("worker-", 1+random.IntN(9))
		address := "10.0.0." + node[len("worker-"):]
		if random.IntN(20) == 0 {
			address = "10.0.0.99" // of several nodes
		}
		var e entry
		switch random.IntN(8) {
		case 0:
			e = renewLease(node)
		case 1:
			e = patchStatus(node)
		case 2:
			e = entry{verb: "get", uri: "/version"}
		case 3:
			e = entry{
				verb: "list", uri: "/api/v1/pods?fieldSelector=spec.nodeName%3D" + node,
				object: map[string]string{"resource": "pods", "apiVersion": "v1"},
			}
		case 4:
			e = entry{
				verb: "create", uri: "/api/v1/namespaces/shop/serviceaccounts/api/token",
				object: map[string]string{
					"resource": "serviceaccounts", "subresource": "token", "namespace": "shop", "name": "api", "apiVersion": "v1",
				},
				written: pick("", `{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","spec":{"audiences":[]}}`),
			}
		default:
			e = getSecret(pick("db", "old", "other", fmt.Sprint("s", random.IntN(40))))
			e.verb = pick("get", "watch", "watch", "list")
			if apart {
				e.verb = pick("get", "list")
			}
		}
		user := random.IntN(10)
		if apart && (user < 2 || user == 4) {
			user = 2
		}
		switch user {
		case 0:
			e = e.by("WorkerNodeRole", "system:nodes")
		case 1:
			e = e.by("shared-"+pick("a", "b"), "system:nodes", pick("team-1", "team-2"))
		case 2:
			e = e.by("system:node:" + node)
		case 3:
			e = e.by("system:bootstrap:abcdef", "system:bootstrappers")
		case 4:
			e = e.by(pick("someone", "system:anonymous"))
			e.agent = pick(
				agent, "kubelet/v1.36.0", "kubelet/v1.35.0", "kubectl/v1.36.0", "kubelet/v1.34.0", "kubelet/v1.33.1", "kubelet/v1.33",
			)
		default:
			e = e.node(node)
		}
		if random.IntN(30) == 0 {
			e.as, e.asGroups = "system:node:worker-1", []string{"system:nodes"}
		}
		e.source = address
		switch random.IntN(10) {
		case 0:
			e.code, e.decision, e.reason = 403, "forbid", pick("", "no path", "because "+fmt.Sprint(i))
		case 1:
			e.code, e.decision = 429, "-"
		case 2:
			e.code, e.decision = 401, "-"
		case 3:
			e.code, e.message = 403, "admission refuses "+fmt.Sprint(random.IntN(3))
		}
		e.id = fmt.Sprint(i / 2) // clients may choose the same id
		stages := random.IntN(4)
		if e.verb == "watch" && stages > 0 {
			first := e
			first.stage = "ResponseStarted"
			l.add(first)
		}
		if e.verb != "watch" || stages != 1 {
			e.stage = pick("ResponseComplete", "ResponseComplete", "Panic")
			open = append(open, ending{e, i + random.IntN(60)})
		}
		open = slices.DeleteFunc(open, func(o ending) bool {
			if o.at > i {
				return false
			}
			l.add(o.entry)
			return true
		})
	}
	lines := strings.SplitAfter(l.lines.String(), "\n")
	return lines[:len(lines)-1]
}

// split writes lines to a number of files, in order, each of which is read in order.
func split(t *testing.T, random *rand.Rand, lines []string, files int) []auditlog.File {
	t.Helper()
	folder := t.TempDir()
	var all []auditlog.File
	for i := range files {
		n := random.IntN(2 * len(lines) / (files - i) / 2)
		if i == files-1 {
			n = len(lines)
		}
		path := filepath.Join(folder, fmt.Sprintf("%03d.log", i))
		if err := os.WriteFile(path, []byte(strings.Join(lines[:n], "")), 0o600); err != nil {
			t.Fatal(err)
		}
		all, lines = append(all, auditlog.File{Path: path}), lines[n:]
	}
	return all
}

// partial evaluates files, and returns the partial report after writing and reading it.
func partial(t *testing.T, ev *Evaluators, files []auditlog.File) *Partial {
	t.Helper()
	p, err := Run(t.Context(), files, ev, auditlog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return written(t, p)
}

func written(t *testing.T, p *Partial) *Partial {
	t.Helper()
	p.Evaluation.Program = "v1"
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	read, err := ReadPartial(&b, "a part", "v1")
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func mergeAll(t *testing.T, parts []*Partial) *Report {
	t.Helper()
	m := NewMerger()
	for _, p := range parts {
		if err := m.Add(p); err != nil {
			t.Fatal(err)
		}
	}
	r, _, err := m.Report()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func asJSON(t *testing.T, r *Report) string {
	t.Helper()
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// randomParts divides the files of a random log, and returns the reports of the parts, merged, and of the whole.
func randomParts(t *testing.T, seed uint64, apart bool) (merged, whole *Report) {
	t.Helper()
	ev, random := evaluators(t), rand.New(rand.NewPCG(seed, 1))
	files := split(t, random, randomLogOf(random, 100+random.IntN(1000), apart), 1+random.IntN(12))
	run, err := Run(t.Context(), files, ev, auditlog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	whole = &run.Report
	// Contiguous parts, as for one run each, and any other parts.
	var parts [][]auditlog.File
	if n := 1 + random.IntN(5); seed%2 == 0 {
		parts = slices.Collect(slices.Chunk(files, (len(files)+n-1)/n))
	} else {
		parts = make([][]auditlog.File, n)
		for _, f := range files {
			i := random.IntN(n)
			parts[i] = append(parts[i], f)
		}
	}
	var partials []*Partial
	for _, files := range parts {
		partials = append(partials, partial(t, ev, files))
	}
	random.Shuffle(len(partials), reflect.Swapper(partials))
	return mergeAll(t, partials), whole
}

func randomLogs() uint64 {
	if testing.Short() {
		return 5
	}
	return 20
}

func TestMergedReportIsThatOfOneRun(t *testing.T) {
	for seed := range randomLogs() {
		merged, whole := randomParts(t, seed, true)
		if len(whole.WouldBeRefused) == 0 || len(whole.Nonconforming) == 0 {
			t.Fatalf("seed %d: nothing is refused", seed)
		}
		if got, want := asJSON(t, merged), asJSON(t, whole); got != want {
			t.Fatalf("seed %d: %s", seed, firstDifference(got, want))
		}
	}
}

// TestWhatSpansPartsCountsAtMostTwice merges parts that lack the other stage of requests, and the nodes behind addresses.
func TestWhatSpansPartsCountsAtMostTwice(t *testing.T) {
	twice := 0
	for seed := range randomLogs() {
		merged, whole := randomParts(t, seed, false)
		more := merged.Totals.Requests - whole.Totals.Requests
		twice += more
		if most := merged.Totals.MaybeTwice - whole.Totals.MaybeTwice; more < 0 || more > most {
			t.Errorf("seed %d: %d requests count twice, and up to %d are said to", seed, more, most)
		}
		for _, list := range []struct {
			name          string
			merged, whole []Refusal
		}{
			{"would be refused", merged.WouldBeRefused, whole.WouldBeRefused}, {"refused", merged.Refused, whole.Refused},
		} {
			counts := map[distinct]int{}
			for i := range list.merged {
				counts[distinctOf(&list.merged[i])] += list.merged[i].Count
			}
			for i := range list.whole {
				counts[distinctOf(&list.whole[i])] -= list.whole[i].Count
			}
			for request, n := range counts {
				if n < 0 || n > more {
					t.Errorf("seed %d: %s: %+v: %d more than in one run", seed, list.name, request, n)
				}
			}
		}
		if !reflect.DeepEqual(merged.Nodes, whole.Nodes) {
			t.Errorf("seed %d: got %+v, want %+v", seed, merged.Nodes, whole.Nodes)
		}
	}
	if twice == 0 {
		t.Error("no request has its stages in two parts")
	}
}

// The order of files does not matter.
func TestReportDoesNotDependOnTheOrderOfFiles(t *testing.T) {
	ev := evaluators(t)
	logs := uint64(8)
	if testing.Short() {
		logs = 2
	}
	for seed := range logs {
		random := rand.New(rand.NewPCG(seed, 2))
		files := split(t, random, randomLog(random, 800), 8)
		first, err := Run(t.Context(), files, ev, auditlog.Options{})
		if err != nil {
			t.Fatal(err)
		}
		random.Shuffle(len(files), reflect.Swapper(files))
		second, err := Run(t.Context(), files, ev, auditlog.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := asJSON(t, &second.Report), asJSON(t, &first.Report); got != want {
			t.Fatalf("seed %d: %s", seed, firstDifference(got, want))
		}
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			from := max(0, i-15)
			return fmt.Sprintf("line %d: got\n%s\nwant\n%s", i, strings.Join(g[from:min(len(g), i+5)], "\n"),
				strings.Join(w[from:min(len(w), i+5)], "\n"))
		}
	}
	return fmt.Sprintf("got %d lines, want %d", len(g), len(w))
}

func TestReportIsTheSameOnAnyNumberOfProcessors(t *testing.T) {
	ev := evaluators(t)
	logs := uint64(6)
	if testing.Short() {
		logs = 2
	}
	for seed := range logs {
		random := rand.New(rand.NewPCG(seed, 5))
		files := split(t, random, randomLog(random, 1200), 1+random.IntN(20))
		var want, wantPart string
		for _, processors := range []int{1, 2, 8} {
			before := runtime.GOMAXPROCS(processors)
			part, err := Run(t.Context(), files, ev, auditlog.Options{})
			runtime.GOMAXPROCS(before)
			if err != nil {
				t.Fatal(err)
			}
			var written bytes.Buffer
			if err := part.Write(&written); err != nil {
				t.Fatal(err)
			}
			got := asJSON(t, &part.Report)
			if want == "" {
				want, wantPart = got, written.String()
			}
			if got != want || written.String() != wantPart {
				t.Fatalf("seed %d, %d processors: %s", seed, processors, firstDifference(got+written.String(), want+wantPart))
			}
		}
	}
}
