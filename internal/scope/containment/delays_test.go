package containment_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
)

// delays delay the events of a client's watches and the statuses that it writes, until a test lets them pass.
type delays struct {
	mu sync.Mutex
	// events and writes are how many may pass; changed is closed when there are more.
	events, writes int
	changed        chan struct{}
	// added is how many new objects the client got in events, and writing how many writes it has begun.
	added, writing int
}

// unlimited is more than there ever are.
const unlimited = 1 << 30

func newDelays() *delays { return &delays{changed: make(chan struct{})} }

// let lets so many more events and writes pass.
func (d *delays) let(events, writes int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events += events
	d.writes += writes
	close(d.changed)
	d.changed = make(chan struct{})
}

// seen returns how many new objects the client got in events.
func (d *delays) seen() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.added
}

func (d *delays) write(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.writing += n
}

// idle reports whether the client writes nothing now.
func (d *delays) idle() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.writing == 0
}

// pass waits until one more of a number may pass.
func (d *delays) pass(ctx context.Context, left *int) error {
	for {
		d.mu.Lock()
		if *left > 0 {
			*left--
			d.mu.Unlock()
			return nil
		}
		changed := d.changed
		d.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// wrap delays the requests of a client and their answers.
func (d *delays) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/status") {
			d.write(1)
			defer d.write(-1)
			if err := d.pass(r.Context(), &d.writes); err != nil {
				return nil, err
			}
		}
		response, err := next.RoundTrip(r)
		if err == nil && r.URL.Query().Get("watch") != "" {
			response.Body = &delayedEvents{delays: d, ctx: r.Context(), lines: bufio.NewReader(response.Body), Closer: response.Body}
		}
		return response, err
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// delayedEvents is the body of a watch, in which each line is an event.
type delayedEvents struct {
	*delays
	io.Closer
	ctx   context.Context
	lines *bufio.Reader
	rest  []byte
}

// Read implements io.Reader.
func (e *delayedEvents) Read(into []byte) (int, error) {
	if len(e.rest) == 0 {
		line, err := e.lines.ReadBytes('\n')
		if err != nil {
			return 0, err
		}
		if err := e.pass(e.ctx, &e.events); err != nil {
			return 0, err
		}
		if bytes.Contains(line, []byte(`"ADDED"`)) {
			e.mu.Lock()
			e.added++
			e.mu.Unlock()
		}
		e.rest = line
	}
	n := copy(into, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}
