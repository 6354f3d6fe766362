package source

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/node-authorizer/node-authorizer/internal/staleness"
)

const (
	// probesPerAge is how many probes of the API server's store fit into
	// MaxStaleness.
	probesPerAge = 5
	// confirmDelay is the delay before a resource version that went backwards is read
	// again.
	confirmDelay = time.Second
	// gapDelay spreads the lists after watches break.
	gapDelay = 2 * time.Second
	// jitter is the maximum relative increase of intervals.
	jitter = 0.2
)

// anomaly is a sign that a watch may have missed changes.
type anomaly uint8

const (
	// anomalyGap: a watch ended early and was opened again, possibly at another API
	// server, or at one whose store was replaced.
	anomalyGap anomaly = iota
	// anomalyVersion: a resource version went backwards, or is one that the API
	// server does not have yet.
	anomalyVersion
)

// checker checks a kind beside its watch. Probes ask whether the API server still
// answers from its store, and at which resource version. Comparisons list all objects
// and compare them with the state.
type checker struct {
	lw   *listWatcher
	live *Live
	kind kind
	// interval is the time between two probes.
	interval time.Duration
	probeAt  time.Time
	// compareAt is when the next comparison is due at the latest.
	compareAt  time.Time
	probeRetry wait.Backoff
	// requested is when the last comparison was started.
	requested time.Time
	// After a probe failed, nothing is requested until pausedUntil; after a list
	// failed, no list is requested until listPausedUntil.
	pausedUntil, listPausedUntil time.Time
	listRetry                    wait.Backoff
}

func newChecker(lw *listWatcher) *checker {
	c := &checker{lw: lw, live: lw.live, kind: lw.endpoint.kind, interval: lw.live.opts.MaxStaleness / probesPerAge}
	c.scheduleProbe(time.Now())
	c.scheduleComparison(staleness.ListInterval(lw.live.opts.MaxStaleness))
	return c
}

// scheduleProbe schedules the next probe.
func (c *checker) scheduleProbe(now time.Time) {
	c.probeAt = now.Add(wait.Jitter(c.interval, jitter))
	c.probeRetry = c.backoff()
	c.pausedUntil = time.Time{}
}

// scheduleComparison schedules the next comparison.
func (c *checker) scheduleComparison(after time.Duration) {
	c.compareAt = time.Now().Add(after)
	c.listRetry, c.listPausedUntil = c.backoff(), time.Time{}
}

func (c *checker) backoff() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: jitter, Steps: 100, Cap: c.interval / 2}
}

// silenceDeadline is when a kind without events is listed, before it becomes too old.
func (c *checker) silenceDeadline() time.Time {
	observed := c.live.status(c.kind).observed
	if observed.IsZero() {
		return time.Now().Add(c.interval)
	}
	return time.Now().Add(c.live.opts.MaxStaleness*3/4 - staleness.Since(c.live.ages.Now(), observed))
}

// nextDue is when the next request is due.
func (c *checker) nextDue() time.Time {
	list := later(staleness.Earlier(c.compareAt, c.silenceDeadline()), c.listPausedUntil)
	return later(staleness.Earlier(c.probeAt, list), c.pausedUntil)
}

