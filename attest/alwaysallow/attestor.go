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
	"regexp"
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
	// EvidenceMalformed: what was sent is neither empty nor a JSON object.
	EvidenceMalformed verdict.Code = "EvidenceMalformed"
	// ReservedName: the name is one of the cluster's own, or reads as an address.
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
//
// The client of kops' node-authorizer sends an empty body for this provider, ours an
// empty object.
func (*Attestor) Attest(_ context.Context, req *attest.Request) (*attest.Identity, error) {
	if err := checkBody(req.Body); err != nil {
		return nil, &attest.Refusal{Code: EvidenceMalformed, Malformed: true, Detail: fmt.Sprintf("the request: %v", err)}
	}
	name := strings.ToLower(req.NodeName)
	switch {
	case nodeidentity.Reserved(name):
		return nil, attest.Refuse(ReservedName, "the name %q is one that the cluster's own services have", name)
	case readsAsAddress(name):
		return nil, attest.Refuse(ReservedName, "the name %q reads as an IP address", name)
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

// hexadecimal is a number as inet_aton(3) reads it in an address.
var hexadecimal = regexp.MustCompile(`^0x[0-9a-f]*$`)

// readsAsAddress reports whether programs take a name for an IPv4 address: those
// that end in a number (https://url.spec.whatwg.org/#ends-in-a-number-checker), as
// 10.0.0.7, 10.7, 167772167 and 0x0a000007. A certificate for such a name could
// stand for the address of another machine, which nobody attested.
func readsAsAddress(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	return last != "" && strings.Trim(last, "0123456789") == "" || hexadecimal.MatchString(last)
}
