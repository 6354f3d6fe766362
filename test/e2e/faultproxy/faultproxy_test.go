package faultproxy

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"
)

// echo answers each line with its own name before it.
func echo(t *testing.T, name string) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer connection.Close()
				lines := bufio.NewScanner(connection)
				for lines.Scan() {
					fmt.Fprintf(connection, "%s %s\n", name, lines.Text())
				}
			}()
		}
	}()
	return listener
}

func proxyTo(t *testing.T, servers ...string) *Proxy {
	t.Helper()
	p, err := Listen(servers...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func dial(t *testing.T, p *Proxy) net.Conn {
	t.Helper()
	connection, err := net.Dial("tcp", p.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return connection
}

func ask(connection net.Conn, text string) (string, error) {
	if _, err := fmt.Fprintln(connection, text); err != nil {
		return "", err
	}
	answer, err := bufio.NewReader(connection).ReadString('\n')
	return answer, err
}

func TestServersAreUsedRoundRobin(t *testing.T) {
	p := proxyTo(t, echo(t, "a").Addr().String(), echo(t, "b").Addr().String())
	for _, want := range []string{"a hello\n", "b hello\n", "a hello\n"} {
		if got, err := ask(dial(t, p), "hello"); err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
}

func TestUnreachableServerIsSkipped(t *testing.T) {
	gone := echo(t, "gone")
	p := proxyTo(t, gone.Addr().String(), echo(t, "b").Addr().String())
	gone.Close()
	for range 2 {
		if got, err := ask(dial(t, p), "hello"); err != nil || got != "b hello\n" {
			t.Errorf("got %q, %v", got, err)
		}
	}
}

func TestCutClosesConnectionsUntilRestore(t *testing.T) {
	p := proxyTo(t, echo(t, "a").Addr().String())
	before := dial(t, p)
	if _, err := ask(before, "hello"); err != nil {
		t.Fatal(err)
	}
	p.Cut()
	if got, err := ask(before, "hello"); err == nil {
		t.Errorf("a connection that was cut answers %q", got)
	}
	if got, err := ask(dial(t, p), "hello"); err == nil {
		t.Errorf("a new connection through a cut proxy answers %q", got)
	}
	p.Restore()
	if _, err := ask(dial(t, p), "hello"); err != nil {
		t.Error(err)
	}
}

func TestSlowDelaysClients(t *testing.T) {
	const delay = 50 * time.Millisecond
	p := proxyTo(t, echo(t, "a").Addr().String())
	p.Slow(delay)
	began := time.Now()
	if _, err := ask(dial(t, p), "hello"); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < delay {
		t.Errorf("the answer was there after %s", took)
	}
}

// quiet asks and expects that no answer comes, and that the connection stays open.
func quiet(t *testing.T, connection net.Conn) {
	t.Helper()
	if err := connection.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	got, err := ask(connection, "hello")
	if timeout, ok := errors.AsType[net.Error](err); !ok || !timeout.Timeout() {
		t.Errorf("a silent connection answers %q, %v", got, err)
	}
	if err := connection.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
}

func TestPauseLosesNoData(t *testing.T) {
	p := proxyTo(t, echo(t, "a").Addr().String())
	before := dial(t, p)
	if _, err := ask(before, "hello"); err != nil {
		t.Fatal(err)
	}
	p.Pause()
	quiet(t, before)
	after := dial(t, p)
	quiet(t, after)
	p.Resume()
	for _, connection := range []net.Conn{before, after} {
		if got, err := bufio.NewReader(connection).ReadString('\n'); err != nil || got != "a hello\n" {
			t.Errorf("got %q, %v", got, err)
		}
	}
}

func TestHalfOpenConnectionStaysSilent(t *testing.T) {
	a := echo(t, "a")
	p := proxyTo(t, a.Addr().String())
	before := dial(t, p)
	if _, err := ask(before, "hello"); err != nil {
		t.Fatal(err)
	}
	p.HalfOpen()
	quiet(t, before)
	if got, err := ask(dial(t, p), "hello"); err != nil || got != "a hello\n" {
		t.Errorf("a new connection answers %q, %v", got, err)
	}
	quiet(t, before)
}

func TestABlackholeingWireIsSilentForNewConnectionsToo(t *testing.T) {
	p := proxyTo(t, echo(t, "a").Addr().String())
	p.Blackhole()
	silent := dial(t, p)
	quiet(t, silent)
	p.EndBlackhole()
	quiet(t, silent)
	if got, err := ask(dial(t, p), "hello"); err != nil || got != "a hello\n" {
		t.Errorf("a new connection answers %q, %v", got, err)
	}
}
