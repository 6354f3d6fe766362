package bootstrap

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"
)

func address(text string) netip.Addr { return netip.MustParseAddr(text) }

// admit reserves one request in both limits.
func admit(l *limits, source netip.Addr, now time.Time) time.Duration {
	if wait := l.reserveSource(source, now); wait > 0 {
		return wait
	}
	return l.reserveTotal(now)
}

func TestLimits(t *testing.T) {
	both := Limits{PerSecond: 10, Burst: 3, PerSourcePerSecond: 1, PerSourceBurst: 2}
	type step struct {
		after time.Duration
		from  string
		want  time.Duration
	}
	for _, tc := range []struct {
		rule   string
		limits Limits
		steps  []step
	}{
		{"without limits all are admitted", Limits{}, []step{{0, "10.0.0.1", 0}, {0, "10.0.0.1", 0}, {0, "10.0.0.1", 0}}},
		{"a source has its burst, and then its rate", both, []step{
			{0, "10.0.0.1", 0},
			{0, "10.0.0.1", 0},
			{0, "10.0.0.1", time.Second},
			{500 * time.Millisecond, "10.0.0.1", 500 * time.Millisecond},
			{500 * time.Millisecond, "10.0.0.1", 0},
		}},
		{"a request over the limit of its source does not count in the total", both, []step{
			{0, "10.0.0.1", 0},
			{0, "10.0.0.1", 0},
			{0, "10.0.0.1", time.Second},
			{0, "10.0.0.1", time.Second},
			{0, "10.0.0.2", 0},
		}},
		{"all sources together have a limit", both, []step{
			{0, "10.0.0.1", 0},
			{0, "10.0.0.2", 0},
			{0, "10.0.0.3", 0},
			{0, "10.0.0.4", 100 * time.Millisecond},
		}},
		{"an IPv4-mapped IPv6 address is the same source", both, []step{
			{0, "10.0.0.1", 0},
			{0, "::ffff:10.0.0.1", 0},
			{0, "10.0.0.1", time.Second},
		}},
		{"an IPv6 source is its first 64 bits, in any zone", both, []step{
			{0, "2001:db8::1", 0},
			{0, "2001:db8::ffff:1%eth0", 0},
			{0, "2001:db8::2", time.Second},
			{0, "2001:db8:0:1::2", 0},
		}},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			l, now := newLimits(tc.limits), startTime
			for i, step := range tc.steps {
				now = now.Add(step.after)
				if got := admit(l, address(step.from), now); got != step.want {
					t.Errorf("request %d waits %s, want %s", i, got, step.want)
				}
			}
		})
	}
}

// Sources over the maximum share a limit, until sources with a limit of their own are idle.
func TestSourcesAreBounded(t *testing.T) {
	l := newLimits(Limits{PerSourcePerSecond: 1, PerSourceBurst: 1})
	nth := func(n int) netip.Addr {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], 10<<24+uint32(n))
		return netip.AddrFrom4(b)
	}
	for n := range maxSources {
		if wait := admit(l, nth(n), startTime); wait > 0 {
			t.Fatalf("source %d waits %s", n, wait)
		}
	}
	if wait := admit(l, nth(maxSources), startTime); wait > 0 {
		t.Errorf("the first of the others waits %s", wait)
	}
	if wait := admit(l, nth(maxSources+1), startTime); wait == 0 {
		t.Error("the second of the others does not wait: many sources together have no limit")
	}
	if len(l.sources) != maxSources {
		t.Errorf("%d sources are kept", len(l.sources))
	}
	later := startTime.Add(sweepInterval)
	if wait := admit(l, nth(maxSources+2), later); wait > 0 || len(l.sources) != 1 {
		t.Errorf("after a while a new source waits %s, %d are kept", wait, len(l.sources))
	}
}
