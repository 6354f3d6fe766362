// Package alwaysallow is the provider that believes every machine what it says.
//
// It is for development, and for networks that already know who is talking to the
// bootstrap service, for example because each machine has a client certificate. It
// proves nothing: whoever can connect gets a token, for any name that no node has.
//
// What it does not give up is the ledger. A name is given once; who comes second
// gets the first one's token as long as that is good and not used, and nothing
// afterwards. So a machine whose name somebody else took does not join, which is
// noticed.
package alwaysallow

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/strictjson"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Name is the name of the provider.
const Name = "alwaysallow"

// The codes of refusals. See docs/reasons.md.
const (
	// EvidenceMalformed: what was sent is not a JSON object.
	EvidenceMalformed verdict.Code = "EvidenceMalformed"
	// ReservedName: the name is one of the cluster's own.
	ReservedName verdict.Code = "ReservedName"
)

// Attestor is the server's half of the provider.
type Attestor struct{}

var _ attest.Attestor = (*Attestor)(nil)

// New returns an attestor.
func New() *Attestor { return &Attestor{} }

// Name is "alwaysallow".
func (*Attestor) Name() string { return Name }

// Attest believes the name that is asked for, in lower case as kubelet has it. For
// want of anything better the name is also what the machine is known by. Its
// certificates may have that name and the address that the request came from.
func (*Attestor) Attest(_ context.Context, req *attest.Request) (*attest.Identity, error) {
	var object map[string]any
	err := strictjson.Unmarshal(req.Body, &object, strictjson.Options{AllowUnknown: true})
	if err == nil && object == nil {
		err = errors.New("want an object, not null")
	}
	if err != nil {
		return nil, &attest.Refusal{Code: EvidenceMalformed, Malformed: true, Detail: fmt.Sprintf("the request: %v", err)}
	}
	name := strings.ToLower(req.NodeName)
	if nodeidentity.Reserved(name) {
		return nil, attest.Refuse(ReservedName, "the name %q is one that the cluster's own services have", name)
	}
	return &attest.Identity{
		Provider: Name, InstanceID: name, NodeName: name,
		Names: []string{name}, Addresses: []netip.Addr{req.RemoteAddr},
		Digest: sha256.Sum256(req.Body),
	}, nil
}