// run probes and compares until the context ends.
func (c *checker) run(ctx context.Context) {
	for {
		// Timers stop while the machine is suspended, so they are short.
		timer := time.NewTimer(min(time.Until(c.nextDue()), c.interval/4))
		select {
		case <-timer.C:
			if !time.Now().Before(c.nextDue()) {
				c.runDue(ctx)
			}
		case d := <-c.lw.anomalies:
			c.handleAnomaly(d)
		case <-ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

func (c *checker) handleAnomaly(d anomaly) {
	switch d {
	case anomalyGap:
		c.compareAt = staleness.Earlier(c.compareAt, time.Now().Add(wait.Jitter(gapDelay, 1)))
	case anomalyVersion:
		c.probeAt = time.Now()
	}
}

// runDue sends the requests that are due.
func (c *checker) runDue(ctx context.Context) {
	if c.live.status(c.kind).Following != Followed || c.lw.isListing() {
		c.pausedUntil = time.Now().Add(c.interval / 2)
		return
	}
	// A list that keeps failing must not prevent probes.
	if err := c.probeIfDue(ctx); err != nil {
		c.pausedUntil = time.Now().Add(c.probeRetry.Step())
		c.recordFailure(ctx, err)
		return
	}
	silent := !time.Now().Before(c.silenceDeadline())
	if !silent && time.Now().Before(c.compareAt) || time.Now().Before(c.listPausedUntil) {
		return
	}
	began := time.Now()
	switch done, err := c.compare(ctx); {
	case err != nil:
		c.listPausedUntil = time.Now().Add(c.listRetry.Step())
		c.recordFailure(ctx, err)
	case !done:
		c.listPausedUntil = time.Now().Add(c.interval / 2)
	default:
		c.scheduleComparison(staleness.ListInterval(c.live.opts.MaxStaleness) - time.Since(began))
		if silent && !c.live.status(c.kind).observed.After(c.requested) {
			c.lw.reopen() // the watch delivered nothing while the list was read either
		}
	}
}

func (c *checker) recordFailure(ctx context.Context, err error) {
	if ctx.Err() == nil {
		failed := fmt.Errorf("list %s: %w", c.lw.endpoint.resource.GroupResource(), err)
		c.live.change(c.lw.epoch, c.kind, func(f *kindStatus) { f.checkErr = failed })
		_ = c.lw.handleError("list", err)
	}
}

// probeIfDue probes if a probe is due, also while a long list is read.
func (c *checker) probeIfDue(ctx context.Context) error {
	if time.Now().Before(c.probeAt) {
		return nil
	}
	if err := c.probe(ctx); err != nil {
		return err
	}
	c.scheduleProbe(time.Now())
	return nil
}

// probe lists one object, which the API server reads from its store.
func (c *checker) probe(ctx context.Context) error {
	started, known := c.live.ages.Now(), c.live.status(c.kind).resourceVersion
	version, err := c.version(ctx)
	if err != nil {
		return err
	}
	if staleness.Older(version, known) {
		return c.confirmRollback(ctx, known)
	}
	c.live.storeConfirmed(c.lw.epoch, c.kind, started)
	return nil
}

// version is the resource version of the API server's store.
func (c *checker) version(ctx context.Context) (string, error) {
	page, err := c.page(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return "", err
	}
	return listMeta(page).GetResourceVersion(), nil
}

// page gets a page of a list, with a time limit.
func (c *checker) page(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, c.interval)
	defer cancel()
	return c.lw.endpoint.page(ctx, opts)
}

// confirmRollback reads a resource version again that was lower than one that the API
// server had sent before, and drops the state if it still is. One answer is not
// enough: not every store behind an API server is as strict as etcd.
func (c *checker) confirmRollback(ctx context.Context, known string) error {
	if !sleep(ctx, confirmDelay) {
		return ctx.Err()
	}
	version, err := c.version(ctx)
	if err != nil || !staleness.Older(version, known) {
		return err
	}
	c.live.reset(c.lw.epoch, fmt.Sprintf("the resource version of %s went from %s back to %s: the API server's store was "+
		"restored or replaced",
		c.lw.endpoint.resource.GroupResource(), known, version))
	return nil
}

// compare lists a kind and corrects the state where it differs. Differences without a
// watch event soon after mean that the store was replaced or events were lost. It
// returns false if the comparison was abandoned.
func (c *checker) compare(ctx context.Context) (done bool, err error) {
	started, known := c.live.ages.Now(), c.live.status(c.kind).resourceVersion
	c.requested = started
	m := c.lw.startComparison()
	if m == nil {
		return false, nil // the reflector lists the kind
	}
	defer c.lw.endComparison(m)
	opts := metav1.ListOptions{Limit: pageSize}
	version := ""
	for first := true; first || opts.Continue != ""; first = false {
		page, err := c.page(ctx, opts)
		if err != nil {
			if apierrors.IsResourceExpired(err) {
				err = fmt.Errorf("the list took too long: %w", err)
			}
			return false, err
		}
		if first && staleness.Older(listMeta(page).GetResourceVersion(), known) {
			return false, c.confirmRollback(ctx, known)
		}
		version = listMeta(page).GetResourceVersion()
		c.live.recordPage(c.lw.epoch, c.kind, version)
		if current, err := c.lw.comparePage(m, page); err != nil || !current {
			return false, err
		}
		opts.Continue = listMeta(page).GetContinue()
		if err := c.probeIfDue(ctx); err != nil {
			return false, err
		}
	}
	if err := c.lw.verify(ctx, m.sample, version); err != nil {
		return false, err
	}
	if !c.lw.removeUnlisted(m) {
		return false, nil
	}
	c.live.listCompleted(c.lw.epoch, c.kind, started)
	return true, c.awaitWatch(ctx, m)
}

// awaitWatch waits until the watch has delivered the differences, and drops the state
// if it does not.
func (c *checker) awaitWatch(ctx context.Context, m *comparison) error {
	deadline := time.Now().Add(c.live.opts.MaxStaleness / 4)
	for {
		unexplained, example := c.lw.unexplained(m)
		if unexplained == 0 {
			return nil
		}
		if time.Now().Before(deadline) {
			if !sleep(ctx, time.Second) {
				return ctx.Err()
			}
			if err := c.probeIfDue(ctx); err != nil {
				return err
			}
			continue
		}
		c.live.change(c.lw.epoch, c.kind, func(f *kindStatus) { f.Differences += uint64(unexplained) })
		c.live.reset(c.lw.epoch, fmt.Sprintf("%d objects of %s differ from what the watch delivered, such as %s: the API "+
			"server's store was restored or replaced, or the watch lost events",
			unexplained, c.lw.endpoint.resource.GroupResource(), example))
		return nil
	}
}
