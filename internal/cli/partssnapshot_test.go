package cli

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/resources"
	"github.com/node-authorizer/node-authorizer/internal/source"
)

// snapshots writes the cluster to two files of the same name, in JSON and in binary form. Without
// the header of a cluster they are of manifests, which may lack objects.
func (c *partsCluster) snapshots(ofCluster bool) (json, binary string) {
	c.t.Helper()
	state, err := source.List(c.t.Context(), c.server.Config(), source.LiveOptions{Retain: true})
	if err != nil {
		c.t.Fatal(err)
	}
	json, binary = filepath.Join(c.t.TempDir(), "x.snapshot"), filepath.Join(c.t.TempDir(), "x.snapshot")
	c.writeSnapshot(json, state, source.JSONSnapshot)
	if !ofCluster {
		if err := os.WriteFile(json, withoutHeader(c.t, json), 0o600); err != nil {
			c.t.Fatal(err)
		}
		if state, err = source.LoadFiles(c.t.Context(), []string{json}, source.FileOptions{Retain: true}); err != nil {
			c.t.Fatal(err)
		}
		c.writeSnapshot(json, state, source.JSONSnapshot)
	}
	c.writeSnapshot(binary, state, source.BinarySnapshot)
	return json, binary
}

func (c *partsCluster) writeSnapshot(path string, state *source.State, form source.SnapshotForm) {
	c.t.Helper()
	var b bytes.Buffer
	if err := source.WriteSnapshot(&b, state, form); err != nil {
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
	r, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	_, objects, _ := bytes.Cut(text, []byte("\n"))
	return objects
}

// fileSession answers from a snapshot: from the whole, or from the parts that answers depend on.
func (c *partsCluster) fileSession(path string, parts bool) *session {
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
// all kinds could be read or not, and to such that are of manifests: the parts of the binary form give
// the answers of the whole JSON form, and so does the whole binary form.
func TestPartsOfSnapshotsAnswerAsTheWhole(t *testing.T) {
	counts, tried := map[string]int{}, clusters(t, 20)
	for seed := range tried {
		c := newPartsCluster(t, uint64(seed))
		refused := c.refuse()
		ofCluster := !c.chance(3)
		json, binary := c.snapshots(ofCluster)
		what := fmt.Sprintf("snapshot %d (of a cluster: %t) without %v", seed, ofCluster, refused)
		whole, same := c.fileSession(json, false), c.fileSession(binary, false)
		for range 20 {
			q := c.question()
			want, answer := whole.answered(t, q)
			counts[answer]++
			if got, _ := same.answered(t, q); got != want {
				t.Fatalf("%s: %s\nbinary: %s\nJSON: %s", what, q, got, want)
			}
			if got, _ := c.fileSession(binary, true).answered(t, q); got != want {
				t.Fatalf("%s: %s\nby parts: %s\nwhole: %s", what, q, got, want)
			}
		}
		for range 5 {
			q := c.question()
			want, got := whole.rulesText(t, q), c.fileSession(binary, true).rulesText(t, q)
			if got != want {
				t.Fatalf("%s: can-i --list %s\nby parts: %s\nwhole: %s", what, q, got, want)
			}
		}
		for range 5 {
			q := c.question()
			want := whole.whoCanText(t, q)
			counts["who-can"] += strings.Count(want, `"decidedBy"`)
			if got := c.fileSession(binary, true).whoCanText(t, q); got != want {
				t.Fatalf("%s: who-can %s\nby parts: %s\nwhole: %s", what, q, got, want)
			}
		}
		for _, node := range []string{"n0", "bare", "none"} {
			only := filter{namespace: c.pick("", "", "shop")}
			if c.chance(3) {
				only.resources = []resources.Resource{{Name: "secrets"}}
			}
			want, _ := whole.reachText(t, node, only)
			if got, _ := c.fileSession(binary, true).reachText(t, node, only); got != want {
				t.Fatalf("%s: %s, %+v\nby parts: %s\nwhole: %s", what, node, only, got, want)
			}
		}
	}
	for _, answer := range []string{yes, no, unknown, "error", "who-can"} {
		if counts[answer] < tried/2 {
			t.Errorf("only %d answers are %q: %v", counts[answer], answer, counts)
		}
	}
}

// whoCanText returns everything that who-can shows of a question.
func (s *session) whoCanText(t *testing.T, q partsQuestion) string {
	t.Helper()
	s.namespace = q.namespace
	asked, err := s.question(&app{streams: streams{errOut: new(strings.Builder)}}, q.args, &q.flags, "")
	if err != nil {
		t.Fatal(err)
	}
	result, err := s.whoCan(t.Context(), asked)
	if err != nil {
		return "error: " + err.Error()
	}
	return text(t, result)
}

// rulesText returns everything that can-i --list shows of a user.
func (s *session) rulesText(t *testing.T, q partsQuestion) string {
	t.Helper()
	who, err := s.identity(&q.who)
	if err != nil {
		return "error: " + err.Error()
	}
	rules, err := s.rulesOf(who, q.namespace)
	if err != nil {
		return "error: " + err.Error()
	}
	return text(t, rules)
}
