package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/audit/auditlog"
	"github.com/node-authorizer/node-authorizer/internal/audit/replay"
	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
)

const auditMethod = `What ` + "`audit`" + ` does for each line of an audit log: decode it, find out whether a kubelet is
behind it, put the request to the Node authorizer, RBAC and NodeRestriction, and count.
The lines come from kubelets (leases, statuses, objects of pods, tokens with their
objects, watches with both stages), one in twenty of which would be refused, and from
controllers. The floor only decodes the same lines with the same decoder. Both are
measured alternately. Rotated files are read with one core and with all, alternately.
Then the program reads a log that is made while it reads, through a pipe, and its memory
is looked at on the way.`

const whyAudit = "Beside decoding, the evaluators take time, and counting, which one thread does in the order of the log."

// audit measures the replay of audit logs.
func (b *bench) audit() (section, error) {
	s := section{title: "Audit logs", method: auditMethod}
	l := fileCluster{nodes: min(b.sizes.fileNodes, 1000), podsPerNode: b.sizes.podsPerNode}
	paths, err := l.auditState(b.cache)
	if err != nil {
		return s, err
	}
	state, err := source.LoadFiles(b.ctx, paths, source.FileOptions{})
	if err != nil {
		return s, err
	}
	var text bytes.Buffer
	lines := newAuditLines(l)
	for range b.sizes.documents {
		text.Write(lines.next())
	}
	t := table{
		caption: fmt.Sprintf("**%s lines of %s bytes on average.** Lines a second.", thousands(float64(b.sizes.documents)),
			thousands(float64(text.Len()/b.sizes.documents))),
		header: []string{"", "share of decoding", "`audit`", "decoding only"},
	}
	one, err := b.auditOneCore(state, text.Bytes())
	if err != nil {
		return s, err
	}
	t.addAudit("one core", one)
	all, err := b.auditThroughput(state, text.Bytes(), wallClock())
	if err != nil {
		return s, err
	}
	t.addAudit(fmt.Sprintf("%d cores", runtime.GOMAXPROCS(0)), all)
	got := one.share()
	s.targets = append(s.targets, target{
		what: "`audit`, one core", want: "at least 60 % of decoding", got: percent(got), missedBy: 0.6 / got, why: whyAudit,
	})
	s.tables = append(s.tables, t)
	cores, targets, err := b.auditCores(state, l)
	if err != nil {
		return s, err
	}
	s.tables, s.targets = append(s.tables, cores), append(s.targets, targets...)
	memory, growth, err := b.auditMemory(paths, l)
	if err != nil {
		return s, err
	}
	s.tables = append(s.tables, memory)
	s.targets = append(s.targets,
		atMost("Peak memory of `audit` at the end of the long log, to that after a quarter of it", 1.1, growth, times, whyAuditMemory))
	return s, nil
}

const whyAuditMemory = "What grows are the lists of a report, up to their bounds, and the heap up to the pace of the garbage collector."

