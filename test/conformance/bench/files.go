package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const filesMethod = `The program itself reads a cluster from a file: nodes, pods, persistent volumes and
volume attachments as ` + "`kubectl get -A -o json`" + ` prints them, and a snapshot that it
makes of that. Every node has pods of the same daemon sets, replicas of deployments, and
pods with a volume; each pod has a secret, a configmap and the token volume that every
pod has. "After loading" is from the last few bytes of standard input, which are held
back until the program has dealt with all others, until the last byte of its answer. That input is the
snapshot.`

// files measures the program on a large cluster from a file.
func (b *bench) files() (section, error) {
	s := section{title: "A large cluster from a file", method: filesMethod}
	l := fileCluster{nodes: b.sizes.fileNodes, podsPerNode: b.sizes.podsPerNode}
	b.log("files: writing the input, if it is not there yet")
	manifests, err := l.file(b.cache)
	if err != nil {
		return s, err
	}
	snapshot := filepath.Join(b.cache, "snapshot")
	t := table{
		caption: fmt.Sprintf("**Reading %s nodes with %s pods.**", thousands(float64(l.nodes)), thousands(float64(l.pods()))),
		header:  []string{"", "file", "time", "objects a second", "processor time", "peak memory"},
	}
	cheapest := []string{"can-i", "get", "nodes/" + nodeName(0), "--node", nodeName(0)}
	for _, r := range []struct {
		what, file string
		args       []string
	}{
		{"answer from the manifests", manifests, append(cheapest, "--from", manifests)},
		{"make a snapshot", manifests, []string{"snapshot", "--from", manifests, "-o", snapshot}},
		{"answer from the snapshot", snapshot, append(cheapest, "--from", snapshot)},
	} {
		if _, err := b.addRun(&t, l.objects(), r.what, r.file, r.args); err != nil {
			return s, err
		}
	}
	s.tables = append(s.tables, t)
	answers, err := b.afterLoading(&s, l, snapshot)
	if err != nil {
		return s, err
	}
	s.tables = append(s.tables, answers)
	s.remarks = append(s.remarks, loadingRemark)
	return s, nil
}

// addRun runs the program and adds its time and memory. It returns its peak memory.
func (b *bench) addRun(t *table, objects int, what, file string, args []string) (peak float64, err error) {
	var took, busy []float64
	for range b.fileRounds {
		b.log("%s %s", args[0], what)
		u, err := b.program(args...)
		if err != nil {
			return 0, err
		}
		took = append(took, u.time.Seconds())
		busy = append(busy, u.processor.Seconds())
		peak = max(peak, u.peak)
	}
	info, err := os.Stat(file)
	if err != nil {
		return 0, err
	}
	t.add(what, megabytes(float64(info.Size())), fmt.Sprintf("%.1f s", median(took)), thousands(float64(objects)/median(took)),
		fmt.Sprintf("%.1f s", median(busy)), megabytes(peak))
	return peak, nil
}

// used is the resource usage of a run of the program.
type used struct {
	time, processor time.Duration
	peak            float64 // of memory, in bytes
}

// program runs node-authorizer.
func (b *bench) program(args ...string) (used, error) { return b.programReading(os.DevNull, args...) }

// programReading runs node-authorizer with a file as its standard input.
func (b *bench) programReading(file string, args ...string) (used, error) {
	in, err := os.Open(file)
	if err != nil {
		return used{}, err
	}
	defer in.Close()
	cmd := exec.CommandContext(b.ctx, b.binary, args...)
	cmd.Stdin = in
	var said strings.Builder
	cmd.Stderr = &said
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return used{}, fmt.Errorf("starting %s: %w", cmd, err)
	}
	ended := make(chan error)
	go func() { ended <- cmd.Wait() }()
	var u used
	for {
		select {
		case err := <-ended:
			u.time = time.Since(begin)
			u.processor = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
			return u, outcome(cmd, err, &said)
		case <-time.After(5 * time.Millisecond):
			u.peak = max(u.peak, peakMemory(cmd.Process.Pid))
		}
	}
}

// The exit statuses of commands that answered.
const (
	statusRefused   = 1
	statusUndecided = 2 // of errors too, which say what is wrong
)

