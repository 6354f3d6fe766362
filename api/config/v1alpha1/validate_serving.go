package v1alpha1

import (
	"net/netip"
	"strings"

	kubevalidation "k8s.io/apimachinery/pkg/util/validation"

	"github.com/node-authorizer/node-authorizer/internal/nametemplate"
)

// maxServing limits the sources of serving certificates, and the names and networks of each. A
// request leads to one look-up in DNS for each name at most.
const maxServing = 16

func (v *validation) servingCertificates(sources []ServingSource) {
	const field = "approver.servingCertificates"
	v.most(field, len(sources))
	for i := range sources {
		s, path := &sources[i], elementPath(field, i)
		if len(s.Names)+len(s.Networks) == 0 && !s.NodeAddresses && !s.Machine {
			v.wrong(path, "vouches for nothing: give it names, networks, nodeAddresses: true or machine: true")
		}
		if s.DNS && len(s.Names) == 0 {
			v.wrong(path+".dns", "requires names: without them, a node could ask for the name of any machine that DNS knows")
		}
		v.most(path+".names", len(s.Names))
		v.list(path+".names", s.Names, isNodeDNSName, "a DNS name with the node's name in it, such as {{.NodeName}}.example.com")
		v.most(path+".networks", len(s.Networks))
		v.list(path+".networks", s.Networks, isNetwork, "a network that only nodes have addresses in, such as 10.0.0.0/16 or fd00:1::/64")
	}
}

func (v *validation) most(field string, length int) {
	if length > maxServing {
		v.wrong(field, "want %d elements at most, got %d", maxServing, length)
	}
}

// isNodeDNSName reports whether a template makes different DNS names for different nodes.
func isNodeDNSName(text string) bool {
	template, err := nametemplate.Parse(text, nametemplate.NodeName)
	return err == nil && strings.Contains(text, "{{") &&
		len(kubevalidation.IsDNS1123Subdomain(template.Execute(map[string]string{nametemplate.NodeName: "node"}))) == 0
}

// isNetwork reports whether a text is a network in its only form, but not all addresses.
func isNetwork(text string) bool {
	network, err := netip.ParsePrefix(text)
	return err == nil && network.Bits() > 0 && network.Masked().String() == text && !network.Addr().Is4In6()
}
