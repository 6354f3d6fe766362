package source

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/node-authorizer/node-authorizer/internal/staleness"
)

const (
	// probesPerAge is how often the API server is asked whether it still answers
	// from its store, within the age that the state may have.
	probesPerAge = 5
	// compareInterval is how often a kind is compared with a list of it.
	compareInterval = 10 * time.Minute
	// driftTime is how long a watch has to bring what a list has shown.
	driftTime = 30 * time.Second
	// confirmTime is after how long a resource version that went backwards is
	// asked for once more.
	confirmTime = time.Second
	// gapDelay spreads the lists that follow when watches break.
	gapDelay = 2 * time.Second
	// jitter is the share by which intervals differ.
	jitter = 0.2
)

// doubt is what a tap notices that does not fit a watch without gaps.
type doubt uint8

const (
	// doubtGap: a watch ended before its time and was opened again, maybe by
	// another API server, or by one whose store was exchanged.
	doubtGap doubt = iota
	// doubtVersion: a resource version went backwards, or is one that the API
	// server does not have yet.
	doubtVersion
)

// checker asks the API server beside a kind's watch, while that runs: whether it
// answers from its store, at which resource version, and, now and then, for all
// objects, to compare them with the state.
type checker struct {
	tap  *tap
	live *Live
	kind kind
	// period is how long after a question the next one is asked.
	period  time.Duration
	probing time.Time
	// comparing is when the next list is due at the latest.
	comparing time.Time
	retry     wait.Backoff
	// asked is when the last list was asked for.
	asked time.Time
	// blocked is until when nothing is asked after a question that failed, and
	// unlisted until when no list is asked for after one that failed.
	blocked, unlisted time.Time
	listRetry         wait.Backoff
}

func newChecker(t *tap) *checker {
	c := &checker{tap: t, live: t.live, kind: t.endpoint.kind, period: t.live.opts.MaxStaleness / probesPerAge}
	c.plan(time.Now())
	c.compareLater(compareInterval)
	return c
}

// plan says when the next question is asked.
func (c *checker) plan(now time.Time) {
	c.probing = now.Add(wait.Jitter(c.period, jitter))
	c.retry = c.backoff()
	c.blocked = time.Time{}
}

// compareLater says when the next list is due at the latest.
func (c *checker) compareLater(after time.Duration) {
	c.comparing = time.Now().Add(wait.Jitter(after, jitter))
	c.listRetry, c.unlisted = c.backoff(), time.Time{}
}

func (c *checker) backoff() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: jitter, Steps: 100, Cap: c.period / 2}
}

// silent is when a kind has been silent for so long that it is listed: before it
// is too old.
func (c *checker) silent() time.Time {
	heard := c.live.heardAt(c.kind)
	if heard.IsZero() {
		return time.Now().Add(c.period)
	}
	return time.Now().Add(c.live.opts.MaxStaleness*3/4 - staleness.Since(c.live.ages.Now(), heard))
}

// next is when the next question is due.
func (c *checker) next() time.Time {
	list := later(earlier(c.comparing, c.silent()), c.unlisted)
	return later(earlier(c.probing, list), c.blocked)
}