// auditRBAC are the roles and bindings of the state.
const auditRBAC = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: discovery}
rules:
- {nonResourceURLs: [/healthz, /version, /api, /apis], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: discovery}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: discovery}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:authenticated"}]
`

// auditState writes the state that the log is put to.
func (l fileCluster) auditState(folder string) ([]string, error) {
	manifests, err := l.file(folder)
	if err != nil {
		return nil, err
	}
	roles := filepath.Join(folder, "audit-rbac.yaml")
	if err := os.WriteFile(roles, []byte(auditRBAC), 0o600); err != nil {
		return nil, fmt.Errorf("writing roles and bindings: %w", err)
	}
	return []string{manifests, roles}, nil
}

// auditRate is lines a second.
type auditRate struct{ audit, floor []float64 }

func (r auditRate) share() float64 {
	var shares []float64
	for i := range r.audit {
		shares = append(shares, r.audit[i]/r.floor[i])
	}
	return median(shares)
}

func (t *table) addAudit(what string, got auditRate) {
	t.add(what, percent(got.share()), thousands(median(got.audit)), thousands(median(got.floor)))
}

func wallClock() func() time.Duration {
	begin := time.Now()
	return func() time.Duration { return time.Since(begin) }
}

func (b *bench) auditOneCore(state *source.State, text []byte) (auditRate, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	return b.auditThroughput(state, text, processTime)
}

func (b *bench) auditThroughput(state *source.State, text []byte, clock func() time.Duration) (auditRate, error) {
	evaluator, err := evaluate.New(b.ctx, state, evaluate.Options{Features: kubeversion.For(kubeversion.Latest)})
	if err != nil {
		return auditRate{}, err
	}
	evaluators := &replay.Evaluators{Evaluator: evaluator}
	n := float64(bytes.Count(text, []byte{'\n'}))
	var r auditRate
	for i := range b.fillRounds {
		b.log("audit: round %d", i+1)
		for _, m := range []struct {
			into *[]float64
			run  func() error
		}{
			{&r.audit, func() error {
				_, err := replay.Run(b.ctx, []auditlog.File{{Path: auditlog.Stdin}}, evaluators,
					auditlog.Options{Stdin: bytes.NewReader(text)})
				return err
			}},
			{&r.floor, func() error { return decodeOnly(text) }},
		} {
			settle()
			begin := clock()
			if err := m.run(); err != nil {
				return r, err
			}
			*m.into = append(*m.into, n/(clock()-begin).Seconds())
		}
	}
	return r, b.ctx.Err()
}

// decodeOnly decodes every line, on all cores, each of which has a part.
func decodeOnly(text []byte) error {
	var group sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	errs := make([]error, workers)
	for w := range workers {
		part := text
		if cut := lineEnd(text, len(text)/(workers-w)); w < workers-1 {
			part, text = text[:cut], text[cut:]
		}
		group.Go(func() {
			var d auditlog.Decoder
			for line := range bytes.Lines(part) {
				if _, errs[w] = d.Decode(line, func(*auditlog.Event) {}); errs[w] != nil {
					return
				}
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// notExamined is the program's note about a log without objects, as most logs are.
const notExamined = "could not be examined by NodeRestriction"

// auditMemory lets the program read a long log, and looks at its memory after each
// eighth of it. Growth is its peak at the end, to that after a quarter.
func (b *bench) auditMemory(state []string, l fileCluster) (t table, growth float64, err error) {
	size := b.sizes.auditBytes
	t = table{
		caption: fmt.Sprintf("**Memory of the program on a log of %s.** The state has %s nodes and %s pods.",
			megabytes(float64(size)), thousands(float64(l.nodes)), thousands(float64(l.pods()))),
		header: []string{"read", "resident", "peak"},
	}
	args := []string{"audit", auditlog.Stdin, "-o", "json"}
	for _, path := range state {
		args = append(args, "--from", path)
	}
	cmd := exec.CommandContext(b.ctx, b.binary, args...)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = io.Discard, &said
	to, err := cmd.StdinPipe()
	if err != nil {
		return t, 0, err
	}
	if err := cmd.Start(); err != nil {
		return t, 0, fmt.Errorf("starting %s: %w", cmd, err)
	}
	const parts = 8
	var peaks []float64
	lines := newAuditLines(l)
	written := 0
	var writeErr error
	for part := range parts {
		for written < size*(part+1)/parts && writeErr == nil {
			var n int
			n, writeErr = to.Write(lines.some(64 << 10))
			written += n
		}
		b.log("audit: %s of the log are read", megabytes(float64(written)))
		peaks = append(peaks, peakMemory(cmd.Process.Pid))
		t.add(megabytes(float64(written)), megabytes(residentMemory(cmd.Process.Pid)), megabytes(peaks[part]))
	}
	writeErr = errors.Join(writeErr, to.Close())
	ended := cmd.Wait()
	if exit := new(exec.ExitError); errors.As(ended, &exit) && exit.ExitCode() == statusUndecided &&
		strings.Contains(said.String(), notExamined) {
		ended = nil
	}
	err = errors.Join(writeErr, outcome(cmd, ended, &said))
	return t, peaks[parts-1] / peaks[parts/4-1], err
}
