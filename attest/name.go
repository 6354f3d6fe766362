package attest

import (
	"regexp"
	"strings"

	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// ReservedName is the code of a refusal: the name belongs to a service of the cluster, or can be
// read as an address.
const ReservedName verdict.Code = "ReservedName"

// CheckName returns a refusal for a name that no machine may choose. Providers whose evidence
// has a name that people other than the operator may have set call it.
func CheckName(name string) error {
	switch {
	case nodeidentity.Reserved(name):
		return Refuse(ReservedName, "the name %q belongs to a service of the cluster", name)
	case readsAsAddress(name):
		return Refuse(ReservedName, "the name %q can be read as an IP address", name)
	}
	return nil
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
