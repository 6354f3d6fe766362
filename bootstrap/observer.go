package bootstrap

import (
	"net/netip"
	"time"

	"github.com/node-authorizer/node-authorizer/verdict"
)

// Outcome is how a request ended.
type Outcome string

const (
	Issued   Outcome = "issued"
	Repeated Outcome = "repeated"
	Refused  Outcome = "refused"
	Failed   Outcome = "error"
)

// Event is what became of one request. It holds neither the evidence nor the
// secret of a token.
type Event struct {
	// Attestor is the name of the attestor.
	Attestor string
	// Asked is the node name that the machine asked for, as it came, cut to 253
	// bytes.
	Asked string
	// Node, Provider and InstanceID are what the evidence says; empty if it was not
	// accepted.
	Node, Provider, InstanceID string
	RemoteAddr                 netip.Addr
	Outcome                    Outcome
	// Status is that of the HTTP answer.
	Status int
	Code   verdict.Code
	// Detail is what was found, for operators.
	Detail string
	// TokenID is the public half of the token that was given.
	TokenID  string
	Duration time.Duration
	// Err is why the request could not be decided, with Failed.
	Err error
}

// Observer is told what becomes of requests. It is safe for concurrent use.
type Observer interface {
	Attested(event Event)
}

type nobody struct{}

func (nobody) Attested(Event) {}
