package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

const snapshotsMethod = `The program answers from a snapshot of the large cluster of the section above: in JSON, and in binary form, in
turns. Both are marked as snapshots of a cluster, so that nothing is missing. Time and memory are those of the program, from
its start to its end. Except for the last, these questions depend on a part of the cluster; the last one
decodes everything, and also makes the graph of attack paths.`

const whySnapshots = `A question about the whole cluster fills the state with every object, which takes 0.48 GB after that,
and makes the graph of attack paths. Both cost the same from either form.`

// snapshots compares the forms of snapshots.
func (b *bench) snapshots() (section, error) {
	s := section{title: "Answers from a snapshot", method: snapshotsMethod}
	l := fileCluster{nodes: b.sizes.fileNodes, podsPerNode: b.sizes.podsPerNode}
	json, binary, err := b.snapshotForms(l)
	if err != nil {
		return s, err
	}
	t := table{
		caption: fmt.Sprintf("**%s nodes with %s pods,** JSON | binary.", thousands(float64(l.nodes)), thousands(float64(l.pods()))),
		header:  []string{"question", "time", "processor time", "peak memory", "time, ratio", "memory, ratio"},
	}
	for _, q := range l.snapshotQuestions() {
		var old, now [3][]float64
		for range b.fillRounds {
			for _, side := range []struct {
				file string
				into *[3][]float64
			}{{json, &old}, {binary, &now}} {
				b.log("snapshots: %s from %s", q.what, filepath.Base(side.file))
				u, err := b.program(append(q.args, "--from", side.file)...)
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
		s.targets = append(s.targets, atLeast(q.what+", time of JSON against binary", 5, faster, whySnapshots),
			atLeast(q.what+", memory of JSON against binary", 3, smaller, whySnapshots))
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
		{"`reach` of one node, in total", []string{"reach", node, "--in-total"}},
	}
}

// snapshotForms makes both forms of a snapshot.
func (b *bench) snapshotForms(l fileCluster) (json, binary string, err error) {
	manifests, err := l.file(b.cache)
	if err != nil {
		return "", "", err
	}
	taken := filepath.Join(b.cache, "manifests.snapshot")
	json, binary = filepath.Join(b.cache, "json.snapshot"), filepath.Join(b.cache, "binary.snapshot")
	b.log("snapshots: writing both forms")
	if _, err := b.program("snapshot", "--from", manifests, "--format", "json", "-o", taken); err != nil {
		return "", "", err
	}
	if err := markAsCluster(taken, json); err != nil {
		return "", "", err
	}
	_, err = b.program("snapshot", "--from", json, "-o", binary)
	return json, binary, errors.Join(err, os.Remove(taken))
}

// markAsCluster copies a snapshot of manifests, but for its header, which is that of a cluster.
func markAsCluster(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	text, err := gzip.NewReader(in)
	if err != nil {
		return err
	}
	lines := bufio.NewReader(text)
	header, err := lines.ReadBytes('\n')
	if err != nil {
		return err
	}
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer out.Close()
	compressed := gzip.NewWriter(out)
	header = bytes.Replace(header, []byte(`"cluster":false,"rbacReadable":false`), []byte(`"cluster":true,"rbacReadable":true`), 1)
	if _, err := compressed.Write(header); err != nil {
		return err
	}
	if _, err := io.Copy(compressed, lines); err != nil {
		return err
	}
	return errors.Join(compressed.Close(), out.Close())
}
