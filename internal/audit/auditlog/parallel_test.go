package auditlog

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/semaphore"
)

// randomFiles returns files and the events from reading them one after the other.
func randomFiles(t *testing.T, random *rand.Rand) (files []File, ids []string, want Summary) {
	t.Helper()
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range random.IntN(25) {
		var text strings.Builder
		for n := range random.IntN(4) * random.IntN(2500) {
			id := fmt.Sprint(i, "-", n)
			if random.IntN(1000) == 0 && n > 0 {
				text.WriteString("{}\n")
				want.Lines++
				want.Broken = append(want.Broken, &LineError{})
			}
			text.WriteString(line(id))
			ids = append(ids, id)
			want.Lines++
		}
		stored := []byte(text.String())
		switch random.IntN(3) {
		case 0:
			stored = compressed(t, text.String())
		case 1:
			stored = z.EncodeAll(stored, nil)
		}
		files = append(files, file(t, fmt.Sprint(i, ".log"), stored))
	}
	want.Files, want.Events = len(files), len(ids)
	return files, ids, want
}

// Reading ahead does not change the result: it is the same as for one file after the other.
func TestFilesAreReadInParallelInOrder(t *testing.T) {
	logs := uint64(12)
	if testing.Short() {
		logs = 3
	}
	for seed := range logs {
		random := rand.New(rand.NewPCG(seed, 4))
		files, ids, want := randomFiles(t, random)
		var first []string
		for _, bound := range []struct {
			workers, queued int
			ahead           int64
		}{{1, maxQueued, maxAhead}, {2, 1, maxAhead}, {8, maxQueued, maxAhead}, {8, 3, 1}, {8, 1, 200 << 10}, {32, 2, 1 << 20}} {
			var got []string
			var opened []string
			p := newPipeline(Sink[*[]string]{
				New: func() *[]string { return new([]string) },
				Event: func() func(*[]string, *Event) {
					return func(part *[]string, e *Event) { *part = append(*part, e.AuditID) }
				},
				Merge: func(part *[]string) { got = append(got, *part...); *part = (*part)[:0] },
			}, Options{Opened: func(f File, first []byte) { opened = append(opened, f.Path+string(first)) }}, bound.workers)
			p.queued, p.ahead = bound.queued, semaphore.NewWeighted(bound.ahead)
			ctx, cancel := context.WithCancel(t.Context())
			summary, err := p.merge(ctx, p.start(ctx, files))
			cancel()
			if err != nil {
				t.Fatalf("seed %d, %+v: %v", seed, bound, err)
			}
			if !slices.Equal(got, ids) {
				t.Fatalf("seed %d, %+v: got %d events, want %d in order", seed, bound, len(got), len(ids))
			}
			for i := range summary.Broken {
				summary.Broken[i] = &LineError{}
			}
			if !reflect.DeepEqual(summary, want) {
				t.Errorf("seed %d, %+v: got\n%+v, want\n%+v", seed, bound, summary, want)
			}
			if first == nil {
				first = opened
			}
			if len(opened) != len(files) || !slices.Equal(opened, first) {
				t.Errorf("seed %d, %+v: opened %d files, want %d in order", seed, bound, len(opened), len(files))
			}
		}
	}
}

// The error is about the first file that cannot be read, and the events before it are merged.
func TestErrorOfTheFirstFileIsReturned(t *testing.T) {
	var files []File
	var want []string
	for i := range 6 {
		id := fmt.Sprint(i)
		files = append(files, file(t, id+".log", []byte(line(id))))
		if i < 3 {
			want = append(want, id)
		}
	}
	files[3].Path, files[5].Path = filepath.Join(t.TempDir(), "first"), filepath.Join(t.TempDir(), "second")
	for range 20 {
		got, _, err := collected(t.Context(), files, nil)
		if err == nil || !strings.Contains(err.Error(), files[3].Path) || !slices.Equal(got, want) {
			t.Fatalf("got %v, %v", got, err)
		}
	}
}
