package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// load is a stream of requests to one server. The generator shares the machine
// with the server, so it does little: requests are rendered beforehand, and of
// an answer only its status and length are read.
type load struct {
	address string
	tls     *tls.Config
	// requests are whole HTTP/1.1 requests; each connection asks them in turn
	// from a place of its own.
	requests    [][]byte
	connections int
	// each, if not 0, is how many requests each connection asks beside its first,
	// however long that takes.
	each int
}

// ran has the measurements of a load.
type ran struct {
	requests int
	took     time.Duration
	// latencies of all requests, sorted.
	latencies []time.Duration
}

func (o ran) perSecond() float64 { return float64(o.requests) / o.took.Seconds() }

func (o ran) percentile(p float64) time.Duration {
	if len(o.latencies) == 0 {
		return 0
	}
	return o.latencies[min(int(p*float64(len(o.latencies))), len(o.latencies)-1)]
}

// rendered is a request as it goes over the wire.
func rendered(method, path, host string, body []byte) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b,
		"%s %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAccept: application/json\r\nContent-Length: %d\r\n\r\n",
		method, path, host, len(body))
	b.Write(body)
	return b.Bytes()
}

// run asks for as long as given. The first answer on every connection is
// checked with check; others only need a status below 300.
func (l load) run(ctx context.Context, atLeast time.Duration, check func(body []byte) error) (ran, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make([]ran, l.connections)
	failed := make([]error, l.connections)
	ready, begin := sync.WaitGroup{}, make(chan struct{})
	ready.Add(l.connections)
	var running sync.WaitGroup
	var deadline time.Time
	for i := range l.connections {
		running.Go(func() {
			c, err := l.dial(ctx, i, check)
			ready.Done()
			if err != nil {
				failed[i] = err
				return
			}
			defer c.conn.Close()
			<-begin
			results[i], failed[i] = c.ask(ctx, deadline)
		})
	}
	ready.Wait()
	started := time.Now()
	deadline = started.Add(atLeast)
	close(begin)
	running.Wait()
	total := ran{took: time.Since(started)}
	for _, r := range results {
		total.requests += r.requests
		total.latencies = append(total.latencies, r.latencies...)
	}
	slices.Sort(total.latencies)
	return total, errors.Join(failed...)
}

// caller is one connection.
type caller struct {
	load load
	conn *tls.Conn
	in   *bufio.Reader
	next int
}

func (l load) dial(ctx context.Context, i int, check func([]byte) error) (*caller, error) {
	dialer := tls.Dialer{Config: l.tls}
	conn, err := dialer.DialContext(ctx, "tcp", l.address)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", l.address, err)
	}
	c := &caller{load: l, conn: conn.(*tls.Conn), in: bufio.NewReaderSize(conn, 64<<10), next: i * len(l.requests) / l.connections}
	if _, err := c.conn.Write(l.requests[c.next]); err != nil {
		return nil, fmt.Errorf("asking %s: %w", l.address, err)
	}
	body, err := c.answer()
	if err == nil {
		err = check(body)
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("first answer of %s: %w", l.address, err)
	}
	return c, nil
}

func (c *caller) ask(ctx context.Context, deadline time.Time) (ran, error) {
	var o ran
	more := func(now time.Time) bool {
		if c.load.each > 0 {
			return o.requests < c.load.each
		}
		return now.Before(deadline)
	}
	for now := time.Now(); more(now) && ctx.Err() == nil; {
		c.next = (c.next + 1) % len(c.load.requests)
		if _, err := c.conn.Write(c.load.requests[c.next]); err != nil {
			return o, fmt.Errorf("asking %s: %w", c.load.address, err)
		}
		if err := c.skipAnswer(); err != nil {
			return o, fmt.Errorf("answer of %s: %w", c.load.address, err)
		}
		end := time.Now()
		o.requests++
		o.latencies = append(o.latencies, end.Sub(now))
		now = end
	}
	return o, ctx.Err()
}

// answer reads one answer with the parts that skipAnswer leaves out.
func (c *caller) answer() ([]byte, error) {
	response, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= http.StatusMultipleChoices {
		err = fmt.Errorf("status %s: %.300s", response.Status, body)
	}
	return body, err
}

// skipAnswer reads status and length of an answer and passes over the rest.
func (c *caller) skipAnswer() error {
	status, err := c.in.ReadSlice('\n')
	if err != nil {
		return err
	}
	if len(status) < len("HTTP/1.1 200") || status[9] != '2' {
		return fmt.Errorf("status %q", bytes.TrimSpace(status))
	}
	length := -1
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) <= len("\r\n") {
			break
		}
		if name, value, ok := bytes.Cut(line, []byte(": ")); ok && bytes.EqualFold(name, []byte("Content-Length")) {
			length = 0
			for _, digit := range bytes.TrimSpace(value) {
				length = length*10 + int(digit-'0')
			}
		}
	}
	if length < 0 {
		return errors.New("an answer without Content-Length")
	}
	_, err = c.in.Discard(length)
	return err
}
