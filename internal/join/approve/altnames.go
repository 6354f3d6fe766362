package approve

import (
	"encoding/asn1"
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// altNames are subject alternative names. The field otherNames describes names that are neither
// a DNS name nor an IP address.
type altNames struct {
	dns        []string
	addresses  []netip.Addr
	otherNames []string
}

func (n *altNames) empty() bool { return len(n.dns)+len(n.addresses)+len(n.otherNames) == 0 }

func (n *altNames) hasName(name string) bool { return slices.Contains(n.dns, name) }

func (n *altNames) hasAddress(a netip.Addr) bool { return slices.Contains(n.addresses, a) }

// except returns the names and addresses that are not allowed.
func (n *altNames) except(name func(string) bool, address func(netip.Addr) bool) altNames {
	var rest altNames
	for _, d := range n.dns {
		if !name(d) {
			rest.dns = append(rest.dns, d)
		}
	}
	for _, a := range n.addresses {
		// Kubelets do not write IPv4 addresses as IPv6 addresses.
		if a.Is4In6() || !address(a) {
			rest.addresses = append(rest.addresses, a)
		}
	}
	return rest
}

// String lists the first few names, for a message.
func (n *altNames) String() string {
	var first []string
	for _, name := range n.dns[:min(len(n.dns), mostListed)] {
		first = append(first, quote(name))
	}
	for _, a := range n.addresses[:min(len(n.addresses), mostListed)] {
		first = append(first, a.String())
	}
	first = append(first, n.otherNames[:min(len(n.otherNames), mostListed)]...)
	return listed(first, len(n.dns)+len(n.addresses)+len(n.otherNames))
}

// The tags of GeneralName, RFC 5280 section 4.2.1.6.
const (
	nameDNS = 2
	nameIP  = 7
)

// parseAltNames parses GeneralNames with all names: crypto/x509 ignores the forms for which
// it has no field.
func parseAltNames(der []byte) (altNames, error) {
	var names altNames
	var sequence asn1.RawValue
	rest, err := asn1.Unmarshal(der, &sequence)
	if err != nil || len(rest) > 0 || !sequence.IsCompound ||
		sequence.Class != asn1.ClassUniversal || sequence.Tag != asn1.TagSequence {
		return names, errors.New("the subject alternative names cannot be read")
	}
	for rest := sequence.Bytes; len(rest) > 0; {
		var name asn1.RawValue
		if rest, err = asn1.Unmarshal(rest, &name); err != nil {
			return names, errors.New("the subject alternative names cannot be read")
		}
		names.add(name)
	}
	return names, nil
}

func (n *altNames) add(name asn1.RawValue) {
	if name.Class == asn1.ClassContextSpecific && !name.IsCompound {
		switch name.Tag {
		case nameDNS:
			n.dns = append(n.dns, string(name.Bytes))
			return
		case nameIP:
			if a, ok := netip.AddrFromSlice(name.Bytes); ok {
				n.addresses = append(n.addresses, a)
				return
			}
		}
	}
	n.otherNames = append(n.otherNames, formOf(name))
}

func formOf(name asn1.RawValue) string {
	forms := []string{
		"another name", "an e-mail address", "a DNS name", "an X.400 address", "a directory name",
		"an EDI party name", "a URI", "an IP address", "a registered id",
	}
	if name.Class == asn1.ClassContextSpecific && name.Tag < len(forms) {
		if name.Tag == nameIP || name.Tag == nameDNS {
			return fmt.Sprintf("%s of %d bytes", forms[name.Tag], len(name.Bytes))
		}
		return forms[name.Tag]
	}
	return "a name of no known form"
}
