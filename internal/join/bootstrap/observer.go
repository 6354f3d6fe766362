package bootstrap

import (
	"net/netip"
	"time"

	"github.com/node-authorizer/node-authorizer/verdict"
)

// Outcome is the outcome of a request.
type Outcome string

const (
	Issued     Outcome = "issued"
	Repeated   Outcome = "repeated"
	Challenged Outcome = "challenged"
	Refused    Outcome = "refused"
	Failed     Outcome = "error"
)

// Event describes one request. It contains neither the evidence nor the secret of a token.
type Event struct {
	// Attestor is the name of the attestor.
	Attestor string
	// Asked is the requested node name, unchecked, cut to 253 bytes.
	Asked string
	// Node, Provider and InstanceID are from the evidence; empty if it was not
	// accepted.
	Node, Provider, InstanceID string
	RemoteAddr                 netip.Addr
	Outcome                    Outcome
	// Status is the HTTP status of the answer.
	Status int
	Code   verdict.Code
	// Detail explains the code to operators.
	Detail string
	// TokenID is the public half of the token that was given.
	TokenID  string
	Duration time.Duration
	// Err is why the request could not be decided, if the outcome is Failed.
	Err error
}

// Observer is called after each request. It must be safe for concurrent use.
type Observer interface {
	Attested(event Event)
}
