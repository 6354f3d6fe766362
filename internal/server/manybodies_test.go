package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/internal/server/webhook"
)

// pipes is an in-memory listener, for synctest.
type pipes struct {
	net.Listener
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// inMemory replaces the listener of an endpoint by pipes.
func inMemory(e *endpoint) *pipes {
	p := &pipes{Listener: e.listener.Listener, conns: make(chan net.Conn), closed: make(chan struct{})}
	e.listener.Listener = p
	return p
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return p.Listener.Close()
}

func (p *pipes) dial() net.Conn {
	near, far := net.Pipe()
	p.conns <- far
	return near
}

// Many bodies of the maximum size of small ones come at once on one connection. Bodies without memory
// are refused before they fill the window of the connection, in which the others must arrive.
func TestManySmallBodiesDoNotStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bodies, size = 600, 64 << 10
		s := newTestListeners(t, nil)
		s.reload = time.Hour
		listener := inMemory(s.listeners.webhook)
		undecided := func(context.Context, *access.Request) (decision.Opinion, error) { return decision.Opinion{}, nil }
		handler := webhook.Authorize(undecided, webhook.Options{Queue: webhook.NewQueue()})
		s.serve(parts{webhooks: map[string]http.Handler{"/authorize": handler}})
		config := &tls.Config{
			RootCAs: pool(s.server), ServerName: "127.0.0.1", NextProtos: []string{"h2"},
			Certificates: []tls.Certificate{*s.callers.client("kube-apiserver")},
		}
		c := newFrameCaller(t, tls.Client(listener.dial(), config))
		defer c.conn.Close()
		start := time.Now()
		for n := range bodies {
			c.ask(stream(n), size)
			synctest.Wait() // so that the last ones are those that wait
		}
		const question = `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1",` +
			`"spec":{"user":"a","nonResourceAttributes":{"path":"/","verb":"get"}}}`
		body := []byte(question + strings.Repeat(" ", size-len(question)))
		for n := range bodies {
			c.send(stream(bodies-1-n), body)
		}
		synctest.Wait()
		if stalled := time.Since(start); stalled > 0 {
			t.Errorf("bodies stalled for %v", stalled)
		}
		counts := map[string]int{}
		for _, status := range c.answers() {
			counts[status]++
		}
		if counts["200"] < 512 || counts["200"]+counts["429"] != bodies {
			t.Errorf("got %v", counts)
		}
	})
}

// stream returns the identifier of a request's stream.
func stream(n int) uint32 { return uint32(2*n + 1) }

// frameCaller sends and receives HTTP/2 frames.
type frameCaller struct {
	t      *testing.T
	conn   net.Conn
	framer *http2.Framer

	mu       sync.Mutex
	window   int               // of the connection
	statuses map[uint32]string // of the streams that were answered
	changed  chan struct{}     // has one element after a change
}

func newFrameCaller(t *testing.T, conn net.Conn) *frameCaller {
	c := &frameCaller{
		t: t, conn: conn, framer: http2.NewFramer(conn, conn), window: 65535,
		statuses: map[uint32]string{}, changed: make(chan struct{}, 1),
	}
	c.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if _, err := conn.Write([]byte(http2Preface)); err != nil {
		t.Fatal(err)
	}
	c.must(c.framer.WriteSettings())
	go c.listen()
	return c
}

func (c *frameCaller) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// listen reads frames until the connection ends.
func (c *frameCaller) listen() {
	for {
		frame, err := c.framer.ReadFrame()
		if err != nil {
			return
		}
		c.mu.Lock()
		switch frame := frame.(type) {
		case *http2.WindowUpdateFrame:
			if frame.StreamID == 0 {
				c.window += int(frame.Increment)
			}
		case *http2.MetaHeadersFrame:
			c.statuses[frame.StreamID] = frame.PseudoValue("status")
		}
		c.mu.Unlock()
		select {
		case c.changed <- struct{}{}:
		default:
		}
	}
}

func (c *frameCaller) answers() map[uint32]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.statuses
}

// ask sends the headers of a request with a body of the size.
func (c *frameCaller) ask(stream uint32, size int) {
	var block bytes.Buffer
	fields := hpack.NewEncoder(&block)
	fields.SetMaxDynamicTableSize(0)
	for _, field := range [][2]string{
		{":method", "POST"},
		{":scheme", "https"},
		{":path", "/authorize"},
		{":authority", "a"},
		{"content-type", "application/json"},
		{"content-length", strconv.Itoa(size)},
	} {
		c.must(fields.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}))
	}
	c.must(c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true}))
}

// send sends a body within the window of the connection, unless the request has been answered.
func (c *frameCaller) send(stream uint32, body []byte) {
	for chunk := range slices.Chunk(body, 16<<10) {
		if !c.reserve(stream, len(chunk)) {
			return
		}
		body = body[len(chunk):]
		c.must(c.framer.WriteData(stream, len(body) == 0, chunk))
	}
}

// reserve waits until the size fits into the window. It returns false if the stream has been answered.
func (c *frameCaller) reserve(stream uint32, size int) bool {
	for {
		c.mu.Lock()
		_, answered := c.statuses[stream]
		fits := c.window >= size
		if fits && !answered {
			c.window -= size
		}
		c.mu.Unlock()
		if answered || fits {
			return !answered
		}
		<-c.changed
	}
}
