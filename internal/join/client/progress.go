package client

import (
	"fmt"
	"regexp"
	"time"
)

// progress reports failed tries: a reason once, and at its end how often it was the same.
type progress struct {
	report func(line string)
	// reason is the reason of the last try without what differs for each connection; empty before the first.
	reason string
	// repeats is how many tries after the one at since failed for the same reason.
	repeats int
	since   time.Time
}

// localAddress is the machine's end of a connection in an error of package net, which has another port each
// time: "read tcp 10.0.0.7:40312->10.0.0.1:443: connection reset by peer".
var localAddress = regexp.MustCompile(`\S+->`)

// failed reports a try that is repeated after a wait, and for at most the time that is left.
func (p *progress) failed(err error, wait, left time.Duration) {
	reason := localAddress.ReplaceAllString(err.Error(), "")
	if reason == p.reason {
		p.repeats++
		return
	}
	p.end()
	p.reason, p.since = reason, time.Now()
	p.report(fmt.Sprintf("%v; trying again in %s, for at most %s", err, wait.Round(time.Millisecond), left.Round(time.Millisecond)))
}

// end reports how often the last reason was repeated.
func (p *progress) end() {
	if p.repeats > 0 {
		p.report(fmt.Sprintf("the same %s in %s", times(p.repeats), time.Since(p.since).Round(time.Millisecond)))
	}
	p.repeats = 0
}

func times(n int) string {
	if n == 1 {
		return "once more"
	}
	return fmt.Sprintf("%d more times", n)
}
