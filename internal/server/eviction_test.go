package server

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
)

// madeUp is a fake connection from an address.
type madeUp struct {
	net.Conn
	address string
	closed  atomic.Bool
}

func (m *madeUp) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(m.address))
}

func (m *madeUp) Write(b []byte) (int, error) { return len(b), nil }

func (m *madeUp) Close() error {
	m.closed.Store(true)
	return nil
}

// step is an event on one of the connections of a test.
type step struct {
	what string // see evicted
	conn int
	from string
}

// evicted returns the connections that are closed after the steps. Each step takes 100 ms. Connections
// are numbered in order of arrival.
func evicted(t *testing.T, steps []step) []int {
	t.Helper()
	limits := connectionLimits{perAddress: 2, total: 4, first: time.Hour, idle: time.Hour}
	g := newGuard(limits, false, logr.Discard())
	g.handshakes = make(chan struct{}, 8)
	var all []*madeUp
	var conns []*guardedConn
	for _, s := range steps {
		switch s.what {
		case "connect":
			m := &madeUp{address: s.from}
			conn, _ := g.admit(m).(*guardedConn)
			all, conns = append(all, m), append(conns, conn)
		case "request":
			conns[s.conn].shaken.Store(true)
			conns[s.conn].changeRequests(1)
		case "answer":
			conns[s.conn].changeRequests(-1)
		case "wait for the body":
			conns[s.conn].changeWait(-1, 0)
		case "the body is there":
			conns[s.conn].changeWait(1, 0)
		case "write":
			conns[s.conn].changeWait(0, 1)
		case "compute":
			if err := conns[s.conn].compute(); err != nil {
				t.Fatal(err)
			}
		case "computed":
			conns[s.conn].computed()
		case "long pause":
			time.Sleep(slowCaller)
		default:
			t.Fatalf("no such step: %s", s.what)
		}
		time.Sleep(slowCaller / 10)
	}
	var closed []int
	held := 0
	for i, m := range all {
		if m.closed.Load() {
			closed = append(closed, i)
		} else {
			held++
		}
	}
	if g.held() != held {
		t.Errorf("%d are counted, want %d", g.held(), held)
	}
	for _, conn := range conns {
		if conn != nil {
			conn.Close()
		}
	}
	return closed
}

func TestWhichConnectionIsEvicted(t *testing.T) {
	t.Parallel()
	const (
		a, alsoA    = "10.0.0.1:1000", "[::ffff:10.0.0.1]:1001"
		b, c, d     = "10.0.0.2:1000", "10.0.0.3:1000", "10.0.0.4:1000"
		six         = "[2001:db8::1]:1000"
		sameNetwork = "[2001:db8::2]:1000"
	)
	connect := func(from ...string) (steps []step) {
		for _, address := range from {
			steps = append(steps, step{what: "connect", from: address})
		}
		return steps
	}
	on := func(conn int, what ...string) (steps []step) {
		for _, w := range what {
			steps = append(steps, step{what: w, conn: conn})
		}
		return steps
	}
	join := func(parts ...[]step) []step {
		var all []step
		for _, part := range parts {
			all = append(all, part...)
		}
		return all
	}
	for _, tc := range []struct {
		rule   string
		steps  []step
		closed []int
	}{
		{"within the limits, none", connect(a, a, b, c), nil},
		{"of an address: the longest wait", connect(a, b, a, a), []int{0}},
		{"an IPv4 address in IPv6 is the same", connect(a, alsoA, a), []int{0}},
		{"IPv6 addresses count by their network", connect(six, sameNetwork, six), []int{0}},
		{"a request is progress", join(connect(a, a), on(0, "request", "answer"), connect(a)), []int{1}},
		{"a connection with a request in flight stays", join(connect(a, a), on(0, "request", "long pause"), connect(a)), []int{1}},
		{"if all have a request in flight, the new one", join(connect(a, a), on(0, "request"), on(1, "request"), connect(a)), []int{2}},
		{
			"a request in flight protects, even if another one waits for its body",
			join(connect(a, a), on(0, "request", "request", "wait for the body", "long pause"), connect(a)),
			[]int{1},
		},
		{
			"a caller that does not send its body",
			join(connect(a), on(0, "request", "wait for the body", "long pause"), connect(a, a)),
			[]int{0},
		},
		{
			"a body in small parts is no progress",
			join(connect(a), on(0, "request", "wait for the body", "the body is there", "wait for the body"),
				on(0, "the body is there", "wait for the body"),
				connect(a), on(0, "the body is there", "wait for the body"), connect(a)),
			[]int{0},
		},
		{
			"a caller that does not read the answer",
			join(connect(a), on(0, "request", "write", "long pause"), connect(a, a)),
			[]int{0},
		},
		{
			"time in the handshake's queue is no wait",
			join(connect(a), on(0, "compute"), connect(a), on(0, "long pause", "computed"), connect(a)),
			[]int{1},
		},
		{"total: the address with most", connect(c, a, a, b, six), []int{1}},
		{"total: the longest wait, if all addresses have equally many", connect(c, b, six, a, d), []int{0}},
		{"total: not the caller's own, if all addresses have equally many", connect(c, b, six, a, a), []int{0}},
		{
			"total: the longest wait, if several addresses have most",
			join(connect(a, b, a, b), on(0, "request", "answer"), connect(c)),
			[]int{1},
		},
		{
			"total: connections with a request in flight do not count",
			join(connect(a, a, b, c), on(0, "request"), on(1, "request", "answer"), connect(d)),
			[]int{2},
		},
		{
			"total: a slow caller, before the address with most",
			join(connect(b), on(0, "long pause"), connect(a, a, c, d)),
			[]int{0},
		},
		{
			"total: of handshakes in the queue, the last of the address with most",
			join(connect(a, a, b, c), on(0, "compute"), on(1, "compute"), on(2, "compute"), on(3, "compute"), connect(d)),
			[]int{1},
		},
		{
			"total: of handshakes in the queue, none for an address that would have as many",
			join(connect(a, a, b, c), on(0, "compute"), on(1, "compute"), on(2, "compute"), on(3, "compute"), connect(b)),
			[]int{4},
		},
		{
			"total: requests in flight do not count as handshakes",
			join(connect(a, a, b, c), on(0, "request"), on(1, "request"), on(2, "compute"), on(3, "compute"), connect(d)),
			[]int{4},
		},
		{
			"total: if all have a request in flight, the new one",
			join(connect(a, b, c, d), on(0, "request"), on(1, "request"), on(2, "request"), on(3, "request"), connect(six)),
			[]int{4},
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				if closed := evicted(t, tc.steps); fmt.Sprint(closed) != fmt.Sprint(tc.closed) {
					t.Errorf("closed %v, want %v", closed, tc.closed)
				}
			})
		})
	}
}