// run asks until the context ends.
func (c *checker) run(ctx context.Context) {
	for {
		// A timer stands still while the machine is suspended, so none is long.
		timer := time.NewTimer(min(time.Until(c.next()), c.period/4))
		select {
		case <-timer.C:
			if !time.Now().Before(c.next()) {
				c.step(ctx)
			}
		case d := <-c.tap.doubts:
			c.doubted(d)
		case <-ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

func (c *checker) doubted(d doubt) {
	switch d {
	case doubtGap:
		c.comparing = earlier(c.comparing, time.Now().Add(wait.Jitter(gapDelay, 1)))
	case doubtVersion:
		c.probing = time.Now()
	}
}

// step does what is due.
func (c *checker) step(ctx context.Context) {
	if !c.live.isFollowed(c.kind) || c.tap.isListing() {
		c.blocked = time.Now().Add(c.period / 2)
		return
	}
	// A list that fails again and again must not keep the small questions away.
	if err := c.probeIfDue(ctx); err != nil {
		c.blocked = time.Now().Add(c.retry.Step())
		c.failed(ctx, err)
		return
	}
	silent := !time.Now().Before(c.silent())
	if !silent && time.Now().Before(c.comparing) || time.Now().Before(c.unlisted) {
		return
	}
	switch done, err := c.compare(ctx); {
	case err != nil && silent:
		c.unlisted = time.Now().Add(c.listRetry.Step())
		c.failed(ctx, err)
	case err != nil:
		c.compareLater(c.live.opts.MaxStaleness)
		c.failed(ctx, err)
	case !done:
		c.unlisted = time.Now().Add(c.period / 2)
	default:
		c.compareLater(compareInterval)
		if silent && !c.live.heardAt(c.kind).After(c.asked) {
			c.tap.reopen() // the watch brought nothing while the list was read either
		}
	}
}

func (c *checker) failed(ctx context.Context, err error) {
	if ctx.Err() == nil {
		c.live.refused(c.kind, fmt.Errorf("list %s: %w", c.tap.endpoint.resource.GroupResource(), err))
		_ = c.tap.failed("list", err)
	}
}

// probeIfDue asks the small question at its time, also while a long list is read.
func (c *checker) probeIfDue(ctx context.Context) error {
	if time.Now().Before(c.probing) {
		return nil
	}
	if err := c.probe(ctx); err != nil {
		return err
	}
	c.plan(time.Now())
	return nil
}

// probe asks for one object, which the API server takes from its store.
func (c *checker) probe(ctx context.Context) error {
	began, position := c.live.ages.Now(), c.live.positionOf(c.kind)
	version, err := c.version(ctx)
	if err != nil {
		return err
	}
	if before(version, position) {
		return c.confirm(ctx, position)
	}
	c.live.proven(c.tap.epoch, c.kind, began)
	return nil
}

// version is the resource version of the API server's store.
func (c *checker) version(ctx context.Context) (string, error) {
	page, err := c.page(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return "", err
	}
	return versionOf(page), nil
}

// page gets a page of a list, within the time that is left for it.
func (c *checker) page(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, c.period)
	defer cancel()
	return c.tap.endpoint.page(ctx, opts)
}

// confirm asks once more for a resource version that was lower than one that the
// API server had told before, and drops the state if it still is. One answer is
// not enough: not every store behind an API server is as strict as etcd.
func (c *checker) confirm(ctx context.Context, position string) error {
	if !sleep(ctx, confirmTime) {
		return ctx.Err()
	}
	version, err := c.version(ctx)
	if err != nil || !before(version, position) {
		return err
	}
	c.live.reset(c.tap.epoch, fmt.Sprintf("the resource version of %s went from %s back to %s: the API server's store was restored or exchanged",
		c.tap.endpoint.resource.GroupResource(), position, version))
	return nil
}

// compare lists a kind and puts right what the state has otherwise. Differences
// of which the watch does not tell soon after are those of another history. It
// returns false if the list came to nothing.
func (c *checker) compare(ctx context.Context) (done bool, err error) {
	began, position := c.live.ages.Now(), c.live.positionOf(c.kind)
	c.asked = began
	m := c.tap.compare()
	if m == nil {
		return false, nil // it is being listed anyway
	}
	defer c.tap.compared(m)
	opts := metav1.ListOptions{Limit: pageSize}
	for first := true; first || opts.Continue != ""; first = false {
		page, err := c.page(ctx, opts)
		if err != nil {
			if apierrors.IsResourceExpired(err) {
				err = fmt.Errorf("the list took too long: %w", err)
			}
			return false, err
		}
		if first && before(versionOf(page), position) {
			return false, c.confirm(ctx, position)
		}
		c.live.answered(c.tap.epoch, c.kind, versionOf(page))
		if goOn, err := c.tap.comparePage(m, page); err != nil || !goOn {
			return false, err
		}
		opts.Continue = continuation(page)
		if err := c.probeIfDue(ctx); err != nil {
			return false, err
		}
	}
	if !c.tap.compareEnd(m) {
		return false, nil
	}
	c.live.read(c.tap.epoch, c.kind, began)
	return true, c.judge(ctx, m)
}

// judge waits until the watch has brought what the list had shown, and drops the
// state if it does not.
func (c *checker) judge(ctx context.Context, m *comparison) error {
	deadline := time.Now().Add(driftTime)
	for {
		unexplained, example := c.tap.unexplained(m)
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
		c.live.differ(c.kind, unexplained)
		c.live.reset(c.tap.epoch, fmt.Sprintf("%d objects of %s are not as the watch has them, such as %s: the API server's store was restored or exchanged, or the watch lost changes",
			unexplained, c.tap.endpoint.resource.GroupResource(), example))
		return nil
	}
}

func versionOf(list runtime.Object) string {
	m, err := meta.ListAccessor(list)
	if err != nil {
		return ""
	}
	return m.GetResourceVersion()
}
