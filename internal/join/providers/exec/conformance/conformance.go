// Package conformance puts cases to the program of a provider, and says which of them it decides wrongly.
//
// The cases change one thing in the request of a machine that may join. A program passes if no changed
// request is accepted as another machine, and if it decides nothing about requests that it cannot read.
// Passing does not prove that the evidence proves anything: only the provider knows that.
package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/exec"
)

// Result is the result of a case.
type Result string

// The results.
const (
	// Passed: the program decides as it must.
	Passed Result = "Passed"
	// Failed: the program decides wrongly.
	Failed Result = "Failed"
	// NotBound: the program accepts changed evidence as the same machine, or evidence that does not contain what it could.
	NotBound Result = "NotBound"
	// NotTried: nothing is known about the case.
	NotTried Result = "NotTried"
)

// Case is a case with its result.
type Case struct {
	// Name is the name of the case.
	Name string `json:"name"`
	// Want is what the program must do.
	Want string `json:"want"`
	// Result is the result.
	Result Result `json:"result"`
	// Detail is what the program did.
	Detail string `json:"detail"`
}

// Options say what is tried.
type Options struct {
	// Program is the program on the service.
	Program exec.Program
	// Good is the request of a machine that may join, and Other that of another one; may be nil.
	Good, Other *v1alpha1.AttestRequest
	// Machine answers challenges of the program for Good; nil if nothing can.
	Machine attest.Responder
}

// trial is one run of the cases.
type trial struct {
	Options
	attestor *exec.Attestor
	machine  *attest.Identity
	cases    []Case
	// round is the beginning of the names of cases; empty for the last round.
	round string
}

// What programs must do.
const (
	wantMachine  = "it is the same machine"
	wantNoOther  = "it is no other machine"
	wantNothing  = "nothing is decided: another exit status than 0"
	wantRefusal  = "it is refused, or not decided"
	wantUnlinked = "it is refused, or its identity does not name it"
)

// Run puts all cases to the program: to its last round, and what changes evidence to those before. Without an identity for the
// good request, the others are not tried.
func Run(ctx context.Context, o Options) []Case {
	t := &trial{Options: o, attestor: exec.New(exec.Options{Provider: "tested", Program: o.Program, Challenger: unsealed{}})}
	id, rounds, err := t.allRounds(ctx)
	if err != nil {
		result := Failed
		if errors.Is(err, errNoMachine) {
			result = NotTried
		}
		return append(t.cases, Case{"good evidence", "it is a machine", result, fmt.Sprint(err)},
			Case{"all other cases", wantNoOther, NotTried, "they change evidence that is accepted"})
	}
	t.machine = id
	t.add("good evidence", "it is a machine", Passed, fmt.Sprintf("instance %s, node %s", id.InstanceID, id.NodeName))
	t.changed(ctx, "the same evidence again", wantMachine, t.Good)
	t.atOnce(ctx)
	t.unreadable(ctx)
	t.bindings(ctx)
	t.fields(ctx)
	t.bits(ctx)
	t.another(ctx)
	for i, request := range rounds {
		t.round, t.Good = fmt.Sprintf("round %d: ", i+1), request
		t.fields(ctx)
		t.bits(ctx)
	}
	return t.cases
}

func (t *trial) add(name, want string, result Result, detail string) {
	t.cases = append(t.cases, Case{t.round + name, want, result, detail})
}

func (t *trial) ask(ctx context.Context, request *v1alpha1.AttestRequest) (*attest.Identity, error) {
	text, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	return t.attestor.Ask(ctx, text, request)
}

