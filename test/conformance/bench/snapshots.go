package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

const snapshotsMethod = `The program answers from a snapshot of the large cluster of the section above: from the file, of which it reads
the parts that the answer depends on, and from standard input, which it reads whole, in turns. The snapshot is marked as
one of a cluster, so that nothing is missing. Time and memory are measured for the program, from its start to its end.`

const whySnapshots = `API servers and snapshots do not select pods by what they refer to: a refusal depends on all pods of a namespace.`

// snapshots compares answers from parts of a snapshot with those from the whole.
func (b *bench) snapshots() (section, error) {
	s := section{title: "Answers from a snapshot", method: snapshotsMethod}
	l := fileCluster{nodes: b.sizes.fileNodes, podsPerNode: b.sizes.podsPerNode}
	snapshot, err := b.clusterSnapshot(l)
	if err != nil {
		return s, err
	}
	t := table{
		caption: fmt.Sprintf("**%s nodes with %s pods,** whole | parts.", thousands(float64(l.nodes)), thousands(float64(l.pods()))),
		header:  []string{"question", "time", "processor time", "peak memory", "time, ratio", "memory, ratio"},
	}
	for _, q := range l.snapshotQuestions() {
		var old, now [3][]float64
		for range b.fillRounds {
			for _, side := range []struct {
				from string
				into *[3][]float64
			}{{"-", &old}, {snapshot, &now}} {
				b.log("snapshots: %s from %s", q.what, filepath.Base(side.from))
				u, err := b.programReading(snapshot, append(q.args, "--from", side.from)...)
				if err != nil {
					return s, err
				}
				for i, figure := range []float64{float64(u.time), float64(u.processor), u.peak} {
					side.into[i] = append(side.into[i], figure)
				}
			}
		}
		faster, smaller := ratios(old[0], now[0]), ratios(old[2], now[2])
		pair := func(i int, show func(float64) string) string {
			return show(median(old[i])) + " \\| " + show(median(now[i]))
		}
		t.add(q.what, pair(0, nanoseconds), pair(1, nanoseconds), pair(2, megabytes), faster.String(), smaller.String())
		s.targets = append(s.targets, atLeast(q.what+", time of the whole against parts", 10, faster, whySnapshots),
			atLeast(q.what+", memory of the whole against parts", 3, smaller, whySnapshots))
	}
	s.tables = append(s.tables, t)
	return s, nil
}

// snapshotQuestion is a question to a snapshot.
type snapshotQuestion struct {
	what string
	args []string
}

func (l fileCluster) snapshotQuestions() []snapshotQuestion {
	app := l.appOf(0, 0)
	secret := []string{"get", "secrets/" + appName(app) + "-credentials", "-n", appNamespace(app)}
	ask := func(command string, more ...string) []string {
		return append(append([]string{command}, secret...), more...)
	}
	node, other := nodeName(0), nodeName(l.nodes-1)
	return []snapshotQuestion{
		{"`can-i` of one node, allowed", ask("can-i", "--node", node)},
		{"`can-i` of one node, refused", ask("can-i", "--node", other)},
		{"`explain` of one node, refused", ask("explain", "--node", other)},
		{"`reach` of one node, secrets", []string{"reach", node, "--kind", "secrets"}},
		{"`who-can` get a secret", ask("who-can")},
	}
}

// clusterSnapshot makes a snapshot, and marks it as one of a cluster.
func (b *bench) clusterSnapshot(l fileCluster) (string, error) {
	manifests, err := l.file(b.cache)
	if err != nil {
		return "", err
	}
	taken, marked := filepath.Join(b.cache, "manifests.snapshot"), filepath.Join(b.cache, "marked.jsonl")
	snapshot := filepath.Join(b.cache, "cluster.snapshot")
	b.log("snapshots: writing a snapshot")
	if _, err := b.program("snapshot", "--from", manifests, "-o", taken); err != nil {
		return "", err
	}
	if err := withHeader(taken, marked, ofCluster); err != nil {
		return "", err
	}
	_, err = b.program("snapshot", "--from", marked, "-o", snapshot)
	return snapshot, errors.Join(err, os.Remove(taken), os.Remove(marked))
}

// ofCluster is the header of a snapshot of a cluster, made from one of manifests.
func ofCluster(header []byte) []byte {
	return bytes.Replace(header, []byte(`"cluster":false,"rbacReadable":false`), []byte(`"cluster":true,"rbacReadable":true`), 1)
}

// withHeader writes the text of a snapshot with another header.
func withHeader(from, to string, header func([]byte) []byte) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	text, err := zstd.NewReader(in)
	if err != nil {
		return err
	}
	defer text.Close()
	lines := bufio.NewReader(text)
	first, err := lines.ReadBytes('\n')
	if err != nil {
		return err
	}
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := out.Write(header(first)); err != nil {
		return err
	}
	if _, err := io.Copy(out, lines); err != nil {
		return err
	}
	return out.Close()
}
