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
)

// sequence answers with its handlers, one after the other; the last stays.
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

// redeemed runs a client without a network in a bubble, with an interval of 3 and
// a timeout of 30 seconds, and returns how long it took.
func redeemed(t *testing.T, handler http.Handler, check func(m *machine, took time.Duration, err error)) {
	m := newMachine(t, grant)
	m.options.Interval, m.options.Timeout = DefaultInterval, DefaultTimeout
	m.service.Close()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		_, granted, err := m.offline(handler).redeem(t.Context())
		if (err == nil) != (granted == aToken) {
			t.Errorf("token of %d bytes, error %v", len(granted), err)
		}
		m.keepsTheToken(err)
		check(m, time.Since(begun), err)
	})
}

func TestWhatCanPassIsTriedAgain(t *testing.T) {
	for rule, first := range map[string]http.HandlerFunc{
		"busy":                         status(429, "TooManyRequests: x"),
		"cannot say":                   status(503, "BootstrapUnavailable: x"),
		"fault":                        status(500, ""),
		"gateway":                      status(502, ""),
		"no token":                     func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"Status":{"Allowed":true}}`) },
		"the name is being freed":      status(403, "NameTaken: x"),
		"the old node is still there":  status(403, "AlreadyRegistered: x"),
		"the instance is not told yet": status(403, "InstanceNotFound: x"),
	} {
		t.Run(rule, func(t *testing.T) {
			redeemed(t, sequence(first, first, grant), func(m *machine, took time.Duration, err error) {
				if err != nil {
					t.Fatal(err)
				}
				if took < DefaultInterval || took > 2*DefaultInterval {
					t.Errorf("took %s for two waits of %s at most", took, DefaultInterval)
				}
				if len(m.told) != 2 || !strings.Contains(m.told[0], "; trying again in ") {
					t.Errorf("told %q", m.told)
				}
			})
		})
	}
}

func TestTheServiceIsGivenTheTimeThatItAsksFor(t *testing.T) {
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

func TestAServiceThatAsksForMoreTimeThanThereIsIsAskedOnceMoreAtTheEnd(t *testing.T) {
	busy := status(503, "BootstrapUnavailable: x", "Retry-After", "3600")
	redeemed(t, sequence(busy, grant), func(m *machine, took time.Duration, err error) {
		if err != nil || took != DefaultTimeout {
			t.Errorf("took %s, error %v", took, err)
		}
	})
	redeemed(t, sequence(busy), func(m *machine, took time.Duration, err error) {
		if err == nil || err.Error() != "timed out after 30s and 2 tries: the bootstrap service answered BootstrapUnavailable: x" || took != DefaultTimeout {
			t.Errorf("took %s, error %v", took, err)
		}
	})
}

// TestTheTimeIsUsedUp: with the interval and the timeout of kops' units there are
// tries 5 to 10 seconds apart, the last one when the timeout is over.
func TestTheTimeIsUsedUp(t *testing.T) {
	const interval, timeout = 10 * time.Second, 20 * time.Second
	m := newMachine(t, grant)
	m.options.Interval, m.options.Timeout = interval, timeout
	m.service.Close()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var asked []time.Duration
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				http.NotFound(w, r)
				return
			}
			asked = append(asked, time.Since(begun))
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

// TestATryThatHangsAtTheEndIsCutOff, and the error has the time that it took.
func TestATryThatHangsAtTheEndIsCutOff(t *testing.T) {
	redeemed(t, sequence(status(500, "", "Retry-After", "60"), hang), func(m *machine, took time.Duration, err error) {
		want := "timed out after 40s and 2 tries: the bootstrap service answered 500 Internal Server Error"
		if took != DefaultTimeout+LastTry || err == nil || err.Error() != want {
			t.Errorf("took %s, error %v", took, err)
		}
	})
}

func TestItGivesUpInTheEnd(t *testing.T) {
	for _, test := range []struct {
		rule    string
		handler http.Handler
		is      error
		want    string
	}{
		{"nobody is there", nil, &Unreachable{}, `^gave up after 30s and [0-9]+ tries: ask the bootstrap service: Get "https://`},
		{"nothing but errors", sequence(status(503, "BootstrapUnavailable: x")), &TimedOut{}, "^timed out after 30s and [0-9]+ tries: the bootstrap service answered BootstrapUnavailable: x$"},
		{"no answer at all", sequence(hang), &TimedOut{}, "^timed out after 40s and 2 tries: no answer from https://"},
		{"no answer at last", sequence(status(500, ""), hang), &TimedOut{}, "^timed out after [0-9.]+s and [23] tries: "},
		{"a refusal that did not pass", sequence(status(403, "NameTaken: x")), &Refused{}, "^the bootstrap service refuses: NameTaken: x; docs/reasons.md"},
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

func TestAFinalAnswerEndsItAtOnce(t *testing.T) {
	for _, answer := range []http.HandlerFunc{
		status(403, "NameMismatch: x"), status(403, "AlreadyAttested: x"), status(403, "AttestationRevoked: x"),
		status(403, "InstanceTerminated: x"), status(400, "MalformedRequest: x"), status(404, ""), status(200, "no"),
	} {
		redeemed(t, sequence(answer), func(m *machine, took time.Duration, err error) {
			if refused := new(Refused); !errors.As(err, &refused) || took > 0 || len(m.told) > 0 {
				t.Errorf("took %s, told %q, error %v", took, m.told, err)
			}
		})
	}
}

// failing is a collector that cannot collect the first times.
type failing struct {
	collector
	times *int
}

func (f failing) Collect(ctx context.Context, challenge string) ([]byte, error) {
	if *f.times--; *f.times >= 0 {
		return nil, errors.New("the metadata service does not answer")
	}
	return f.collector.Collect(ctx, challenge)
}

func TestEvidenceIsCollectedAgain(t *testing.T) {
	for times, want := range map[int]string{2: "", 1000: "^gave up after 30s and [0-9]+ tries: collect this machine's evidence: the metadata service does not answer$"} {
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

func TestItEndsWhenItIsToldTo(t *testing.T) {
	for rule, handler := range map[string]http.Handler{
		"while it waits":          sequence(status(503, "")),
		"while it asks":           sequence(hang),
		"while nobody is reached": nil,
	} {
		t.Run(rule, func(t *testing.T) {
			m := newMachine(t, grant)
			m.options.Interval, m.options.Timeout = time.Hour, 24*time.Hour
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, stop)
				begun := time.Now()
				_, _, err := m.offline(handler).redeem(ctx)
				if !errors.Is(err, context.Canceled) || time.Since(begun) != time.Second {
					t.Errorf("after %s: %v", time.Since(begun), err)
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