// judge says whether an outcome is one of those that are wanted.
func (t *trial) judge(want string, id *attest.Identity, err error) (Result, string) {
	var refusal *attest.Refusal
	var more *attest.Continue
	var failed *exec.Failed
	garbage := errors.As(err, &failed) && failed.Answered
	refused := errors.As(err, &refusal) || errors.As(err, &more)
	same := id != nil && id.InstanceID == t.machine.InstanceID && id.NodeName == t.machine.NodeName
	passed := map[string]bool{
		wantMachine: same, wantNoOther: id == nil || same, wantNothing: id == nil && !refused, wantRefusal: id == nil,
		wantUnlinked: id == nil || same && id.PublicKey == "",
	}[want] && !garbage
	detail := fmt.Sprint(err)
	if id != nil {
		detail = fmt.Sprintf("accepted: instance %s, node %s", id.InstanceID, id.NodeName)
	}
	if passed {
		return Passed, detail
	}
	return Failed, detail
}

func (t *trial) changed(ctx context.Context, name, want string, request *v1alpha1.AttestRequest) {
	id, err := t.ask(ctx, request)
	result, detail := t.judge(want, id, err)
	t.add(name, want, result, detail)
}

// all puts requests to the program at the same time, and adds one case for them.
func (t *trial) all(ctx context.Context, name, want string, requests []*v1alpha1.AttestRequest) {
	var asking errgroup.Group
	wrong := make([]string, len(requests))
	for i, request := range requests {
		asking.Go(func() error {
			id, err := t.ask(ctx, request)
			if result, detail := t.judge(want, id, err); result == Failed {
				wrong[i] = detail
			}
			return nil
		})
	}
	_ = asking.Wait()
	wrong = slices.DeleteFunc(wrong, func(detail string) bool { return detail == "" })
	if len(wrong) > 0 {
		t.add(name, want, Failed, fmt.Sprintf("%d of %d: %s", len(wrong), len(requests), wrong[0]))
		return
	}
	t.add(name, want, Passed, fmt.Sprintf("%d requests", len(requests)))
}

func (t *trial) atOnce(ctx context.Context) {
	t.all(ctx, "20 machines at once", wantMachine, slices.Repeat([]*v1alpha1.AttestRequest{t.Good}, 20))
}

// unreadable are requests that are not of this version. A refusal would be final for a machine that may join.
func (t *trial) unreadable(ctx context.Context) {
	text, err := json.Marshal(t.Good)
	if err != nil {
		t.add("unreadable requests", wantNothing, NotTried, err.Error())
		return
	}
	for _, c := range []struct{ name, want, text string }{
		{"no request: standard input is empty", wantNothing, ""},
		{"standard input ends in the middle", wantNothing, string(text[:len(text)/2])},
		{"a request of another apiVersion", wantNothing, strings.Replace(string(text), v1alpha1.Version, "v9", 1)},
		{"a request of another kind", wantNothing, strings.Replace(string(text), v1alpha1.AttestRequestKind, "Other", 1)},
		{"a request with a field of a later version", wantMachine, strings.Replace(string(text), "{", `{"later":{"a":[1]},`, 1)},
	} {
		id, err := t.attestor.Ask(ctx, []byte(c.text), t.Good)
		result, detail := t.judge(c.want, id, err)
		t.add(c.name, c.want, result, detail)
	}
}

// with returns a changed copy of the good request.
func (t *trial) with(change func(*v1alpha1.AttestRequest)) *v1alpha1.AttestRequest {
	request := *t.Good
	change(&request)
	return &request
}

// bindings changes what the evidence may be about.
func (t *trial) bindings(ctx context.Context) {
	t.changed(ctx, "another node name is requested", wantNoOther, t.with(func(r *v1alpha1.AttestRequest) { r.NodeName = "other-node" }))
	key := "sha256:" + strings.Repeat("5a", 32)
	t.changed(ctx, "another public key", wantUnlinked, t.with(func(r *v1alpha1.AttestRequest) { r.PublicKey = key }))
	t.changed(ctx, "another challenge", wantNoOther, t.with(func(r *v1alpha1.AttestRequest) { r.Challenge = "other" + r.Challenge }))
	t.changed(ctx, "another source address", wantNoOther, t.with(func(r *v1alpha1.AttestRequest) { r.RemoteAddress = "192.0.2.77" }))
	t.notBound(len(t.cases)-3, "a copy of the evidence is good with this")
	if t.Good.State != nil {
		t.changed(ctx, "the state of the round before is missing", wantRefusal, t.with(func(r *v1alpha1.AttestRequest) { r.State = nil }))
	}
}

