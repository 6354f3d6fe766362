package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"testing"
)

// attackingEnv makes the test binary run an attack, by name, so that the attacker can have a
// processor of its own.
const attackingEnv = "NODE_AUTHORIZER_ATTACKING"

// unknownCallers are the attacks of callers without a certificate.
func unknownCallers() map[string]func(*attacker, context.Context) {
	return map[string]func(*attacker, context.Context){
		"rapid resets":          (*attacker).resetRapidly,
		"idle connections":      (*attacker).connectAndWait,
		"handshakes":            (*attacker).shakeHands,
		"handshakes of another": (*attacker).replay,
		"thousands of requests": (*attacker).sendRequests,
		"thousands of resets":   (*attacker).sendResets,
	}
}

// TestAttack is not a test: it attacks the server that its input names, until the input ends.
func TestAttack(t *testing.T) {
	name := os.Getenv(attackingEnv)
	if name == "" {
		t.Skip("for BenchmarkAttacks")
	}
	in := bufio.NewReader(os.Stdin)
	line, err := in.ReadBytes('\n')
	a := &attacker{counts: map[string]int{}}
	if err == nil {
		err = json.Unmarshal(line, &a.server)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		defer stop()
		_, _ = io.Copy(io.Discard, in)
	}()
	unknownCallers()[name](a, ctx)
	if err := json.NewEncoder(os.Stdout).Encode(a.counts); err != nil {
		t.Fatal(err)
	}
}

// attacker has no certificate.
type attacker struct {
	server attackedServer

	mu     sync.Mutex
	counts map[string]int
}

func (a *attacker) count(what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counts[what]++
}

// each runs an attack on many connections concurrently, each time on a new one.
func (a *attacker) each(ctx context.Context, attack func(*tls.Conn)) {
	config := a.server.config()
	config.DynamicRecordSizingDisabled = true // bytes that are sent at once arrive at once
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			for ctx.Err() == nil {
				conn, err := tls.Dial("tcp", a.server.Address, config)
				if err != nil {
					a.count("no connection")
					continue
				}
				a.count("connections")
				attack(conn)
			}
		})
	}
	running.Wait()
}

// resetRapidly sends requests and resets them.
func (a *attacker) resetRapidly(ctx context.Context) {
	a.each(ctx, func(conn *tls.Conn) {
		defer conn.Close()
		for n := 0; ctx.Err() == nil && rapidReset(conn, n) == nil; n++ {
		}
	})
}

// sendRequests sends thousands of requests at once on each of many connections.
func (a *attacker) sendRequests(ctx context.Context) { a.send(ctx, manyRequests(false)) }

// sendResets resets each request.
func (a *attacker) sendResets(ctx context.Context) { a.send(ctx, manyRequests(true)) }

func (a *attacker) send(ctx context.Context, text []byte) {
	a.each(ctx, func(conn *tls.Conn) {
		_, _ = conn.Write(text)
		conn.NetConn().Close()
	})
}

// manyRequests returns HTTP/2 requests of minimal size, in 64 KiB.
func manyRequests(resets bool) []byte {
	text := []byte(http2Preface + http2Settings)
	for stream := uint32(1); len(text) < 64<<10; stream += 2 {
		fields := "\x82\x87\xbf\xbe" // the fields of the first request, by their numbers in the dynamic table
		if stream == 1 {
			fields = "\x82\x87\x44\x0a/authorize\x41\x01a"
		}
		text = append(text, 0, 0, byte(len(fields)), 1, 5) // HEADERS that end the stream
		text = append(binary.BigEndian.AppendUint32(text, stream), fields...)
		if resets {
			text = append(text, 0, 0, 4, 3, 0) // RST_STREAM
			text = append(binary.BigEndian.AppendUint32(text, stream), 0, 0, 0, 8)
		}
	}
	return text
}

// connectAndWait opens connections and keeps them open.
func (a *attacker) connectAndWait(ctx context.Context) {
	const kept = 4000
	var mu sync.Mutex
	var held []*tls.Conn
	a.each(ctx, func(conn *tls.Conn) {
		mu.Lock()
		defer mu.Unlock()
		if held = append(held, conn); len(held) > kept {
			held[0].Close()
			held = held[1:]
		}
	})
	for _, conn := range held {
		conn.Close()
	}
}

// shakeHands closes connections after the handshake.
func (a *attacker) shakeHands(ctx context.Context) {
	a.each(ctx, func(conn *tls.Conn) { conn.NetConn().Close() })
}

// replay sends the first message of a handshake from another address, which costs an attacker no
// computation, and closes the connection when the answer comes.
func (a *attacker) replay(ctx context.Context) {
	hello := firstMessage(a.server.config())
	var from net.Dialer
	if runtime.GOOS == "linux" {
		from.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}
	}
	var running sync.WaitGroup
	for range 200 {
		running.Go(func() {
			for ctx.Err() == nil {
				conn, err := from.DialContext(ctx, "tcp", a.server.Address)
				if err != nil {
					a.count("no connection")
					continue
				}
				a.count("connections")
				_, _ = conn.Write(hello)
				_, _ = conn.Read(make([]byte, 1))
				conn.Close()
			}
		})
	}
	running.Wait()
}

// firstMessage returns the first message of a client.
func firstMessage(config *tls.Config) []byte {
	near, far := net.Pipe()
	go func() { _ = tls.Client(near, config).Handshake() }()
	message := make([]byte, 64<<10)
	n, _ := far.Read(message)
	far.Close()
	return message[:n]
}
