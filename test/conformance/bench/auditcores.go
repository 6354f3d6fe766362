package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/audit/auditlog"
	"github.com/node-authorizer/node-authorizer/internal/audit/replay"
	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
)

// auditFileLines is the number of lines of one rotated file.
const auditFileLines = 25_000

const whyAuditCores = "What cores share is the memory and its collector, and the counting, which one thread does in the order of the log."

// auditCores measures many rotated files with one core and with all, alternately.
func (b *bench) auditCores(state *source.State, l fileCluster) (table, []target, error) {
	cores := runtime.GOMAXPROCS(0)
	t := table{
		caption: fmt.Sprintf("**%d files of %s lines, one core and %d.** Lines a second, by the clock.",
			4*cores, thousands(auditFileLines), cores),
		header: []string{
			"", "all cores to one", "one core", fmt.Sprintf("%d cores", cores), "a core, by processor time", "processor time of all to one",
		},
	}
	evaluator, err := evaluate.New(b.ctx, state, evaluate.Options{Features: kubeversion.For(kubeversion.Latest)})
	if err != nil {
		return t, nil, err
	}
	evaluators := &replay.Evaluators{Evaluator: evaluator}
	var targets []target
	for _, compress := range []bool{false, true} {
		name := "not compressed"
		if compress {
			name = "gzip"
		}
		files, lines, err := b.auditFiles(l, 4*cores, compress)
		if err != nil {
			return t, nil, err
		}
		var one, all, ratios, each, costs []float64
		for i := range b.fillRounds {
			var runs [2]auditRun
			for j, n := range []int{1, cores} {
				if runs[j], err = b.auditFilesRun(evaluators, files, lines, n); err != nil {
					return t, nil, err
				}
			}
			b.log("audit: %s: round %d: %s and %s lines a second", name, i+1,
				thousands(runs[0].rate), thousands(runs[1].rate))
			one, all, ratios = append(one, runs[0].rate), append(all, runs[1].rate), append(ratios, runs[1].rate/runs[0].rate)
			each, costs = append(each, float64(lines)/runs[1].processor), append(costs, runs[1].processor/runs[0].processor)
		}
		ratio := median(ratios)
		t.add(name, times(ratio), thousands(median(one)), thousands(median(all)),
			thousands(median(each)), times(median(costs)))
		want := 0.8 * float64(cores)
		targets = append(targets, target{
			what: fmt.Sprintf("`audit` of many files, %s, %d cores to one", name, cores), want: "at least " + times(want),
			got: times(ratio), missedBy: want / ratio, why: whyAuditCores,
		})
	}
	return t, targets, nil
}

// auditRun is one run: lines a second by the clock, and seconds of processor time.
type auditRun struct{ rate, processor float64 }

func (b *bench) auditFilesRun(evaluators *replay.Evaluators, files []auditlog.File, lines, cores int) (auditRun, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
	settle()
	begin, used := time.Now(), processTime()
	part, err := replay.Run(b.ctx, files, evaluators, auditlog.Options{})
	if err == nil && part.Read.Lines != lines {
		err = fmt.Errorf("%d lines of %d were read", part.Read.Lines, lines)
	}
	return auditRun{float64(lines) / time.Since(begin).Seconds(), (processTime() - used).Seconds()}, err
}

// auditFiles writes a rotated log.
func (b *bench) auditFiles(l fileCluster, files int, compress bool) (paths []auditlog.File, lines int, err error) {
	made := newAuditLines(l)
	for i := range files {
		var text bytes.Buffer
		for range auditFileLines {
			text.Write(made.next())
		}
		lines += bytes.Count(text.Bytes(), []byte{'\n'})
		path := filepath.Join(b.cache, fmt.Sprintf("audit-2026-01-31T%02d-%02d-00.000.log", i/60, i%60))
		if compress {
			path += ".gz"
			var stored bytes.Buffer
			w := gzip.NewWriter(&stored)
			_, writeErr := w.Write(text.Bytes())
			if err := errors.Join(writeErr, w.Close()); err != nil {
				return nil, 0, fmt.Errorf("compressing a log: %w", err)
			}
			text = stored
		}
		if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
			return nil, 0, fmt.Errorf("writing a log: %w", err)
		}
		paths = append(paths, auditlog.File{Path: path, Size: int64(text.Len())})
	}
	return paths, lines, nil
}
