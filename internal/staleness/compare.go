package staleness

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// pageSize is the limit of a list request of a comparison.
	pageSize = 500
	// jitter spreads the comparisons of the servers.
	jitter = 0.2
)

// ListInterval returns the time between two comparisons of a copy with a list, of which the copy may be as old as the
// limit without a confirmation. So there is time for a list to fail, and another before the copy is too old.
func ListInterval(limit time.Duration) time.Duration { return wait.Jitter(limit*5/8, jitter) }

// DriftTimeout returns how long after a list the watch may take to deliver the same.
func DriftTimeout(limit time.Duration) time.Duration { return limit / 4 }

// silence is how long a watch may deliver nothing before it is ended.
func (a *Age) silence() time.Duration {
	if a.max <= 0 {
		return math.MaxInt64
	}
	return a.max * 3 / 4
}

// compareUntil compares the copy with lists until they differ for good. Then it closes the channel.
func (s *stream) compareUntil(ctx context.Context, differs chan<- struct{}) {
	limit := s.age.max
	for pause := ListInterval(limit); sleep(ctx, pause); {
		requested := s.age.deadline.Now()
		same, err := s.compare(ctx)
		_, other := errors.AsType[*HistoryError](err)
		switch {
		case ctx.Err() != nil:
			return
		case other:
			close(differs)
			return
		case err != nil:
			s.age.notListed(err)
			pause = limit / 16
		case !same:
			s.age.contradict(errDiffers)
			close(differs)
			return
		default:
			s.age.markListed(requested)
			pause = ListInterval(limit)
		}
	}
}

// compare reports whether the copy is what a list says, after the time that the watch may need to deliver it. The list
// counts for each object without an event since it was requested.
func (s *stream) compare(ctx context.Context) (bool, error) {
	if s.reading() {
		return false, errReading
	}
	s.mu.Lock()
	s.changed = map[objectKey]bool{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.changed = nil
		s.mu.Unlock()
	}()
	listed, err := s.listAll(ctx)
	if err != nil {
		return false, err
	}
	for deadline := time.Now().Add(DriftTimeout(s.age.max)); !s.agrees(listed); {
		if !time.Now().Before(deadline) || !sleep(ctx, time.Second) {
			return false, nil
		}
	}
	return true, nil
}

// listAll lists all objects, and compares the list with the API server's store.
func (s *stream) listAll(ctx context.Context) (map[objectKey]objectVersion, error) {
	ctx, cancel := context.WithTimeout(ctx, s.age.max/2)
	defer cancel()
	s.mu.Lock()
	listed := s.newListing(s.age.deadline.Now())
	s.mu.Unlock()
	for opts := (metav1.ListOptions{Limit: pageSize}); ; {
		page, err := s.list(ctx, opts)
		if err != nil {
			return nil, err
		}
		if err := listed.add(page); err != nil {
			return nil, err
		}
		m, err := meta.ListAccessor(page)
		if err != nil {
			return nil, fmt.Errorf("read a list: %w", err)
		}
		if opts.Continue = m.GetContinue(); opts.Continue == "" {
			return listed.versions, s.verify(ctx, listed, m.GetResourceVersion())
		}
	}
}

// agrees reports whether the copy and a list differ only in objects that have changed since.
func (s *stream) agrees(listed map[objectKey]objectVersion) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	unchanged := func(of map[objectKey]objectVersion) map[objectKey]objectVersion {
		of = maps.Clone(of)
		maps.DeleteFunc(of, func(key objectKey, _ objectVersion) bool { return s.changed[key] })
		return of
	}
	return maps.Equal(unchanged(s.versions), unchanged(listed))
}

var errReading = errors.New("it is being read")

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
