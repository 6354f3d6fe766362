// Package attest turns the evidence that a machine shows into the identity of
// that machine.
//
// A provider of evidence is one package with two halves. The client's half, a
// [Collector], runs on the machine and collects the evidence. The server's half,
// an [Attestor], checks it and says which machine it is about and which node name
// that machine has. The name comes from the evidence; what the machine calls
// itself is only compared with it.
//
// An attestor has three outcomes: an [Identity], a [Refusal], or any other error,
// which means that the evidence could not be checked. Only the first is good for
// anything, and only the last is worth another try.
package attest

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/node-authorizer/node-authorizer/verdict"
)

// Request is the evidence of one machine, as it arrived.
type Request struct {
	// NodeName is the name that the machine asks for. It is not evidence.
	NodeName string
	// RemoteAddr is the address that the request came from, unmapped (an IPv4
	// address is never in the form of an IPv6 address).
	RemoteAddr netip.Addr
	// Body is the document that the machine sent, JSON, of bounded size.
	Body []byte
}

// Identity is a machine as the evidence shows it.
type Identity struct {
	// Provider is the name of the attestor.
	Provider string
	// InstanceID names the machine for good: the provider gives it to no other
	// machine. It is a DNS label, or several with dots: "i-0123456789abcdef0".
	InstanceID string
	// NodeName is the name of the machine's node, by the attestor's naming rule.
	NodeName string
	// Names are the DNS names, and Addresses the IP addresses, that the machine
	// may have in its serving certificate.
	Names     []string
	Addresses []netip.Addr
	// Account, Region and Zone are where the machine is; empty where the provider
	// knows none.
	Account, Region, Zone string
	// Digest is the SHA-256 of the evidence that was checked.
	Digest [32]byte
	// Issued is when the evidence was made, for a virtual machine the time of its
	// start; zero if it does not say.
	Issued time.Time
}

// Attestor is the server's half of a provider. It is safe for concurrent use.
type Attestor interface {
	// Name is that of the provider: a DNS label, the first part of the names of
	// its ledger entries.
	Name() string
	// Attest checks evidence. The error is a [*Refusal] if the machine may not
	// join, and any other error if that could not be found out.
	Attest(ctx context.Context, req *Request) (*Identity, error)
}

// Presence is implemented by attestors that can tell whether a machine which
// they once attested still exists.
type Presence interface {
	// Gone reports whether the machine has ended for good: it will never show
	// evidence again. A machine that is merely stopped is not gone. The region is
	// the one of its Identity.
	Gone(ctx context.Context, instanceID, region string) (bool, error)
}

// Collector is the client's half of a provider.
type Collector interface {
	// NodeName is the name that the machine's kubelet will register under.
	NodeName(ctx context.Context) (string, error)
	// Collect returns the body of the request to the server, JSON. The challenge
	// is what the server asked to be signed; empty for nothing.
	Collect(ctx context.Context, challenge string) ([]byte, error)
}

// Refusal is the error that says that a machine may not join.
type Refusal struct {
	// Code is the reason, documented in docs/reasons.md.
	Code verdict.Code
	// Malformed tells that the request is not of the attestor's form at all, so
	// that nothing was checked.
	Malformed bool
	// Detail is what was found, for the operator's log and the ledger. It is not
	// told to the machine, and holds no evidence, only what the evidence says.
	Detail string
}

func (r *Refusal) Error() string { return fmt.Sprintf("%s: %s", r.Code, r.Detail) }

// Refuse returns a refusal.
func Refuse(code verdict.Code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Detail: fmt.Sprintf(format, args...)}
}