// Attackers control their addresses, and thereby their order.
func TestTheOrderOfAddressesDoesNotAffectEviction(t *testing.T) {
	t.Parallel()
	for _, addresses := range [][]int{{1, 2, 3, 4}, {4, 3, 2, 1}, {2, 4, 1, 3}, {3, 1, 4, 2}} {
		for added := range 6 {
			synctest.Test(t, func(t *testing.T) {
				var steps []step
				for _, n := range append(addresses, added) {
					steps = append(steps, step{what: "connect", from: fmt.Sprintf("10.0.0.%d:1000", n)})
				}
				if closed := evicted(t, steps); fmt.Sprint(closed) != "[0]" {
					t.Errorf("%v and then %d: closed %v, want the first", addresses, added, closed)
				}
			})
		}
	}
}

// bootstrapOf serves machines, with a limit of connections for each address.
func bootstrapOf(t *testing.T, perAddress int, machines http.Handler) *testListeners {
	t.Helper()
	s := newTestListeners(t, onlyMachines)
	guardOf(s.listeners.bootstrap).limits.perAddress = perAddress
	return s.serve(parts{machines: machines})
}

const (
	requestWithoutBody = "GET /authorize/a HTTP/1.1\r\nHost: a\r\n\r\n"
	requestWithBody    = "POST /authorize/a HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n"
)

// answered reads an HTTP/1.1 answer with the text from a connection.
func answered(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	var answer strings.Builder
	for b := make([]byte, 1<<10); !strings.Contains(answer.String(), "\r\n\r\n"+text); {
		n, err := conn.Read(b)
		answer.Write(b[:n])
		if err != nil {
			t.Errorf("got %q, %v", answer.String(), err)
			return
		}
	}
}

func send(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Error(err)
	}
}

// connect opens a connection without a handshake.
func (s *testListeners) connect(e *endpoint) net.Conn {
	s.t.Helper()
	conn, err := net.Dial("tcp", e.address().String())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	return conn
}

// A machine between two requests keeps its connection when idle callers connect.
func TestProgressKeepsAConnection(t *testing.T) {
	t.Parallel()
	s := bootstrapOf(t, 2, says("token"))
	machine := s.dial(s.listeners.bootstrap, nil, "http/1.1")
	silent := s.connect(s.listeners.bootstrap)
	eventually(t, "both are connected", func() bool { return guardOf(s.listeners.bootstrap).held() == 2 })
	for range 3 {
		send(t, machine, requestWithoutBody)
		answered(t, machine, "token")
	}
	s.connect(s.listeners.bootstrap)
	if err := closedByServer(silent); err != nil {
		t.Error(err)
	}
	send(t, machine, requestWithoutBody)
	answered(t, machine, "token")
}

// A request without its body does not evict a machine that has just connected.
func TestSlowBodiesDoNotEvictOthers(t *testing.T) {
	t.Parallel()
	started := make(chan struct{}, 2)
	s := bootstrapOf(t, 2, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		started <- struct{}{}
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "token")
	}))
	slow := s.dial(s.listeners.bootstrap, nil, "http/1.1")
	send(t, slow, requestWithBody)
	<-started
	eventually(t, "the server waits for the body", func() bool {
		g := guardOf(s.listeners.bootstrap)
		g.mu.Lock()
		defer g.mu.Unlock()
		for _, conns := range g.from {
			return len(conns) == 1 && conns[0].wait.waiting()
		}
		return false
	})
	machine := s.dial(s.listeners.bootstrap, nil, "http/1.1")
	s.dial(s.listeners.bootstrap, nil, "http/1.1")
	if err := closedByServer(slow); err != nil {
		t.Error(err)
	}
	send(t, machine, requestWithoutBody)
	answered(t, machine, "token")
}

// Machines with requests in flight keep their connections, however many others connect.
func TestRequestsInFlightAreNotCutOff(t *testing.T) {
	t.Parallel()
	started, finish := make(chan struct{}, 2), make(chan struct{})
	s := bootstrapOf(t, 2, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		started <- struct{}{}
		<-finish
		_, _ = io.WriteString(w, "token")
	}))
	machines := []net.Conn{
		s.dial(s.listeners.bootstrap, nil, "http/1.1"), s.dial(s.listeners.bootstrap, nil, "http/1.1"),
	}
	for _, machine := range machines {
		send(t, machine, requestWithoutBody)
		<-started
	}
	for range 4 {
		if err := closedByServer(s.connect(s.listeners.bootstrap)); err != nil {
			t.Error(err)
		}
	}
	close(finish)
	for _, machine := range machines {
		answered(t, machine, "token")
	}
}
