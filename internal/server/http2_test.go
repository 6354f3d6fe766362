package server

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
)

// Thousands of requests fit into the limit of bytes. Only as many are handled as the connection may
// have.
func TestRequestsBeyondTheLimitAreNotRead(t *testing.T) {
	t.Parallel()
	for _, port := range []string{"webhooks", "bootstrap"} {
		for rule, resets := range map[string]bool{"requests": false, "resets": true} {
			t.Run(port+" "+rule, func(t *testing.T) {
				t.Parallel()
				var served atomic.Int32
				counted := func(next http.Handler) http.Handler {
					return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						served.Add(1)
						next.ServeHTTP(w, r)
					})
				}
				s := newTestListeners(t, func(c *v1alpha1.ServerConfiguration) {
					machinesWithTheSameCertificate(c)
				})
				observe := func(_ string, next http.Handler) http.Handler { return counted(next) }
				s.serve(parts{machines: counted(says("token")), observe: observe})
				e := s.listeners.webhook
				if port == "bootstrap" {
					e = s.listeners.bootstrap
				}
				conn := s.dial(e, nil, "h2")
				go func() { _, _ = conn.Write(manyRequests(resets)) }() // until the server closes the connection
				if err := closedByServer(conn); err != nil {
					t.Error(err)
				}
				if limit := guardOf(e).limits.requests; served.Load() > limit {
					t.Errorf("%d requests were handled, want at most %d", served.Load(), limit)
				}
				eventually(t, "the connection is not counted", func() bool { return guardOf(e).held() == 0 })
			})
		}
	}
}

// frame returns an HTTP/2 frame of the first stream, or of the connection, with a payload of the size.
func frame(kind, flags byte, size int) string {
	if kind == 0x4 || kind == 0x6 { // SETTINGS, PING
		return frameOn(0, kind, flags, size)
	}
	return frameOn(1, kind, flags, size)
}

func frameOn(stream, kind, flags byte, size int) string {
	return string([]byte{byte(size >> 16), byte(size >> 8), byte(size), kind, flags, 0, 0, 0, stream}) + strings.Repeat("x", size)
}

// request2 is a request with a body. See rapidReset for its fields.
var request2 = frameOn(1, frameHeaders, flagEndHeaders, 0)[:2] +
	"\x11\x01\x04\x00\x00\x00\x01\x83\x87\x04\x0a/authorize\x01\x01a"

func TestWhichFramesPass(t *testing.T) {
	t.Parallel()
	const (
		reset, settings, ping = 0x3, 0x4, 0x6
		ends                  = flagEndHeaders
	)
	head := func(frames ...string) []string {
		return append([]string{http2Preface, frame(settings, 0, 0)}, frames...)
	}
	many := func(n int, frame string) []string { return slices.Repeat([]string{frame}, n) }
	request, part := frame(frameHeaders, ends, 20), frame(frameContinuation, 0, 0)
	for _, tc := range []struct {
		rule       string
		requests   int32
		bodies     bool
		pass, stop []string
	}{
		{"frames before requests", 1, false, head(frame(ping, 0, 8)), nil},
		{"the last request, and nothing after it", 1, false, head(request), many(1, frame(settings, 1, 0))},
		{
			"its other header fields", 1, false,
			head(frame(frameHeaders, 0, 20), part, frame(frameContinuation, ends, 70000)), many(1, frame(frameData, 1, 5)),
		},
		{"its body, if bodies are read", 1, true, head(request, frame(frameData, 0, 16384), frame(frameData, 1, 0)), many(1, request)},
		{"a reset request counts", 2, true, head(request, frame(reset, 0, 4), request), many(1, request)},
		{"the maximum number of frames", 1, true, head(many(framesPerRequest-1, frame(ping, 0, 8))...), many(1, frame(ping, 0, 8))},
		{
			"the maximum number for each request", 8, true,
			head(many(8*framesPerRequest-1, frame(ping, 0, 8))...), many(1, frame(ping, 0, 8)),
		},
		{
			"parts of header fields count", 1, false,
			head(append(many(1, frame(frameHeaders, 0, 1)), many(framesPerRequest-2, part)...)...), many(1, part),
		},
		{
			"small parts of a body count", 1, true,
			head(append(many(1, request), many(framesPerRequest-2, frame(frameData, 0, largeData-1))...)...),
			many(1, frame(frameData, 0, 1)),
		},
		{
			"large parts of a body do not count", 1, true,
			head(append(many(1, request), many(2*framesPerRequest, frame(frameData, 0, largeData))...)...), nil,
		},
	} {
		for _, chunk := range []int{1, 7, 9, 10, 1000, 1 << 20} {
			t.Run(fmt.Sprintf("%s, %d bytes at once", tc.rule, chunk), func(t *testing.T) {
				t.Parallel()
				limits := connectionLimits{
					perAddress: 2, total: 4, first: time.Hour, idle: time.Hour, requests: tc.requests, bodies: tc.bodies,
				}
				g := newGuard(limits, false, logr.Discard())
				caller := g.admit(&madeUp{address: "10.0.0.1:1000"}).(*guardedConn)
				gate := newFrameGate(nil, caller)
				want := strings.Join(tc.pass, "")
				text := want + strings.Join(tc.stop, "")
				if passed := passThrough(gate, text, chunk); passed != want || gate.ended != (tc.stop != nil) {
					t.Errorf("passed %d bytes of %d, want %d; ended: %v", len(passed), len(text), len(want), gate.ended)
				}
			})
		}
	}
}

