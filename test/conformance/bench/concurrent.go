package main

import (
	"context"
	"fmt"
	"math/bits"
	"runtime"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

const concurrentMethod = `One goroutine asks, allowed and refused of all kinds, and notes how long each single
request takes, reading the clock included. Then it does so again while another goroutine
moves pods between nodes and secrets at a steady pace of 10,000 changes a second. Here
time that has passed counts, so anything else that runs on the machine shows.`

// concurrent measures reads while the graph changes.
func (b *bench) concurrent() (section, error) {
	s := section{title: "Requests while pods change", method: concurrentMethod}
	l := b.sizes.own()
	b.log("concurrent: filling")
	c, err := b.filled(l.fill)
	if err != nil {
		return s, err
	}
	all := mixed("", append(
		l.ask(allowedKinds, authorizer.DecisionAllow, b.sizes.questions/4),
		l.ask(refusedKinds, authorizer.DecisionNoOpinion, b.sizes.questions/4)...))
	changes := l.moves(b.sizes.changes)
	var growth, rate pair[[]float64]
	t := table{
		caption: fmt.Sprintf("**Time of single requests.** Reading the clock alone takes %s.", nanoseconds(clockCost())),
		header: []string{
			"", "median, idle", "median, changing", "p99, idle", "p99, changing", "p99.9, idle", "p99.9, changing",
			"changes a second",
		},
	}
	var idle, busy pair[histogram]
	for i := range b.rounds {
		for j := range sides {
			side := sides[(i+j)%len(sides)]
			b.log("concurrent: %v, round %d", side, i+1)
			settle()
			before := b.listen(c[side].authorizer, all)
			w := startWriter(b.ctx, c[side], changes)
			during := b.listen(c[side].authorizer, all)
			rate[side] = append(rate[side], w.stop())
			growth[side] = append(growth[side], during.quantile(.99)/before.quantile(.99))
			idle[side].merge(before)
			busy[side].merge(during)
			if err := b.ctx.Err(); err != nil {
				return s, err
			}
		}
	}
	for _, side := range sides {
		row := []string{side.String()}
		for _, q := range []float64{.5, .99, .999} {
			row = append(row, nanoseconds(idle[side].quantile(q)), nanoseconds(busy[side].quantile(q)))
		}
		t.add(append(row, thousands(median(rate[side])))...)
	}
	s.tables = append(s.tables, t)
	got := spreadOf(growth[ours])
	s.targets = append(s.targets, target{
		what: "99th percentile of requests with 10,000 pod changes a second, against idle",
		want: "at most 2×", got: got.String(), missedBy: got.median / 2, why: whyConcurrent,
	})
	s.remarks = append(s.remarks, fmt.Sprintf("The same figure in-tree is %s, at the pace that it reached.", spreadOf(growth[inTree])))
	return s, nil
}

// moves are pods in two forms each, which differ in node and secret.
func (l layout) moves(n int) [2][]*corev1.Pod {
	var forms [2][]*corev1.Pod
	n = min(n, l.pods)
	for i := range n {
		pod := i * (l.pods / n)
		forms[0] = append(forms[0], l.pod(pod))
		other := l.pod(pod)
		other.UID += "-2"
		other.Spec.NodeName = nodeName((l.nodeOf(pod) + 1) % l.nodes)
		other.Spec.Volumes[0].Secret.SecretName += "-2"
		forms[1] = append(forms[1], other)
	}
	return forms
}

// writer changes pods at a steady pace until it is stopped.
type writer struct {
	cancel  context.CancelFunc
	done    chan struct{}
	begin   time.Time
	changes atomic.Int64
}

// pace is the time between two changes.
const pace = time.Second / 10_000

func startWriter(ctx context.Context, c implementation, forms [2][]*corev1.Pod) *writer {
	ctx, cancel := context.WithCancel(ctx)
	w := &writer{cancel: cancel, done: make(chan struct{}), begin: time.Now()}
	go func() {
		defer close(w.done)
		n := len(forms[0])
		for i := 0; ctx.Err() == nil; i++ {
			time.Sleep(time.Until(w.begin.Add(time.Duration(i) * pace)))
			now := i / n % 2
			c.pods.OnUpdate(forms[now][i%n], forms[1-now][i%n])
			w.changes.Add(1)
		}
	}()
	return w
}

// stop returns the number of changes a second.
func (w *writer) stop() float64 {
	rate := float64(w.changes.Load()) / time.Since(w.begin).Seconds()
	w.cancel()
	<-w.done
	return rate
}

// listen asks for a while and returns how long the requests took.
func (b *bench) listen(a authorizer.Authorizer, q questions) *histogram {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ctx := context.Background()
	h := new(histogram)
	begin := time.Now()
	for end := time.Duration(0); end < b.listenFor && ctx.Err() == nil; {
		for _, attr := range q.attr {
			start := time.Since(begin)
			_, _, _ = a.Authorize(ctx, attr)
			end = time.Since(begin)
			h.add(uint64(end - start))
		}
	}
	return h
}

// clockCost is the time that reading the clock adds, in nanoseconds.
func clockCost() float64 {
	h := new(histogram)
	begin := time.Now()
	for range 100_000 {
		start := time.Since(begin)
		h.add(uint64(time.Since(begin) - start))
	}
	return h.quantile(.5)
}

// histogram counts nanoseconds: exactly below 64, then in steps of a 32nd.
type histogram struct {
	counts [64 * 32]uint64
	total  uint64
}

func (h *histogram) add(ns uint64) {
	h.counts[bucket(ns)]++
	h.total++
}

func bucket(ns uint64) int {
	shift := max(0, bits.Len64(ns)-6)
	return shift*32 + int(ns>>shift)
}

// lowest is the smallest figure in a bucket.
func lowest(bucket int) float64 {
	if bucket < 64 {
		return float64(bucket)
	}
	shift := bucket/32 - 1
	return float64(uint64(bucket-shift*32) << shift)
}

func (h *histogram) merge(other *histogram) {
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.total += other.total
}

// quantile is the figure that a share q of all is not above.
func (h *histogram) quantile(q float64) float64 {
	left := uint64(q * float64(h.total))
	for i, n := range h.counts {
		if left < n {
			return lowest(i)
		}
		left -= n
	}
	return 0
}
