package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/node-authorizer/node-authorizer/attest"
)

// sequence answers with its handlers, one after the other; the last one is repeated.
func sequence(handlers ...http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			http.NotFound(w, r)
			return
		}
		next := handlers[0]
		if len(handlers) > 1 {
			handlers = handlers[1:]
		}
		next(w, r)
	}
}

func status(code int, reason string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"Status":{"Allowed":false,"Reason":%q}}`, reason)
	}
}

func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// redeemed runs a client without a network in a synctest bubble, with an interval of 3 and a
// timeout of 30 seconds, and passes the time that it took to check.
func redeemed(t *testing.T, handler http.Handler, check func(m *machine, took time.Duration, err error)) {
	m := newMachine(t, grant)
	m.options.Interval, m.options.Timeout = DefaultInterval, DefaultTimeout
	m.service.Close()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		_, granted, err := m.offline(handler).redeem(t.Context())
		if (err == nil) != (granted == aToken) {
			t.Errorf("token of %d bytes, error %v", len(granted), err)
		}
		m.checkNoToken(err)
		check(m, time.Since(start), err)
	})
}

func TestTemporaryErrorsAreRetried(t *testing.T) {
	for rule, first := range map[string]http.HandlerFunc{
		"busy":        status(429, "TooManyRequests: x"),
		"unavailable": status(503, "BootstrapUnavailable: x"),
		"fault":       status(500, ""),
		"gateway":     status(502, ""),
		"no token": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"Status":{"Allowed":true}}`)
		},
		"the name may soon be free":     status(403, "NameTaken: x"),
		"the old node still exists":     status(403, "AlreadyRegistered: x"),
		"the instance is not shown yet": status(403, "InstanceNotFound: x"),
	} {
		t.Run(rule, func(t *testing.T) {
			redeemed(t, sequence(first, first, grant), func(m *machine, took time.Duration, err error) {
				if err != nil {
					t.Fatal(err)
				}
				if took < DefaultInterval || took > 2*DefaultInterval {
					t.Errorf("took %s for two waits of %s at most", took, DefaultInterval)
				}
				if len(m.lines) != 2 || !strings.Contains(m.lines[0], "; trying again in ") ||
					!strings.HasPrefix(m.lines[1], "the same once more in ") {
					t.Errorf("reported %q", m.lines)
				}
			})
		})
	}
}

// A reason is reported when it changes, and then how often it was the same.
func TestAReasonIsReportedOnce(t *testing.T) {
	busy, unavailable := status(429, "TooManyRequests: x"), status(503, "BootstrapUnavailable: x")
	for rule, test := range map[string]struct {
		handler http.Handler
		want    []string
	}{
		"one reason until the end": {
			sequence(busy),
			[]string{"^the bootstrap service answered TooManyRequests: x; trying again in", "^the same [0-9]+ more times in [23]"},
		},
		"a reason that changes": {
			sequence(busy, busy, busy, unavailable, grant),
			[]string{"TooManyRequests", "^the same 2 more times in [0-9.]+s$", "BootstrapUnavailable.*, for at most 2[0-9.]+s$"},
		},
		"reasons in turn": {sequence(busy, unavailable, busy, grant), []string{"TooMany", "Unavailable", "TooMany"}},
		"no server":       {nil, []string{"^ask the bootstrap service: ", "^the same [0-9]+ more times in [23]"}},
	} {
		t.Run(rule, func(t *testing.T) {
			redeemed(t, test.handler, func(m *machine, _ time.Duration, _ error) {
				if len(m.lines) != len(test.want) {
					t.Fatalf("reported %q, want %q", m.lines, test.want)
				}
				for i, want := range test.want {
					if !regexp.MustCompile(want).MatchString(m.lines[i]) {
						t.Errorf("reported %q, want %q", m.lines[i], want)
					}
				}
			})
		})
	}
}

