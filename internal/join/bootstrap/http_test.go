package bootstrap

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/attest"
)

// listening is a service with a handler, which records its events.
type listening struct {
	*testCluster
	handler http.Handler
	mu      sync.Mutex
	events  []Event
}

// Attested implements Observer.
func (l *listening) Attested(event Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, event)
}

// event returns the only event since the last call.
func (l *listening) event() Event {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.events) != 1 {
		l.t.Fatalf("%d events: %+v", len(l.events), l.events)
	}
	event := l.events[0]
	l.events = nil
	return event
}

func listen(t *testing.T, change func(*Options), opts HTTPOptions) *listening {
	t.Helper()
	l := &listening{testCluster: newTestCluster(t)}
	l.attestor.attest = func(_ context.Context, req *attest.Request) (*attest.Identity, error) {
		id := machine("i-1", "worker-1")
		id.Addresses = []netip.Addr{req.RemoteAddr}
		return id, nil
	}
	s := l.service(func(o *Options) {
		o.Observer = l
		if change != nil {
			change(o)
		}
	})
	l.handler = s.Handler(opts)
	return l
}

// ask returns a request as kops' clients send it.
func ask(node, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/authorize/"+node, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.RemoteAddr = "10.0.0.1:41234"
	return r
}

func (l *listening) answer(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	l.handler.ServeHTTP(w, r)
	return w
}

// golden compares a text with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("exchange is\n%s\nwant\n%s", got, want)
	}
}

// TestWire compares the bytes on the wire, in both directions.
func TestWire(t *testing.T) {
	for _, tc := range []struct {
		name   string
		opts   HTTPOptions
		attest func(context.Context, *attest.Request) (*attest.Identity, error)
		r      *http.Request
	}{
		{
			name: "challenged", r: ask("worker-1", `{"key":"a"}`),
			attest: func(context.Context, *attest.Request) (*attest.Identity, error) {
				return nil, &attest.Continue{Challenge: []byte(`{"credential":"AAEC"}`)}
			},
		},
		{name: "issued", r: ask("worker-1", `{"Document":"TUlJQg=="}`)},
		{name: "issued-upper-case", r: ask("Worker-1", `{}`)},
		{name: "issued-mapped-address", r: from("[::ffff:10.0.0.1]:41234", ask("worker-1", `{"any":["object"]}`))},
		{name: "issued-link-local", r: from("[fe80::1%eth0]:41234", ask("worker-1", `{}`))},
		{name: "issued-forwarded", r: withHeader(ask("worker-1", `{}`), "X-Forwarded-For", "10.9.9.9")},
		{name: "refused-name", r: ask("worker-2", `{}`)},
		{
			name:   "refused-evidence",
			attest: refuses(attest.Refuse("WrongAccount", "account 111122223333")), r: ask("worker-1", `{}`),
		},
		{
			name: "refused-certificate",
			opts: HTTPOptions{Certificates: checks{attest.Refuse(ClientNameNotAllowed, "somebody")}}, r: ask("worker-1", `{}`),
		},
		{
			name:   "malformed-evidence",
			attest: refuses(&attest.Refusal{Code: "DocumentMalformed", Malformed: true}), r: ask("worker-1", `{}`),
		},
		{name: "malformed-name", r: ask("worker_1", `{}`)},
		{name: "issued-empty-body", r: ask("worker-1", ``)},
		{name: "malformed-json", r: ask("worker-1", `{"Document":`)},
		{name: "malformed-too-large", opts: HTTPOptions{MaxBodyBytes: 16}, r: ask("worker-1", `{"Document":"TUlJQg=="}`)},
		{
			name: "issued-content-type-of-a-form",
			r:    withHeader(ask("worker-1", `{}`), "Content-Type", "application/x-www-form-urlencoded"),
		},
		{name: "issued-content-type-of-nothing", r: withHeader(ask("worker-1", `{}`), "Content-Type", "%")},
		{name: "malformed-content-encoding", r: withHeader(ask("worker-1", `{}`), "Content-Encoding", "gzip")},
		{name: "unavailable", attest: refuses(errors.New("throttled")), r: ask("worker-1", `{}`)},
		{
			name: "panic",
			attest: func(context.Context, *attest.Request) (*attest.Identity, error) {
				panic("index out of range")
			},
			r: ask("worker-1", `{}`),
		},
		{name: "health", opts: HTTPOptions{Version: "v1.2.3"}, r: httptest.NewRequest(http.MethodGet, "/health", nil)},
		{
			name: "challenge",
			opts: HTTPOptions{Challenger: challenges("a challenge")}, r: httptest.NewRequest(http.MethodGet, "/challenge", nil),
		},
		{name: "challenge-none", r: httptest.NewRequest(http.MethodGet, "/challenge", nil)},
		{name: "other-method", r: httptest.NewRequest(http.MethodGet, "/authorize/worker-1", nil)},
		{name: "other-path", r: ask("worker-1/token", `{}`)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := listen(t, nil, tc.opts)
			if tc.attest != nil {
				l.attestor.attest = tc.attest
			}
			sent, err := httputil.DumpRequest(tc.r, true)
			if err != nil {
				t.Fatal(err)
			}
			got, err := httputil.DumpResponse(l.answer(tc.r).Result(), true)
			if err != nil {
				t.Fatal(err)
			}
			text := fmt.Sprintf("from %s\n%s\n---\n%s", tc.r.RemoteAddr, sent, got)
			for _, token := range l.tokens() {
				text = strings.ReplaceAll(text, token.value, "<id>.<secret>")
			}
			golden(t, tc.name, strings.ReplaceAll(text, "\r\n", "\n"))
		})
	}
}

