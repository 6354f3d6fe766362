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

// The codes of refusals. See docs/reference/reasons.
const (
	// EvidenceMalformed: the body is neither empty nor a JSON object.
	EvidenceMalformed verdict.Code = "EvidenceMalformed"
	// ReservedName: the name belongs to a service of the cluster, or can be read as an
	// address.
	ReservedName verdict.Code = "ReservedName"
)

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
		return nil, &attest.Refusal{Code: EvidenceMalformed, Malformed: true, Detail: fmt.Sprintf("the request: %v", err)}
	}
	name := strings.ToLower(req.NodeName)
	switch {
	case nodeidentity.Reserved(name):
		return nil, attest.Refuse(ReservedName, "the name %q belongs to a service of the cluster", name)
	case readsAsAddress(name):
		return nil, attest.Refuse(ReservedName, "the name %q can be read as an IP address", name)
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

// hexadecimal is a number in an address that inet_aton(3) accepts.
var hexadecimal = regexp.MustCompile(`^0x[0-9a-f]*$`)

// readsAsAddress reports whether programs may read a name as an IPv4 address: names that
// end in a number (https://url.spec.whatwg.org/#ends-in-a-number-checker), such as
// 10.0.0.7, 10.7, 167772167 and 0x0a000007. A certificate for such a name could stand for
// the address of another machine, which was not attested.
func readsAsAddress(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	return last != "" && strings.Trim(last, "0123456789") == "" || hexadecimal.MatchString(last)
}