// passThrough returns the part of a text that passes a gate, if it arrives in chunks.
func passThrough(gate *frameGate, text string, chunk int) string {
	from := &chunks{strings.NewReader(text), chunk}
	var passed strings.Builder
	for b := make([]byte, 512); ; {
		n, err := gate.readFrom(from, b)
		passed.Write(b[:n])
		if err != nil || n == 0 {
			return passed.String()
		}
	}
}

// chunks is a reader that returns at most a chunk at once.
type chunks struct {
	from io.Reader
	most int
}

func (c *chunks) Read(b []byte) (int, error) { return c.from.Read(b[:min(len(b), c.most)]) }

// The bodies of the last requests may follow frames of further requests.
func TestFramesOfLaterRequestsAreDiscarded(t *testing.T) {
	t.Parallel()
	const ends = flagEndHeaders
	first, second := frameOn(1, frameHeaders, ends, 20), frameOn(3, frameHeaders, ends, 20)
	for _, tc := range []struct {
		rule string
		// The frames that begin with "-" are discarded.
		frames []string
	}{
		{"a request between a request and its body", []string{
			first, second, "-" + frameOn(5, frameHeaders, ends, 30),
			frameOn(1, frameData, 1, 2000), frameOn(3, frameData, 1, 5),
		}},
		{"its body and its other frames", []string{
			first, second, "-" + frameOn(5, frameHeaders, ends, 30), "-" + frameOn(5, frameData, 0, 3000),
			"-" + frameOn(5, 0x8, 0, 4), "-" + frameOn(5, 0x3, 0, 4), frameOn(1, frameData, 1, 1),
		}},
		{"header fields in parts", []string{
			first, second, "-" + frameOn(7, frameHeaders, 0, 30), "-" + frameOn(7, frameContinuation, 0, 0),
			"-" + frameOn(7, frameContinuation, ends, 9), frameOn(3, frameData, 1, 1),
		}},
		{"frames of the connection pass", []string{
			first, second, "-" + frameOn(5, frameHeaders, ends, 3), frame(0x4, 1, 0), frame(0x6, 0, 8),
		}},
	} {
		for _, chunk := range []int{1, 7, 9, 10, 1000, 1 << 20} {
			t.Run(fmt.Sprintf("%s, %d bytes at once", tc.rule, chunk), func(t *testing.T) {
				t.Parallel()
				limits := connectionLimits{perAddress: 2, total: 4, first: time.Hour, idle: time.Hour, requests: 2, bodies: true}
				caller := newGuard(limits, false, logr.Discard()).admit(&madeUp{address: "10.0.0.1:1000"}).(*guardedConn)
				gate := newFrameGate(nil, caller)
				text, want := http2Preface, http2Preface
				for _, f := range tc.frames {
					discarded, ok := strings.CutPrefix(f, "-")
					if text += discarded; !ok {
						want += f
					}
				}
				if passed := passThrough(gate, text, chunk); passed != want || gate.ended {
					t.Errorf("passed %q, want %q; ended: %v", passed, want, gate.ended)
				}
			})
		}
	}
}

// The same frames pass for any size of chunks, and only the allowed number of requests.
func FuzzFrameGate(f *testing.F) {
	f.Add([]byte(http2Preface+frame(0x4, 0, 0)+request2+frame(frameData, 1, 5)+request2), 7, false)
	f.Add(manyRequests(true)[:1<<10], 100, true)
	f.Add([]byte(http2Preface+frame(frameHeaders, 0, 3)+frame(frameContinuation, flagEndHeaders, 3)), 1, true)
	limits := connectionLimits{perAddress: 2, total: 4, first: time.Hour, idle: time.Hour, requests: 2}
	f.Fuzz(func(t *testing.T, text []byte, chunk int, bodies bool) {
		limits := limits
		limits.bodies = bodies
		g := newGuard(limits, false, logr.Discard())
		pass := func(chunk int) (passed string, gate *frameGate) {
			conn := g.admit(&madeUp{address: "10.0.0.1:1000"})
			defer conn.Close()
			gate = newFrameGate(nil, conn.(*guardedConn))
			return passThrough(gate, string(text), max(1, chunk)), gate
		}
		whole, once := pass(len(text))
		passed, gate := pass(chunk)
		if passed != whole || gate.ended != once.ended || gate.frames != once.frames {
			t.Errorf("passed %d bytes in chunks, %d at once; ended: %v, %v", len(passed), len(whole), gate.ended, once.ended)
		}
		if allowed := gate.requests <= limits.requests; !allowed && !gate.ended {
			t.Errorf("%d requests passed", gate.requests)
		}
	})
}
