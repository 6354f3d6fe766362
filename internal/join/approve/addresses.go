package approve

import (
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// allowedNames returns the names and addresses that a node's serving certificate may have.
func (s *subject) allowedNames() altNames {
	var own altNames
	if entry, _ := s.holder(); entry != nil {
		own.addAll(entry.Spec.Names, entry.Spec.Addresses)
	}
	if s.ServingAddresses == ServingLedgerAndNode {
		own.addNode(s.NodeAddresses)
	}
	return own
}

func (n *altNames) addAll(names, addresses []string) {
	for _, name := range names {
		n.addName(name)
	}
	for _, text := range addresses {
		n.addAddress(text)
	}
}

func (n *altNames) addName(name string) {
	if name != "" && !strings.Contains(name, "*") {
		n.dns = append(n.dns, name)
	}
}

func (n *altNames) addAddress(text string) {
	if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
		n.addresses = append(n.addresses, a.Unmap())
	}
}

// addNode adds the names and addresses of the Node's status that kubelets request. It never
// adds names and addresses that every machine of a cluster relies on.
func (n *altNames) addNode(addresses []corev1.NodeAddress) {
	for _, address := range addresses {
		a, err := netip.ParseAddr(address.Address)
		switch address.Type {
		case corev1.NodeHostName, corev1.NodeInternalDNS, corev1.NodeExternalDNS:
			switch {
			case err == nil && address.Type == corev1.NodeHostName:
				n.addNodeAddress(a)
			case err != nil && !nodeidentity.Reserved(address.Address):
				n.addName(address.Address)
			}
		case corev1.NodeInternalIP, corev1.NodeExternalIP:
			if err == nil {
				n.addNodeAddress(a)
			}
		}
	}
}

func (n *altNames) addNodeAddress(a netip.Addr) {
	a = a.Unmap()
	if a.IsGlobalUnicast() && a.Zone() == "" {
		n.addresses = append(n.addresses, a)
	}
}

// ownAddresses requires that the names and addresses are the ones of the node, unless sources decide.
func (s *subject) ownAddresses() *failure {
	if s.bySources() {
		return nil
	}
	allowed := s.allowedNames()
	foreign := s.request.names.except(allowed.hasName, allowed.hasAddress)
	if foreign.empty() {
		return nil
	}
	return denied("node %s was not attested with %s", printable(s.claim.Node), &foreign)
}