func refuses(err error) func(context.Context, *attest.Request) (*attest.Identity, error) {
	return func(context.Context, *attest.Request) (*attest.Identity, error) { return nil, err }
}

func from(address string, r *http.Request) *http.Request {
	r.RemoteAddr = address
	return r
}

func withHeader(r *http.Request, name, value string) *http.Request {
	r.Header.Set(name, value)
	return r
}

type checks struct{ err error }

func (c checks) Check(*http.Request) error { return c.err }

type challenges string

func (c challenges) Challenge() string { return string(c) }

// The test decodes the field names that clients of kops decode.
func TestAnswersDecodeAsTheProtocolSays(t *testing.T) {
	l := listen(t, nil, HTTPOptions{})
	var document struct {
		Spec   struct{ NodeName, RemoteAddr, Request any }
		Status struct{ Allowed, Token, Reason any }
	}
	decoder := json.NewDecoder(l.answer(ask("worker-1", `{"a":1}`)).Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&document); err != nil {
		t.Fatal(err)
	}
	if document.Spec.NodeName != "worker-1" || document.Spec.RemoteAddr != "10.0.0.1" ||
		document.Spec.Request != "eyJhIjoxfQ==" || document.Status.Allowed != true ||
		document.Status.Reason != "" || document.Status.Token != l.tokens()[0].value {
		t.Errorf("answer is %+v", document)
	}
}

func TestAmbiguousBodiesAreMalformed(t *testing.T) {
	for _, body := range []string{
		`null`, `[]`, `"text"`, `{} {}`, `{"a":1,"a":2}`, "{\"a\":\"\xff\"}",
		strings.Repeat(`{"a":`, 20) + `1` + strings.Repeat(`}`, 20),
	} {
		l := listen(t, nil, HTTPOptions{})
		l.attestor.attest = func(context.Context, *attest.Request) (*attest.Identity, error) {
			t.Errorf("%s reached the attestor", body)
			return nil, errors.New("never")
		}
		if w := l.answer(ask("worker-1", body)); w.Code != http.StatusBadRequest || l.event().Code != MalformedRequest {
			t.Errorf("%s: status %d", body, w.Code)
		}
	}
}

