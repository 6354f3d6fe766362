package exec

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/alwaysallow"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeprovider"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// asProgram is the first argument with which this test is the program of a provider.
const asProgram = "as-program"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asProgram {
		os.Exit(fakeprovider.Main(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func program(t testing.TB, args ...string) Program {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Program{Command: append([]string{self, asProgram}, args...), Timeout: DefaultTimeout, MaxConcurrent: DefaultMaxConcurrent}
}

func challenges(t testing.TB) *attest.Challenges {
	made, err := attest.NewChallenges(make([]byte, attest.ChallengeKeySize), nil)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func newAttestor(t testing.TB, p Program) (*Attestor, *attest.Challenges) {
	c := challenges(t)
	return New(Options{Provider: "fake", Program: p, Challenger: c}), c
}

var key, otherKey = "sha256:" + strings.Repeat("0a", 32), "sha256:" + strings.Repeat("0b", 32)

func request(body []byte) *attest.Request {
	return &attest.Request{NodeName: "worker-1", RemoteAddr: netip.MustParseAddr("10.0.0.7"), Body: body}
}

// shown is the body with evidence of worker-1.
func shown(t testing.TB, challenge, publicKey string, evidence any) *attest.Request {
	text, err := json.Marshal(evidence)
	if err != nil {
		t.Fatal(err)
	}
	text, err = json.Marshal(body{Challenge: challenge, PublicKey: publicKey, Evidence: text})
	if err != nil {
		t.Fatal(err)
	}
	return request(text)
}

func refusedWith(t *testing.T, err error, code verdict.Code) {
	t.Helper()
	var refusal *attest.Refusal
	if !errors.As(err, &refusal) || refusal.Code != code {
		t.Errorf("%v, want a refusal with %s", err, code)
	}
}

func undecided(t *testing.T, id *attest.Identity, err error, want string) {
	t.Helper()
	var refusal *attest.Refusal
	if id != nil || err == nil || errors.As(err, &refusal) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, %v, want no decision and %q", id, err, want)
	}
}

func TestEvidenceOfAMachineIsItsIdentity(t *testing.T) {
	a, c := newAttestor(t, program(t, "attest"))
	collector := NewCollector(program(t, "collect", "worker-1"))
	if name, err := collector.NodeName(t.Context()); name != "worker-1" || err != nil {
		t.Errorf("the name is %q, %v", name, err)
	}
	about := attest.Binding{Challenge: c.Challenge(), PublicKey: key}
	text, err := collector.Collect(t.Context(), about)
	if err != nil {
		t.Fatal(err)
	}
	id, err := a.Attest(t.Context(), request(text))
	if err != nil {
		t.Fatal(err)
	}
	if id.Provider != "fake" || id.InstanceID != "worker-1" || id.NodeName != "worker-1" || id.PublicKey != key || id.Account != "shop" ||
		fmt.Sprint(id.Names, id.Addresses) != "[worker-1] [10.0.0.7]" || id.Digest == [32]byte{} {
		t.Errorf("%+v", id)
	}
}

func TestWhatTheProgramNeverSees(t *testing.T) {
	a, c := newAttestor(t, program(t, "attest", "trusting"))
	good := fakeprovider.New("worker-1", "", "")
	refusedOf := func(req *attest.Request) error {
		id, err := a.Attest(t.Context(), req)
		if id != nil {
			t.Errorf("%s: %+v", req.Body, id)
		}
		return err
	}
	sealedFor, err := c.Seal("another", []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	otherNode, err := c.Seal("fake", []byte(`{"nodeName":"worker-2"}`))
	if err != nil {
		t.Fatal(err)
	}
	for text, code := range map[string]verdict.Code{
		"":                                       alwaysallow.EvidenceMalformed,
		"{}":                                     alwaysallow.EvidenceMalformed,
		`{"evidence":{},"a":1}`:                  alwaysallow.EvidenceMalformed,
		`{"evidence":{"a":1,"a":2}}`:             alwaysallow.EvidenceMalformed,
		`{"evidence":{},"evidence":{}}`:          alwaysallow.EvidenceMalformed,
		`{"evidence":{},"publicKey":"sha256:0"}`: alwaysallow.EvidenceMalformed,
		`{"evidence":{},"challenge":"c","state":"s"}`: alwaysallow.EvidenceMalformed,
		`{"evidence":{}}`:                                           attest.ChallengeInvalid,
		`{"evidence":{},"challenge":"c"}`:                           attest.ChallengeInvalid,
		`{"evidence":{},"state":"s"}`:                               attest.ChallengeInvalid,
		`{"evidence":{},"state":"` + c.Challenge() + `"}`:           attest.ChallengeInvalid,
		`{"evidence":{},"state":"` + sealedFor + `"}`:               attest.ChallengeInvalid,
		`{"evidence":{},"state":"` + otherNode + `"}`:               attest.ChallengeInvalid,
		`{"evidence":{},"challenge":"` + otherNode + `"}`:           attest.ChallengeInvalid,
		`{"evidence":{},"challenge":"c","publicKey":"` + key + `"}`: attest.ChallengeInvalid,
	} {
		t.Run(text, func(t *testing.T) { refusedWith(t, refusedOf(request([]byte(text))), code) })
	}
	if id, err := a.Attest(t.Context(), shown(t, c.Challenge(), "", good)); err != nil || id == nil {
		t.Errorf("the program accepts all, but: %v", err)
	}
}

func TestRefusalsOfTheProgram(t *testing.T) {
	a, c := newAttestor(t, program(t, "attest"))
	challenge := c.Challenge()
	for code, evidence := range map[verdict.Code]any{
		"SignatureInvalid":       fakeprovider.Evidence{Machine: "worker-1"},
		"ChallengeInvalid":       fakeprovider.New("worker-1", c.Challenge(), key),
		"PublicKeyNotInEvidence": fakeprovider.New("worker-1", challenge, otherKey),
	} {
		t.Run(string(code), func(t *testing.T) {
			_, err := a.Attest(t.Context(), shown(t, challenge, key, evidence))
			refusedWith(t, err, code)
		})
	}
}

// TestProgramsThatDoNotDecide: nothing that goes wrong is a refusal, or an identity.
func TestProgramsThatDoNotDecide(t *testing.T) {
	for fault, want := range map[string]string{
		"silent": "wrote something else than one AttestResponse", "noise": "not valid JSON", "twice": "text follows the document",
		"both": "it has 2 of identity, refusal and challenge", "endless": "wrote 64 KiB or more",
		"hang": "did not end within", "leave-child": "left a process with its output",
		"quote": "ended with exit status 3; it says: cannot read",
	} {
		t.Run(fault, func(t *testing.T) {
			p := program(t, "attest", fault)
			if fault == "hang" {
				p.Timeout = time.Second
			}
			a, c := newAttestor(t, p)
			challenge := c.Challenge()
			began := time.Now()
			id, err := a.Attest(t.Context(), shown(t, challenge, key, fakeprovider.New("worker-1", challenge, key)))
			undecided(t, id, err, want)
			if took := time.Since(began); took > 8*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
	for path, want := range map[string]string{"/does/not/exist": "start a program", "/etc/hosts": "start a program"} {
		a, c := newAttestor(t, Program{Command: []string{path}, Timeout: time.Second, MaxConcurrent: 1})
		id, err := a.Attest(t.Context(), shown(t, c.Challenge(), "", 1))
		undecided(t, id, err, want)
	}
}

func TestErrorsHaveNoEvidence(t *testing.T) {
	p := program(t, "attest", "quote")
	a, c := newAttestor(t, p)
	challenge := c.Challenge()
	evidence := fakeprovider.New("worker-1", challenge, key)
	_, err := a.Attest(t.Context(), shown(t, challenge, key, evidence))
	if err == nil || strings.Contains(err.Error(), challenge[:20]) || strings.Contains(err.Error(), key[:20]) {
		t.Errorf("%v", err)
	}
	collector := NewCollector(program(t, "collect", "worker-1", "quote"))
	_, err = collector.Collect(t.Context(), attest.Binding{Challenge: challenge, PublicKey: key})
	if err == nil || strings.Contains(err.Error(), challenge[:20]) || !strings.Contains(err.Error(), "cannot read") {
		t.Errorf("%v", err)
	}
	for message, want := range map[string]string{
		"connection refused\nby  host": "connection refused by host",
		"bad token ABCDEFGHIJKLMNOP!":  "bad token …!",
		"bad BCDEFGHIJKLM and KLMNOP":  "bad … and KLMNOP",
		strings.Repeat("x", 1000):      strings.Repeat("x", maxMessage),
	} {
		if got := withoutCopies(message, []byte(`{"token":"ABCDEFGHIJKLMNOP"}`)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestEvidenceOfOneLetter: the cost of an error grows with the evidence and the message, not with their product.
func TestEvidenceOfOneLetter(t *testing.T) {
	began := time.Now()
	if got := withoutCopies(strings.Repeat("a", maxOutput), bytes.Repeat([]byte("a"), 64<<10)); got != "…" {
		t.Errorf("%q", got)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestProgramsHaveAnEnvironmentOfTheirOwn(t *testing.T) {
	t.Setenv("SECRET_OF_THE_SERVER", "1")
	p := program(t, "attest", "environment")
	variables := []string{"PROJECT=shop", "FROM_SERVER", "UNSET_HERE", "API_TOKEN=0123456789abcdef"}
	p.Environment = Environ(variables, func(name string) (string, bool) {
		return map[string]string{"FROM_SERVER": "yes"}[name], name == "FROM_SERVER"
	})
	a, c := newAttestor(t, p)
	id, err := a.Attest(t.Context(), shown(t, c.Challenge(), "", fakeprovider.New("worker-1", "", "")))
	undecided(t, id, err, "PROJECT=shop FROM_SERVER=yes API_TOKEN=…")
	if err := a.refusal(&v1alpha1.AttestRefusal{Code: "WrongToken", Message: "0123456789abcdef"}, nil); err.Error() != "WrongToken: …" {
		t.Error(err)
	}
	if strings.Contains(err.Error(), "SECRET_OF_THE_SERVER") || strings.Contains(err.Error(), "UNSET_HERE") {
		t.Error(err)
	}
}

// TestWaitingEndsWithTheRequest: more requests than programs wait, until their deadline.
func TestWaitingEndsWithTheRequest(t *testing.T) {
	p := program(t, "attest", "slow")
	p.MaxConcurrent = 2
	a, c := newAttestor(t, p)
	challenge := c.Challenge()
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			if _, err := a.Attest(t.Context(), shown(t, challenge, key, fakeprovider.New("worker-1", challenge, key))); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	p = program(t, "attest", "hang")
	p.MaxConcurrent = 1
	a, c = newAttestor(t, p)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	errs := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := a.Attest(ctx, shown(t, c.Challenge(), "", 1))
			errs <- err
		}()
	}
	waited := 0
	for range 2 {
		err := <-errs
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if err != nil && strings.Contains(err.Error(), "the limit") {
			waited++
		}
	}
	if waited != 1 {
		t.Errorf("%d requests waited", waited)
	}
}

func TestRounds(t *testing.T) {
	a, c := newAttestor(t, program(t, "attest", "rounds"))
	collector := NewCollector(program(t, "collect", "worker-1"))
	about := attest.Binding{Challenge: c.Challenge(), PublicKey: key}
	first, err := collector.Collect(t.Context(), about)
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Attest(t.Context(), request(first))
	var more *attest.Continue
	if !errors.As(err, &more) {
		t.Fatal(err)
	}
	second, err := collector.Respond(t.Context(), about, more.Challenge)
	if err != nil {
		t.Fatal(err)
	}
	id, err := a.Attest(t.Context(), request(second))
	if err != nil || id.PublicKey != key {
		t.Errorf("%+v, %v", id, err)
	}
	t.Run("an answer of another machine", func(t *testing.T) {
		thief := NewCollector(program(t, "collect", "worker-2"))
		stolen, err := thief.Respond(t.Context(), attest.Binding{Challenge: about.Challenge, PublicKey: otherKey}, more.Challenge)
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.Attest(t.Context(), request(stolen))
		refusedWith(t, err, "PublicKeyNotInEvidence") // the key is that of the first round
	})
	t.Run("for another node", func(t *testing.T) {
		other := request(second)
		other.NodeName = "worker-2"
		_, err := a.Attest(t.Context(), other)
		refusedWith(t, err, attest.ChallengeInvalid)
	})
}
