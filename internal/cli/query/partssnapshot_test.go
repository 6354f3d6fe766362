package query

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/resources"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
)

// snapshot writes the cluster to a file. Without the header of a cluster it is of manifests, which may lack objects.
func (c *partsCluster) snapshot(ofCluster bool) (path string) {
	c.t.Helper()
	state, err := source.List(c.t.Context(), c.server.Config(), source.LiveOptions{Retain: true})
	if err != nil {
		c.t.Fatal(err)
	}
	path = filepath.Join(c.t.TempDir(), "x.snapshot")
	c.writeSnapshot(path, state)
	if ofCluster {
		return path
	}
	if err := os.WriteFile(path, withoutHeader(c.t, path), 0o600); err != nil {
		c.t.Fatal(err)
	}
	if state, err = source.LoadFiles(c.t.Context(), []string{path}, source.FileOptions{Retain: true}); err != nil {
		c.t.Fatal(err)
	}
	c.writeSnapshot(path, state)
	return path
}

func (c *partsCluster) writeSnapshot(path string, state *source.State) {
	c.t.Helper()
	var b bytes.Buffer
	if err := source.WriteSnapshot(&b, state); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

func withoutHeader(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	_, objects, _ := bytes.Cut(text, []byte("\n"))
	return objects
}

// fileSession answers from a snapshot: from the whole, or from the parts that answers depend on.
func (c *partsCluster) fileSession(path string, parts bool) *command.Session {
	c.t.Helper()
	state, err := source.LoadFiles(c.t.Context(), []string{path}, source.FileOptions{Parts: parts})
	if err != nil {
		c.t.Fatal(err)
	}
	if state.Partial() != parts {
		c.t.Fatalf("%s is partial: %t, want %t", path, state.Partial(), parts)
	}
	state.Origin = "snapshot"
	return c.session(state)
}

// TestPartsOfSnapshotsAnswerAsTheWhole puts random questions to snapshots of random clusters, of which
// all kinds could be read or not, and to such that are of manifests: parts give the answers of the whole.
func TestPartsOfSnapshotsAnswerAsTheWhole(t *testing.T) {
	counts, tried := map[string]int{}, clusters(t, 20)
	for seed := range tried {
		c := newPartsCluster(t, uint64(seed))
		refused := c.refuse()
		ofCluster := !c.chance(3)
		path := c.snapshot(ofCluster)
		what := fmt.Sprintf("snapshot %d (of a cluster: %t) without %v", seed, ofCluster, refused)
		whole := c.fileSession(path, false)
		for range 20 {
			q := c.question()
			want, answer := answered(t, whole, q)
			counts[answer]++
			if got, _ := answered(t, c.fileSession(path, true), q); got != want {
				t.Fatalf("%s: %s\nby parts: %s\nwhole: %s", what, q, got, want)
			}
		}
		for range 5 {
			q := c.question()
			want, got := rulesText(t, whole, q), rulesText(t, c.fileSession(path, true), q)
			if got != want {
				t.Fatalf("%s: can-i --list %s\nby parts: %s\nwhole: %s", what, q, got, want)
			}
		}
		for range 5 {
			q := c.question()
			want := whoCanText(t, whole, q)
			counts["who-can"] += strings.Count(want, `"decidedBy"`)
			if got := whoCanText(t, c.fileSession(path, true), q); got != want {
				t.Fatalf("%s: who-can %s\nby parts: %s\nwhole: %s", what, q, got, want)
			}
		}
		for _, node := range []string{"n0", "bare", "none"} {
			only := command.Filter{Namespace: c.pick("", "", "shop")}
			if c.chance(3) {
				only.Resources = []resources.Resource{{Name: "secrets"}}
			}
			want, _ := reachText(t, whole, node, only)
			if got, _ := reachText(t, c.fileSession(path, true), node, only); got != want {
				t.Fatalf("%s: %s, %+v\nby parts: %s\nwhole: %s", what, node, only, got, want)
			}
		}
	}
	for _, answer := range []string{command.Yes, command.No, command.Unknown, "error", "who-can"} {
		if counts[answer] < tried/2 {
			t.Errorf("only %d answers are %q: %v", counts[answer], answer, counts)
		}
	}
}

// whoCanText returns everything that who-can shows of a question.
func whoCanText(t *testing.T, s *command.Session, q partsQuestion) string {
	t.Helper()
	s.Namespace = q.namespace
	asked, err := s.Question(&command.App{Streams: command.Streams{ErrOut: new(strings.Builder)}}, q.args, &q.flags, "")
	if err != nil {
		t.Fatal(err)
	}
	result, err := whoCan(t.Context(), s, asked)
	if err != nil {
		return "error: " + err.Error()
	}
	return text(t, result)
}

// rulesText returns everything that can-i --list shows of a user.
func rulesText(t *testing.T, s *command.Session, q partsQuestion) string {
	t.Helper()
	who, err := s.Identity(&q.who)
	if err != nil {
		return "error: " + err.Error()
	}
	rules, err := rulesOf(s, who, q.namespace)
	if err != nil {
		return "error: " + err.Error()
	}
	return text(t, rules)
}