func TestEventsHaveWhatOperatorsNeed(t *testing.T) {
	for _, tc := range []struct {
		rule   string
		attest func(context.Context, *attest.Request) (*attest.Identity, error)
		node   string
		before int
		want   Event
	}{
		{"issued", nil, "worker-1", 0, Event{
			Node: "worker-1", Provider: "test", InstanceID: "i-1", Outcome: Issued, Status: 200, Code: TokenIssued,
		}},
		{"repeated", nil, "worker-1", 1, Event{
			Node: "worker-1", Provider: "test", InstanceID: "i-1", Outcome: Repeated, Status: 200, Code: TokenRepeated,
		}},
		{"refused by the ledger", nil, "worker-2", 0, Event{
			Node: "worker-1", Provider: "test", InstanceID: "i-1", Outcome: Refused, Status: 403, Code: NameMismatch,
			Detail: "i-1 asked for node name worker-2, its evidence says worker-1",
		}},
		{"refused by the attestor", refuses(attest.Refuse("WrongVPC", "vpc-1")), "worker-1", 0, Event{
			Outcome: Refused, Status: 403, Code: "WrongVPC", Detail: "vpc-1",
		}},
		{"undecided", refuses(errUndecided), "worker-1", 0, Event{
			Outcome: Failed, Status: 503, Code: BootstrapUnavailable, Err: errUndecided,
		}},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			l := listen(t, nil, HTTPOptions{})
			if tc.attest != nil {
				l.attestor.attest = tc.attest
			}
			for range tc.before {
				l.answer(ask(tc.node, `{}`))
				l.event()
			}
			l.answer(ask(tc.node, `{"Document":"secret evidence"}`))
			got := l.event()
			tc.want.Attestor, tc.want.Asked, tc.want.RemoteAddr = "test", tc.node, netip.MustParseAddr("10.0.0.1")
			if tokens := l.tokens(); len(tokens) > 0 {
				tc.want.TokenID = tokens[0].id
				if strings.Contains(fmt.Sprintf("%+v %#v", got, got), tokens[0].value[7:]) {
					t.Errorf("the event holds the token: %+v", got)
				}
			}
			if got != tc.want {
				t.Errorf("event is\n%+v\nwant\n%+v", got, tc.want)
			}
		})
	}
}

var errUndecided = errors.New("the provider throttles")

func TestTokensAreNotPrinted(t *testing.T) {
	grant := redeem(t, newTestCluster(t).service(nil), machine("i-1", "worker-1"))
	secret := grant.Token.Value()[7:]
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d"} {
		for _, value := range []any{grant.Token, *grant.Token, grant, *grant} {
			if text := fmt.Sprintf(verb, value); strings.Contains(text, secret) {
				t.Errorf("%s of %T prints the token: %s", verb, value, text)
			}
		}
	}
	if text, err := json.Marshal(grant); err != nil || bytes.Contains(text, []byte(secret)) {
		t.Errorf("JSON holds the token: %s, %v", text, err)
	}
}

// The test sends the beginning of a body and then nothing.
func TestSlowBodiesAreCut(t *testing.T) {
	l := listen(t, func(o *Options) { o.Timeout = 50 * time.Millisecond }, HTTPOptions{})
	server := httptest.NewServer(l.handler)
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /authorize/worker-1 HTTP/1.1\r\nHost: x\r\n"+
		"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
	var answer bytes.Buffer
	if _, err := answer.ReadFrom(conn); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(answer.String(), "HTTP/1.1 408 ") || !strings.Contains(answer.String(), "MalformedRequest") {
		t.Errorf("answer is %s", answer.String())
	}
}

