package wire

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

func wireTo(t *testing.T, ends ...string) *Wire {
	t.Helper()
	w, err := Listen(ends...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func dial(t *testing.T, w *Wire) net.Conn {
	t.Helper()
	connection, err := net.Dial("tcp", w.Address())
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

func TestEndsAreTakenInTurns(t *testing.T) {
	w := wireTo(t, echo(t, "a").Addr().String(), echo(t, "b").Addr().String())
	for _, want := range []string{"a hello\n", "b hello\n", "a hello\n"} {
		if got, err := ask(dial(t, w), "hello"); err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
}

func TestAnEndThatDoesNotAnswerIsPassedOver(t *testing.T) {
	gone := echo(t, "gone")
	w := wireTo(t, gone.Addr().String(), echo(t, "b").Addr().String())
	gone.Close()
	for range 2 {
		if got, err := ask(dial(t, w), "hello"); err != nil || got != "b hello\n" {
			t.Errorf("got %q, %v", got, err)
		}
	}
}

func TestACutEndsConnectionsUntilItIsRestored(t *testing.T) {
	w := wireTo(t, echo(t, "a").Addr().String())
	before := dial(t, w)
	if _, err := ask(before, "hello"); err != nil {
		t.Fatal(err)
	}
	w.Cut()
	if got, err := ask(before, "hello"); err == nil {
		t.Errorf("a connection that was cut answers %q", got)
	}
	if got, err := ask(dial(t, w), "hello"); err == nil {
		t.Errorf("a new connection through a cut wire answers %q", got)
	}
	w.Restore()
	if _, err := ask(dial(t, w), "hello"); err != nil {
		t.Error(err)
	}
}

func TestASlowWireHoldsBackWhatClientsSend(t *testing.T) {
	const delay = 50 * time.Millisecond
	w := wireTo(t, echo(t, "a").Addr().String())
	w.Slow(delay)
	began := time.Now()
	if _, err := ask(dial(t, w), "hello"); err != nil {
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

func TestAPausedWireLosesNothing(t *testing.T) {
	w := wireTo(t, echo(t, "a").Addr().String())
	before := dial(t, w)
	if _, err := ask(before, "hello"); err != nil {
		t.Fatal(err)
	}
	w.Pause()
	quiet(t, before)
	after := dial(t, w)
	quiet(t, after)
	w.Resume()
	for _, connection := range []net.Conn{before, after} {
		if got, err := bufio.NewReader(connection).ReadString('\n'); err != nil || got != "a hello\n" {
			t.Errorf("got %q, %v", got, err)
		}
	}
}

func TestAHalfOpenConnectionStaysSilent(t *testing.T) {
	a := echo(t, "a")
	w := wireTo(t, a.Addr().String())
	before := dial(t, w)
	if _, err := ask(before, "hello"); err != nil {
		t.Fatal(err)
	}
	w.HalfOpen()
	quiet(t, before)
	if got, err := ask(dial(t, w), "hello"); err != nil || got != "a hello\n" {
		t.Errorf("a new connection answers %q, %v", got, err)
	}
	quiet(t, before)
}

func TestASwallowingWireIsSilentForNewConnectionsToo(t *testing.T) {
	w := wireTo(t, echo(t, "a").Addr().String())
	w.Swallow()
	silent := dial(t, w)
	quiet(t, silent)
	w.Carry()
	quiet(t, silent)
	if got, err := ask(dial(t, w), "hello"); err != nil || got != "a hello\n" {
		t.Errorf("a new connection answers %q, %v", got, err)
	}
}