// Connections that end have another local port each time, which is no other reason.
func TestTheLocalPortIsNoOtherReason(t *testing.T) {
	var lines []string
	p := progress{report: func(line string) { lines = append(lines, line) }}
	for port := range 3 {
		p.failed(fmt.Errorf("read tcp 10.0.0.7:%d->10.0.0.1:443: connection reset by peer", 40000+port), time.Second, time.Minute)
	}
	p.failed(errors.New("read tcp 10.0.0.7:40000->10.0.0.2:443: connection reset by peer"), time.Second, time.Minute)
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "read tcp 10.0.0.7:40000->10.0.0.1:443: connection reset by peer; trying") ||
		!strings.HasPrefix(lines[1], "the same 2 more times in ") || !strings.Contains(lines[2], "10.0.0.2") {
		t.Errorf("reported %q", lines)
	}
}

func TestRetryAfterIsObeyed(t *testing.T) {
	redeemed(t, sequence(status(429, "", "Retry-After", "17"), grant), func(m *machine, took time.Duration, err error) {
		if err != nil || took < 17*time.Second || took > 17*time.Second+DefaultInterval {
			t.Errorf("took %s, error %v", took, err)
		}
	})
	later := func(w http.ResponseWriter, r *http.Request) {
		status(503, "", "Retry-After", time.Now().Add(10*time.Second).UTC().Format(http.TimeFormat))(w, r)
	}
	redeemed(t, sequence(later, grant), func(m *machine, took time.Duration, err error) {
		if err != nil || took < 9*time.Second || took > 10*time.Second+DefaultInterval {
			t.Errorf("with a date: took %s, error %v", took, err)
		}
	})
}

func TestRetryAfterBeyondTheTimeoutEndsWithALastTry(t *testing.T) {
	busy := status(503, "BootstrapUnavailable: x", "Retry-After", "3600")
	redeemed(t, sequence(busy, grant), func(m *machine, took time.Duration, err error) {
		if err != nil || took != DefaultTimeout {
			t.Errorf("took %s, error %v", took, err)
		}
	})
	redeemed(t, sequence(busy), func(m *machine, took time.Duration, err error) {
		const want = "timed out after 30s and 2 tries: the bootstrap service answered BootstrapUnavailable: x"
		if err == nil || err.Error() != want || took != DefaultTimeout {
			t.Errorf("took %s, error %v", took, err)
		}
	})
}

// With the interval and the timeout of kops' units there are tries 5 to 10 seconds apart. The
// last one begins at the timeout.
func TestTheLastTryIsAtTheTimeout(t *testing.T) {
	const interval, timeout = 10 * time.Second, 20 * time.Second
	m := newMachine(t, grant)
	m.options.Interval, m.options.Timeout = interval, timeout
	m.service.Close()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var asked []time.Duration
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				http.NotFound(w, r)
				return
			}
			asked = append(asked, time.Since(start))
			status(503, "BootstrapUnavailable: x")(w, r)
		})
		_, _, err := m.offline(handler).redeem(t.Context())
		want := fmt.Sprintf("timed out after 20s and %d tries: the bootstrap service answered BootstrapUnavailable: x", len(asked))
		if err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
		for i, at := range asked[1:] {
			apart := at - asked[i]
			if last := i+2 == len(asked); apart > interval || apart < interval/2 && !last {
				t.Errorf("tries at %v: %s apart", asked, apart)
			}
		}
		if len(asked) < 3 || len(asked) > 5 || asked[len(asked)-1] != timeout {
			t.Errorf("tries at %v", asked)
		}
	})
}

// The error has the time that the hanging try took.
func TestATryThatHangsAtTheEndIsCutOff(t *testing.T) {
	redeemed(t, sequence(status(500, "", "Retry-After", "60"), hang), func(m *machine, took time.Duration, err error) {
		want := "timed out after 40s and 2 tries: the bootstrap service answered 500 Internal Server Error"
		if took != DefaultTimeout+LastTry || err == nil || err.Error() != want {
			t.Errorf("took %s, error %v", took, err)
		}
	})
}