// notBound marks the cases from one on in which the changed evidence is accepted as the same machine.
func (t *trial) notBound(from int, means string) {
	for i := from; i < len(t.cases); i++ {
		if c := &t.cases[i]; c.Result == Passed && strings.HasPrefix(c.Detail, "accepted") {
			c.Result, c.Detail = NotBound, "accepted: "+means
		}
	}
}

// fields changes the evidence as a whole, and each of its fields.
func (t *trial) fields(ctx context.Context) {
	evidence := func(text string) *v1alpha1.AttestRequest {
		return t.with(func(r *v1alpha1.AttestRequest) { r.Evidence = json.RawMessage(text) })
	}
	for _, text := range []string{"null", "{}", "[]", `""`, "1"} {
		t.changed(ctx, "the evidence is "+text, wantRefusal, evidence(text))
	}
	t.changed(ctx, "60 KiB of evidence", wantNoOther, evidence(`"`+strings.Repeat("a", 60<<10)+`"`))
	var object map[string]json.RawMessage
	if json.Unmarshal(t.Good.Evidence, &object) != nil {
		t.add("each field of the evidence", wantNoOther, NotTried, "the evidence is not an object")
		return
	}
	from := len(t.cases)
	for _, name := range slices.Sorted(maps.Keys(object)) {
		for _, c := range []struct{ change, value string }{
			{"is missing", ""}, {"has another type", `{"a":[1]}`}, {"is null", "null"},
		} {
			other := maps.Clone(object)
			if other[name] = json.RawMessage(c.value); c.value == "" {
				delete(other, name)
			}
			text, err := json.Marshal(other)
			if err != nil {
				t.add("the field "+name+" "+c.change, wantNoOther, NotTried, err.Error())
				continue
			}
			t.changed(ctx, "the field "+name+" "+c.change, wantNoOther, evidence(string(text)))
		}
	}
	t.notBound(from, "the program does not need this field")
}

// flipped is how many bytes have each of their bits flipped.
const flipped = 12

// bits flips bits of the evidence, in bytes that are spread over it, and at the ends of the machine's id and name. A text
// that is not JSON never comes to a program.
func (t *trial) bits(ctx context.Context) {
	var requests []*v1alpha1.AttestRequest
	var places []int
	size := len(t.Good.Evidence)
	for n := range min(flipped, size) {
		places = append(places, n*size/min(flipped, size))
	}
	for _, name := range []string{t.machine.InstanceID, t.machine.NodeName} {
		if at := strings.Index(string(t.Good.Evidence), name); at >= 0 {
			places = append(places, at+len(name)-1)
		}
	}
	for _, place := range places {
		for bit := range 8 {
			text := slices.Clone(t.Good.Evidence)
			text[place] ^= 1 << bit
			if json.Valid(text) {
				requests = append(requests, t.with(func(r *v1alpha1.AttestRequest) { r.Evidence = text }))
			}
		}
	}
	if len(requests) == 0 {
		t.add("a bit of the evidence is flipped", wantNoOther, NotTried, "no change of a bit leaves JSON")
		return
	}
	t.all(ctx, "a bit of the evidence is flipped", wantNoOther, requests)
}

// another shows the evidence of another machine.
func (t *trial) another(ctx context.Context) {
	const name, want = "the evidence of another machine", "it is another machine"
	if t.Other == nil {
		t.add(name, want, NotTried, "none was given")
		return
	}
	id, err := t.ask(ctx, t.Other)
	switch {
	case err != nil:
		t.add(name, want, Failed, fmt.Sprint(err))
	case id.InstanceID == t.machine.InstanceID || id.NodeName == t.machine.NodeName:
		t.add(name, want, Failed, fmt.Sprintf("accepted: instance %s, node %s", id.InstanceID, id.NodeName))
	default:
		t.add(name, want, Passed, fmt.Sprintf("instance %s, node %s", id.InstanceID, id.NodeName))
	}
}
