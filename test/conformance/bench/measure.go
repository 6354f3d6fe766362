package main

import (
	"context"
	"math"
	"runtime"
	"slices"
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// pair has one figure for each side.
type pair[T any] [len(sides)]T

// rounds has one figure for each side and round, taken in turn.
type rounds pair[[]float64]

// alternate measures both sides in each of n rounds. Which side begins changes
// from round to round, so that a slow drift of the machine hits both alike.
func alternate(n int, measure func(side) float64) rounds {
	var r rounds
	for i := range n {
		for j := range sides {
			s := sides[(i+j)%len(sides)]
			r[s] = append(r[s], measure(s))
		}
	}
	return r
}

// of is the median of a side.
func (r rounds) of(s side) float64 { return median(r[s]) }

// ratio compares the sides within each round.
func (r rounds) ratio() spread {
	var ratios []float64
	for i := range r[ours] {
		ratios = append(ratios, r[inTree][i]/r[ours][i])
	}
	return spreadOf(ratios)
}

// spread is a median with the lowest and the highest figure.
type spread struct{ low, median, high float64 }

func spreadOf(figures []float64) spread {
	return spread{low: slices.Min(figures), median: median(figures), high: slices.Max(figures)}
}

func median(figures []float64) float64 {
	sorted := slices.Sorted(slices.Values(figures))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// perOperation calls pass, which does a number of operations, until it took
// atLeast in all, and returns nanoseconds per operation.
func perOperation(operations int, atLeast time.Duration, pass func()) float64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	passes := 0
	begin := threadTime()
	var took time.Duration
	for took < atLeast || passes == 0 {
		pass()
		passes++
		took = threadTime() - begin
	}
	return float64(took.Nanoseconds()) / float64(passes*operations)
}

// allocations returns how often one of the operations of a pass allocates, on
// average, to a hundredth: the runtime itself allocates now and then.
func allocations(operations int, pass func()) float64 {
	pass()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	pass()
	runtime.ReadMemStats(&after)
	return math.Round(100*float64(after.Mallocs-before.Mallocs)/float64(operations)) / 100
}

// ask asks all questions once.
func ask(a authorizer.Authorizer, q []*authorizer.AttributesRecord) {
	ctx := context.Background()
	for _, attr := range q {
		_, _, _ = a.Authorize(ctx, attr)
	}
}

// settle collects the garbage of earlier work, so that the next measurement
// does not.
func settle() {
	runtime.GC()
	runtime.GC()
}

// heap is the number of bytes on the heap that are in use.
func heap() float64 {
	settle()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
