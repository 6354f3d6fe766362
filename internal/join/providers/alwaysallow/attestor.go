// Package alwaysallow is a provider that accepts every machine.
//
// It is for development, and for networks that already authenticate machines, for example
// with client certificates. It proves nothing: every caller that can connect gets a
// token, for any name that no node has.
//
// The ledger still applies. A name is given once. A second machine with the same name
// gets the token of the first while it is valid and unused, and nothing afterwards. So a
// machine whose name was taken cannot join, which is noticed.
package alwaysallow

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/netip"
	"strings"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/strictjson"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Name is the name of the provider.
const Name = "alwaysallow"

// EvidenceMalformed is the code of a refusal: the body is neither empty nor a JSON object. See
// docs/reference/reasons.
const EvidenceMalformed verdict.Code = "EvidenceMalformed"

// Attestor is the server's half of the provider.
type Attestor struct{}

var _ attest.Attestor = (*Attestor)(nil)

// New returns an attestor.
func New() *Attestor { return &Attestor{} }

// Name returns "alwaysallow".
func (*Attestor) Name() string { return Name }

// Attest accepts the requested name, in lower case as in kubelet. The name is also the
// identity of the machine. Its certificates may have that name and the source address of
// the request.
//
// The client of kops' node-authorizer sends an empty body for this provider, ours an
// empty object.
func (*Attestor) Attest(_ context.Context, req *attest.Request) (*attest.Identity, error) {
	if err := checkBody(req.Body); err != nil {
		return nil, attest.Malformed(EvidenceMalformed, "the request: %v", err)
	}
	name := strings.ToLower(req.NodeName)
	if err := attest.CheckName(name); err != nil {
		return nil, err
	}
	return &attest.Identity{
		Provider: Name, InstanceID: name, NodeName: name,
		Names: []string{name}, Addresses: []netip.Addr{req.RemoteAddr},
		Digest: sha256.Sum256(req.Body),
	}, nil
}

func checkBody(body []byte) error {
	if len(body) == 0 {
		return nil
	}
	var object map[string]any
	err := strictjson.Unmarshal(body, &object, strictjson.Options{AllowUnknown: true})
	if err == nil && object == nil {
		err = errors.New("want an object, not null")
	}
	return err
}
