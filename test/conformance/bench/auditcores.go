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

	"github.com/node-authorizer/node-authorizer/internal/auditlog"
	"github.com/node-authorizer/node-authorizer/internal/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/replay"
	"github.com/node-authorizer/node-authorizer/internal/source"
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
		header: []string{"", "all cores to one", "one core", fmt.Sprintf("%d cores", cores), "for each core"},
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
		var one, all, ratios []float64
		for i := range b.fillRounds {
			b.log("audit: %s: round %d", name, i+1)
			var rates [2]float64
			for j, n := range []int{1, cores} {
				if rates[j], err = b.auditFilesRate(evaluators, files, lines, n); err != nil {
					return t, nil, err
				}
			}
			one, all, ratios = append(one, rates[0]), append(all, rates[1]), append(ratios, rates[1]/rates[0])
		}
		ratio := median(ratios)
		t.add(name, times(ratio), thousands(median(one)), thousands(median(all)), thousands(median(all)/float64(cores)))
		want := 0.8 * float64(cores)
		targets = append(targets, target{
			what: fmt.Sprintf("`audit` of many files, %s, %d cores to one", name, cores), want: "at least " + times(want), got: times(ratio),
			missedBy: want / ratio, why: whyAuditCores,
		})
	}
	return t, targets, nil
}

func (b *bench) auditFilesRate(evaluators *replay.Evaluators, files []auditlog.File, lines, cores int) (float64, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
	settle()
	begin := time.Now()
	_, read, err := replay.Run(b.ctx, files, evaluators, auditlog.Options{})
	if err == nil && read.Lines != lines {
		err = fmt.Errorf("%d lines of %d were read", read.Lines, lines)
	}
	return float64(lines) / time.Since(begin).Seconds(), err
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