// outcome explains how a program ended. A refusal is not an error, nor is a question that could not be
// decided.
func outcome(cmd *exec.Cmd, err error, said fmt.Stringer) error {
	status := 0
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		status = exit.ExitCode()
	}
	switch {
	case err == nil, status == statusRefused, status == statusUndecided && !strings.Contains(said.String(), "error: "):
		return nil
	}
	return fmt.Errorf("running %s: %w: %s", cmd, err, said)
}

// afterLoading measures the time of questions when the state is loaded.
func (b *bench) afterLoading(s *section, l fileCluster, snapshot string) (table, error) {
	t := table{caption: "**After loading.**", header: []string{"question", "time", "answer"}}
	app := l.appOf(0, 0)
	for _, q := range []struct {
		what string
		args []string
	}{
		{"`reach` of a node", []string{"reach", nodeName(l.nodes / 2)}},
		{"`reach` of a node, as JSON", []string{"reach", nodeName(l.nodes / 2), "-o", "json"}},
		{
			"`who-can` get a secret of a deployment",
			[]string{"who-can", "get", "secrets/" + appName(app) + "-credentials", "-n", appNamespace(app)},
		},
		{
			"`who-can` get a secret that every node uses",
			[]string{"who-can", "get", "secrets/" + daemonName(0) + "-token", "-n", daemonNamespace},
		},
		{
			"`who-can` get a secret that every node uses, as JSON",
			[]string{"who-can", "get", "secrets/" + daemonName(0) + "-token", "-n", daemonNamespace, "-o", "json"},
		},
	} {
		var took []float64
		var size int
		for range b.fileRounds {
			b.log("files: %s", strings.Join(q.args, " "))
			got, err := b.answer(snapshot, q.args)
			if err != nil {
				return t, err
			}
			took, size = append(took, float64(got.took.Nanoseconds())), got.size
		}
		t.add(q.what, nanoseconds(median(took)), megabytes(float64(size)))
		s.targets = append(s.targets, atMost(q.what+", after loading", 100e6, median(took), nanoseconds, whyAnswers))
	}
	return t, nil
}

// answered is what came after the input.
type answered struct {
	took time.Duration
	size int
	// loading and processor are the processor time before and after the last bytes.
	loading, processor time.Duration
}

// answer gives the program the file as its standard input, but for the last few
// bytes, which follow when it has nothing left to do. What it does from then on
// it could not do before: find the end of its input, and answer.
func (b *bench) answer(file string, args []string) (answered, error) {
	in, err := os.Open(file)
	if err != nil {
		return answered{}, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return answered{}, err
	}
	cmd := exec.CommandContext(b.ctx, b.binary, append(args, "--from", "-")...)
	out := new(lastWrite)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = out, &said
	to, err := cmd.StdinPipe()
	if err != nil {
		return answered{}, err
	}
	if err := cmd.Start(); err != nil {
		return answered{}, fmt.Errorf("starting %s: %w", cmd, err)
	}
	const rest = 8 // the end of the index
	_, copyErr := io.CopyN(to, in, info.Size()-rest)
	waitIdle(cmd.Process.Pid)
	loading := processTimeOf(cmd.Process.Pid)
	begin := time.Now()
	_, restErr := io.Copy(to, in)
	err = errors.Join(copyErr, restErr, to.Close(), outcome(cmd, cmd.Wait(), &said))
	all := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return answered{took: out.last.Sub(begin), size: out.size, loading: loading, processor: all - loading}, err
}

// waitIdle waits until a process uses hardly any processor time.
func waitIdle(pid int) {
	const pause, idle = 500 * time.Millisecond, 5 * time.Millisecond
	for used := processTimeOf(pid); ; {
		time.Sleep(pause)
		before := used
		if used = processTimeOf(pid); used-before < idle {
			return
		}
	}
}

// lastWrite notes when it was last written to.
type lastWrite struct {
	last time.Time
	size int
}

func (w *lastWrite) Write(p []byte) (int, error) {
	w.last = time.Now()
	w.size += len(p)
	return len(p), nil
}