// The deadline of a request applies to the attestor too.
func TestTheDeadlineOfARequestEndsItsLookUps(t *testing.T) {
	l := listen(t, func(o *Options) { o.Timeout = 10 * time.Millisecond }, HTTPOptions{})
	l.attestor.attest = func(ctx context.Context, _ *attest.Request) (*attest.Identity, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	w := l.answer(ask("worker-1", `{}`))
	event := l.event()
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" ||
		!errors.Is(event.Err, context.DeadlineExceeded) {
		t.Errorf("status %d, event %+v", w.Code, event)
	}
}

func TestTheOrderOfChecks(t *testing.T) {
	l := listen(t, func(o *Options) { o.Limits = Limits{PerSourcePerSecond: 1, PerSourceBurst: 1} }, HTTPOptions{
		Certificates: checks{attest.Refuse(ClientCertificateRequired, "none")},
	})
	for _, want := range []int{http.StatusForbidden, http.StatusTooManyRequests} {
		if w := l.answer(ask("worker_1", `malformed`)); w.Code != want {
			t.Errorf("status %d, want %d", w.Code, want)
		}
		l.event()
	}
	if w := l.answer(httptest.NewRequest(http.MethodGet, "/health", nil)); w.Code != http.StatusOK {
		t.Errorf("health: status %d", w.Code)
	}
}

// A refusal of valid evidence is recorded in the entry, because another user may have the
// machine's evidence. Repeated refusals are recorded once.
func TestRefusalsOfValidEvidenceAreInTheLedger(t *testing.T) {
	l := listen(t, nil, HTTPOptions{})
	l.answer(ask("worker-1", `{}`))
	l.certified("test-i-1")
	l.server.Calls()
	l.advanceClock(time.Minute)
	for range 3 {
		if w := l.answer(ask("worker-1", `{}`)); w.Code != http.StatusForbidden {
			t.Fatalf("status %d", w.Code)
		}
		l.waitForCache(l.known)
	}
	entry := l.entry("test-i-1")
	if len(entry.Status.Conditions) != 1 {
		t.Fatalf("conditions are %+v", entry.Status.Conditions)
	}
	c := entry.Status.Conditions[0]
	if c.Type != "Refused" || c.Reason != "AlreadyAttested" || !strings.Contains(c.Message, "from 10.0.0.1") ||
		!c.LastTransitionTime.Time.Equal(l.now()) {
		t.Errorf("condition is %+v", c)
	}
	writes := 0
	for _, call := range l.server.Calls() {
		if call == "update nodeattestations/status test-i-1" {
			writes++
		}
	}
	if writes != 1 {
		t.Errorf("%d writes for three refusals", writes)
	}
}

// The sender of valid evidence can choose why it is refused. Alternating reasons do not cause
// more writes.
func TestAlternatingRefusalsAreRecordedOnce(t *testing.T) {
	l := listen(t, nil, HTTPOptions{})
	l.answer(ask("worker-1", `{}`))
	l.certified("test-i-1")
	l.server.Calls()
	for _, name := range []string{"worker-1", "worker-2", "worker-1", "worker-2"} {
		if w := l.answer(ask(name, `{}`)); w.Code != http.StatusForbidden {
			t.Fatalf("status %d", w.Code)
		}
		l.waitForCache(l.known)
	}
	writes := 0
	for _, call := range l.server.Calls() {
		if call == "update nodeattestations/status test-i-1" {
			writes++
		}
	}
	if writes != 1 {
		t.Errorf("%d writes for four refusals in one minute", writes)
	}
}

// Machines without a certificate, from many addresses, do not use up the limit of all sources.
func TestRequestsWithoutACertificateDoNotCountInTheTotalLimit(t *testing.T) {
	l := listen(t, func(o *Options) { o.Limits = Limits{PerSecond: 1, Burst: 1} }, HTTPOptions{
		Certificates: checks{attest.Refuse(ClientCertificateRequired, "none")},
	})
	for range 3 {
		if w := l.answer(ask("worker-1", `{}`)); w.Code != http.StatusForbidden {
			t.Errorf("status %d, want that of a missing certificate", w.Code)
		}
		l.event()
	}
}
