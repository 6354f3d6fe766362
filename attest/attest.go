// Package attest verifies the evidence of a machine and returns its identity.
//
// A provider is one package with two halves. The client's half, a [Collector], runs on
// the machine and collects the evidence. The server's half, an [Attestor], verifies it
// and returns which machine it is about and the name of its node. The name comes from the
// evidence; the name that the machine requests is only compared with it.
//
// An attestor has four outcomes: an [Identity], a [Refusal], a [Continue], which asks for another
// round of evidence, or any other error, which means that the evidence could not be verified. Only
// after the last can a retry succeed.
package attest

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/node-authorizer/node-authorizer/verdict"
)

// Request is the evidence of one machine, as received.
type Request struct {
	// NodeName is the requested name. It is not evidence.
	NodeName string
	// RemoteAddr is the source address of the request, unmapped (an IPv4 address is never
	// in the form of an IPv6 address).
	RemoteAddr netip.Addr
	// Body is the received JSON document, of bounded size.
	Body []byte
}

// Identity is the identity of a machine according to the evidence.
type Identity struct {
	// Provider is the name of the attestor.
	Provider string
	// InstanceID identifies the machine: the provider never reuses it. It consists of DNS
	// labels: "i-0123456789abcdef0".
	InstanceID string
	// NodeName is the name of the machine's node, by the attestor's naming rule.
	NodeName string
	// Names and Addresses are the DNS names and the IP addresses that the machine may
	// have in its serving certificate.
	Names     []string
	Addresses []netip.Addr
	// Account, Region and Zone are where the machine is. They are empty if the provider
	// has none.
	Account, Region, Zone string
	// ProviderID is spec.providerID of the machine's Node, as the provider's cloud controller manager
	// writes it: "aws:///eu-west-1a/i-0123456789abcdef0". It is empty if the evidence does not say.
	ProviderID string
	// PublicKey is "sha256:" and the hash, in hexadecimal, of the public key
	// (SubjectPublicKeyInfo, DER) for which the machine may get its certificate; empty if
	// the evidence names none.
	PublicKey string
	// Description is what else the evidence says about the machine, for people; may be empty.
	Description string
	// Digest is the SHA-256 of the verified evidence.
	Digest [32]byte
	// SingleUse is set if the same evidence must not be accepted twice.
	SingleUse bool
	// Issued is when the evidence was made. For a virtual machine, it is the time of its
	// start. It is zero if the evidence has no time.
	Issued time.Time
}

// Attestor is the server's half of a provider. It is safe for concurrent use.
type Attestor interface {
	// Name is the name of the provider: a DNS label, the prefix of the names of its
	// ledger entries.
	Name() string
	// Attest verifies evidence. The error is a [*Refusal] if the machine may not join, a
	// [*Continue] if it has to show more, and any other error if that could not be decided.
	Attest(ctx context.Context, req *Request) (*Identity, error)
}

// Presence is implemented by attestors that can determine whether an attested machine
// still exists.
type Presence interface {
	// Gone reports whether the machine is terminated: it will never show evidence again.
	// A stopped machine is not gone. The region is the Region of its Identity.
	Gone(ctx context.Context, instanceID, region string) (bool, error)
}

// Collector is the client's half of a provider.
type Collector interface {
	// NodeName is the name that the machine's kubelet will register under.
	NodeName(ctx context.Context) (string, error)
	// Collect returns the body of the request to the server, JSON. The evidence contains
	// what is given, where the provider's evidence can contain it.
	Collect(ctx context.Context, about Binding) ([]byte, error)
}

// Binding is what evidence is bound to.
type Binding struct {
	// Challenge is what the server wants signed. It can be empty.
	Challenge string
	// PublicKey is "sha256:" and the hash, in hexadecimal, of the public key
	// (SubjectPublicKeyInfo, DER) for which the machine asks for its certificate; empty if
	// the kubelet makes the key later.
	PublicKey string
}

// Refusal is the error for a machine that may not join.
type Refusal struct {
	// Code is the reason, documented in docs/reference/reasons.
	Code verdict.Code
	// Malformed is set if the request does not have the attestor's form, so that nothing
	// was checked.
	Malformed bool
	// Detail is for the operator's log and the ledger. It is not sent to the machine. It
	// may quote fields of the evidence, but not the evidence itself.
	Detail string
}

func (r *Refusal) Error() string { return fmt.Sprintf("%s: %s", r.Code, r.Detail) }

// Refuse returns a refusal.
func Refuse(code verdict.Code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// Malformed returns the refusal of a request that does not have the attestor's form.
func Malformed(code verdict.Code, format string, args ...any) *Refusal {
	refusal := Refuse(code, format, args...)
	refusal.Malformed = true
	return refusal
}