func TestRetriesEnd(t *testing.T) {
	for _, test := range []struct {
		rule    string
		handler http.Handler
		is      error
		want    string
	}{
		{
			"no server", nil, &GaveUp{},
			`^gave up after 30s and [0-9]+ tries: ask the bootstrap service: Get "https://`,
		},
		{
			"only errors", sequence(status(503, "BootstrapUnavailable: x")), &GaveUp{Connected: true},
			"^timed out after 30s and [0-9]+ tries: the bootstrap service answered BootstrapUnavailable: x$",
		},
		{"no answer", sequence(hang), &GaveUp{Connected: true}, "^timed out after 40s and 2 tries: no answer from https://"},
		{
			"no answer to the last try", sequence(status(500, ""), hang), &GaveUp{Connected: true},
			"^timed out after [0-9.]+s and [23] tries: ",
		},
		{
			"a lasting temporary refusal", sequence(status(403, "NameTaken: x")), &Refused{},
			"^the bootstrap service refuses: NameTaken: x; node-authorizer explain-code NameTaken",
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			redeemed(t, test.handler, func(m *machine, took time.Duration, err error) {
				if fmt.Sprintf("%T", err) != fmt.Sprintf("%T", test.is) || !regexp.MustCompile(test.want).MatchString(err.Error()) {
					t.Errorf("error %T: %v\nwant  %T: %s", err, err, test.is, test.want)
				}
				if took < DefaultTimeout || took > DefaultTimeout+LastTry {
					t.Errorf("took %s", took)
				}
			})
		})
	}
}

func TestAFinalAnswerIsNotRetried(t *testing.T) {
	for _, answer := range []http.HandlerFunc{
		status(403, "NameMismatch: x"), status(403, "AlreadyAttested: x"), status(403, "AttestationRevoked: x"),
		status(403, "InstanceTerminated: x"), status(400, "MalformedRequest: x"), status(404, ""), status(200, "no"),
	} {
		redeemed(t, sequence(answer), func(m *machine, took time.Duration, err error) {
			if refused := new(Refused); !errors.As(err, &refused) || took > 0 || len(m.lines) > 0 {
				t.Errorf("took %s, reported %q, error %v", took, m.lines, err)
			}
		})
	}
}

// failing is a collector whose first calls fail.
type failing struct {
	collector
	times *int
}

func (f failing) Collect(ctx context.Context, about attest.Binding) ([]byte, error) {
	if *f.times--; *f.times >= 0 {
		return nil, errors.New("the metadata service does not answer")
	}
	return f.collector.Collect(ctx, about)
}

func TestEvidenceIsCollectedAgain(t *testing.T) {
	const gaveUp = "^gave up after 30s and [0-9]+ tries: collect this machine's evidence: the metadata service does not answer$"
	for times, want := range map[int]string{2: "", 1000: gaveUp} {
		m := newMachine(t, grant)
		m.options.Interval, m.options.Timeout = DefaultInterval, DefaultTimeout
		m.options.Collector = failing{collector{"worker-1"}, &times}
		synctest.Test(t, func(t *testing.T) {
			_, _, err := m.offline(sequence(grant)).redeem(t.Context())
			if (want == "") != (err == nil) || (err != nil && !regexp.MustCompile(want).MatchString(err.Error())) {
				t.Errorf("error %v, want %q", err, want)
			}
		})
	}
}

func TestRetriesEndWithTheContext(t *testing.T) {
	for rule, handler := range map[string]http.Handler{
		"during a wait":              sequence(status(503, "")),
		"during a request":           sequence(hang),
		"while no server is reached": nil,
	} {
		t.Run(rule, func(t *testing.T) {
			m := newMachine(t, grant)
			m.options.Interval, m.options.Timeout = time.Hour, 24*time.Hour
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, stop)
				start := time.Now()
				_, _, err := m.offline(handler).redeem(ctx)
				if !errors.Is(err, context.Canceled) || time.Since(start) != time.Second {
					t.Errorf("after %s: %v", time.Since(start), err)
				}
			})
		})
	}
}

func TestMachinesThatBootAtOnceDoNotAskAtOnce(t *testing.T) {
	c := &client{Options: Options{Interval: 3 * time.Second}}
	seen := map[time.Duration]bool{}
	for range 1000 {
		wait := c.pause(0)
		if wait < 1500*time.Millisecond || wait > 3*time.Second {
			t.Fatalf("waits %s", wait)
		}
		if asked := c.pause(time.Minute); asked < time.Minute || asked > time.Minute+1500*time.Millisecond {
			t.Fatalf("waits %s where a minute is asked for", asked)
		}
		seen[wait] = true
	}
	if len(seen) < 900 {
		t.Errorf("%d different waits of 1000", len(seen))
	}
}
