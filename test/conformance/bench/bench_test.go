package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/test/localplane"
)

// TestMain is the floor's process too, which is this program again.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-floor" {
		main()
		return
	}
	os.Exit(localplane.KeepLogs(m.Run))
}

// small is a bench that is done in a moment.
func small(t *testing.T) *bench {
	return &bench{
		ctx: t.Context(), status: io.Discard,
		sizes: sizes{
			nodes: 20, namespaces: 5, pods: 60,
			relatedNodes: 10, unrelatedNodes: 3, worst: []int{2, 4}, worstTarget: 4,
			questions: 16, changes: 20,
			fileNodes: 12, podsPerNode: 6, documents: 40,
			servedNodes: 20,
			machines:    12, tokens: 30,
			auditBytes: 4 << 20,
			instances:  20, freshTokens: 64,
			pathNodes: []int{12, 24}, pathNodesTarget: 24,
		},
		rounds: 2, fillRounds: 2, fileRounds: 1,
		atLeast: time.Millisecond, listenFor: time.Millisecond, serveFor: 20 * time.Millisecond, renewals: 10,
		binary: buildProgram(t), root: "../../..", cache: t.TempDir(),
	}
}

func buildProgram(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "node-authorizer")
	build := exec.Command("go", "build", "-o", program, "./cmd/node-authorizer")
	build.Dir = "../../.."
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the program: %v\n%s", err, output)
	}
	return program
}

func TestEverySectionRunsAndIsInTheDocument(t *testing.T) {
	file := filepath.Join(t.TempDir(), "benchmarks.md")
	var printed strings.Builder
	if err := small(t).measure(parts, file, &printed); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"output": printed.String(), "document": string(written)} {
		for _, title := range []string{
			"## Requests", "## Populating, and the memory it takes", "## The worst case", "## Requests while pods change",
			"## A large cluster from a file", "## Answers from a snapshot", "## Throughput of `review`", "## Serving",
			"## A question about one node", "## Lease renewals",
			"## Signed documents", "## Joins", "## Audit logs", "## Authentications", "## Doctor", "## Attack paths",
			"## Comparing attack paths",
		} {
			if !strings.Contains(text, title+"\n") {
				t.Errorf("%s lacks %q", name, title)
			}
		}
	}
	if !strings.Contains(string(written), "## All targets\n") {
		t.Error("the document lacks a summary of the targets")
	}
}

func TestAFileNeedsAllSections(t *testing.T) {
	err := run(context.Background(), []string{"-section", "worst", "-out", filepath.Join(t.TempDir(), "x")}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "-out needs all sections") {
		t.Errorf("got %v", err)
	}
}

func TestAnUnknownSectionIsNamed(t *testing.T) {
	err := run(context.Background(), []string{"-section", "worst,best"}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), `unknown section "best"`) {
		t.Errorf("got %v", err)
	}
}

func TestTheInputIsAListThatTheProgramReads(t *testing.T) {
	l := fileCluster{nodes: 24, podsPerNode: 12}
	file, err := l.file(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	state, err := source.LoadFiles(t.Context(), []string{file}, source.FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"Node": 24, "Pod": 24 * 12, "PersistentVolume": 24 * 2, "VolumeAttachment": 24 * 2}
	if diff := cmp.Diff(want, state.Counts()); diff != "" {
		t.Error(diff)
	}
	if warnings := state.Warnings(); len(warnings) > 0 {
		t.Error("warnings:", warnings)
	}
	documents, err := l.documents(100, 10)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(documents)) {
		if !strings.Contains(line, `"SubjectAccessReview"`) {
			t.Error("not a review:", line)
		}
	}
}

func TestHistogram(t *testing.T) {
	h := new(histogram)
	for ns := range uint64(10_000) {
		h.add(ns)
	}
	for q, want := range map[float64]float64{0: 0, .001: 10, .5: 5000, .99: 9900} {
		if got := h.quantile(q); got > want || got < want*(1-1.0/32) {
			t.Errorf("quantile %v is %v, want %v or a 32nd less", q, got, want)
		}
	}
	sum := new(histogram)
	sum.merge(h)
	sum.merge(h)
	if got := sum.quantile(.5); got != h.quantile(.5) || sum.total != 2*h.total {
		t.Errorf("twice the same: median %v, total %v", got, sum.total)
	}
	for _, ns := range []uint64{0, 63, 64, 65, 1000, 1 << 40} {
		if low := lowest(bucket(ns)); low > float64(ns) || low < float64(ns)*(1-1.0/32) {
			t.Errorf("%d ns is in the bucket from %v", ns, low)
		}
	}
}

func TestSpread(t *testing.T) {
	r := rounds{ours: {1, 2, 4}, inTree: {10, 10, 10}}
	if got, want := r.ratio(), (spread{low: 2.5, median: 5, high: 10}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := median([]float64{4, 1, 3, 2}); got != 2.5 {
		t.Errorf("median of an even number: %v", got)
	}
}

func TestFiguresForPeople(t *testing.T) {
	for got, want := range map[string]string{
		times(1.2345): "1.23×", times(123.4): "123×", times(12345.6): "12,346×",
		nanoseconds(12.4): "12 ns", nanoseconds(1234): "1.23 µs", nanoseconds(12.3e6): "12.3 ms", nanoseconds(2e9): "2 s",
		megabytes(1.5e6): "1.50 MB", megabytes(5_267.8e6): "5,268 MB",
		percent(1.0 / 3): "33 %", thousands(1_234_567): "1,234,567", count(0.01): "0",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
