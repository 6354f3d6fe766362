package approve

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/nametemplate"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// Source vouches for the names in a serving certificate of a node that the ledger does not have.
// Everything that it has must hold. It vouches for no DNS names without Names, NodeAddresses or
// Machine, and for no IP addresses without Networks, NodeAddresses, Machine or DNS.
type Source struct {
	// Names are templates of the DNS names, with the placeholder NodeName.
	Names []*nametemplate.Template
	// Networks are where the IP addresses are.
	Networks []netip.Prefix
	// NodeAddresses requires that the Node's status has each DNS name and IP address. It is weak: a
	// kubelet without a cloud provider writes its own addresses.
	NodeAddresses bool
	// Machine requires that the one Machine that is registered for the node has each IP address, and each DNS name
	// except the name of the node.
	Machine bool
	// DNS requires that each DNS name resolves to at least one address, only to addresses in the
	// request, and that one of the names resolves to each address in the request. It requires Names,
	// because otherwise nothing limits what a node lets others look up.
	DNS bool
}

// Limits of requests of nodes that were never attested.
const (
	// mostNames is the number of names and addresses in a request.
	mostNames = 32
	// MostUndecided is how many Serving requests of a node may be undecided at the same time. Others
	// than the newest ones are not compared with sources.
	MostUndecided = 8
)

// bySources reports whether sources decide: about Serving requests of nodes that the ledger does not
// have.
func (s *subject) bySources() bool {
	entry, _ := s.holder()
	return s.claim.Kind == Serving && len(s.Sources) > 0 && entry == nil
}

// vouched requires that a source vouches for all names. If none does, but one may once a fact is
// known, the request is undetermined.
func (s *subject) vouched() *failure {
	if !s.bySources() {
		return nil
	}
	if refusal := s.unfit(); refusal != "" {
		return s.notVouched(refusal)
	}
	var refusals []string
	undetermined := &failure{missing: &Missing{}}
	for i := range s.Sources {
		name := fmt.Sprintf("approver.servingCertificates[%d]", i)
		switch f := s.Sources[i].test(s); {
		case f == nil:
			s.vouchedBy = name
			return nil
		case f.missing != nil:
			undetermined.message = f.message
			undetermined.missing.Names = append(undetermined.missing.Names, f.missing.Names...)
			undetermined.missing.Machines = cmp.Or(undetermined.missing.Machines, f.missing.Machines)
		default:
			refusals = append(refusals, name+": "+f.message)
		}
	}
	if undetermined.message != "" {
		return undetermined
	}
	return s.notVouched(listed(refusals, len(refusals)))
}

func (s *subject) notVouched(why string) *failure {
	refused := denied("no source vouches for all names of node %s: %s", printable(s.claim.Node), why)
	if s.Unattested == LeaveUnattested || s.Unattested == ApproveUnattested {
		refused.outcome = Leave
	}
	return refused
}

// unfit says why no source may vouch for the request; empty if one may.
func (s *subject) unfit() string {
	names := &s.request.names
	if count := len(names.dns) + len(names.addresses); count > mostNames {
		return fmt.Sprintf("the request has %d names and addresses, want %d at most", count, mostNames)
	}
	if s.Newer >= MostUndecided {
		return fmt.Sprintf("the node has %d newer requests that are undecided, want less than %d", s.Newer, MostUndecided)
	}
	if !isDNSName(s.claim.Node) {
		return "the name of the node is not valid"
	}
	// TLS ignores the case of names, but comparisons with the names of other nodes do not.
	unusable := names.except(func(name string) bool { return isDNSName(name) && !nodeidentity.Reserved(name) }, netip.Addr.IsGlobalUnicast)
	if !unusable.empty() {
		return fmt.Sprintf("no node may have %s", &unusable)
	}
	all := slices.Clone(names.dns)
	for _, a := range names.addresses {
		all = append(all, a.String())
	}
	for _, text := range all {
		if other := s.otherNode(text); other != "" {
			return fmt.Sprintf("node %s has %s", printable(other), quote(text))
		}
	}
	return ""
}

func isDNSName(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }

func (s *subject) otherNode(nameOrAddress string) string {
	if s.OtherNode == nil {
		return ""
	}
	return s.OtherNode(nameOrAddress)
}

// test returns nil if a source vouches for the request.
func (source *Source) test(s *subject) *failure {
	lists, failed := source.lists(s)
	if failed != nil {
		return failed
	}
	if foreign := s.request.names.except(source.nameTest(s, lists), source.addressTest(lists)); !foreign.empty() {
		return denied("it does not vouch for %s", &foreign)
	}
	if source.DNS {
		return s.confirmed()
	}
	return nil
}

// missing returns a failure because DNS names are not resolved, or another fact is not known.
func missing(names []string, format string, args ...any) *failure {
	return &failure{message: fmt.Sprintf(format, args...), missing: &Missing{Names: names}}
}

// lists returns lists of names and addresses that must each have all names and addresses of the request.
func (source *Source) lists(s *subject) (lists []*altNames, failed *failure) {
	if source.NodeAddresses {
		if len(s.NodeAddresses) == 0 {
			return nil, missing(nil, "node %s does not exist yet, or its status has no addresses", s.claim.Node)
		}
		status := &altNames{}
		status.addNode(s.NodeAddresses)
		lists = append(lists, status)
	}
	if source.Machine {
		machine, failed := s.registered()
		if failed != nil {
			return nil, failed
		}
		registered := &altNames{}
		registered.addName(machine.Spec.NodeName)
		registered.addAll(machine.Spec.Names, machine.Spec.Addresses)
		lists = append(lists, registered)
	}
	return lists, nil
}

// registered returns the one Machine that is registered for the node.
func (s *subject) registered() (*v1alpha1.Machine, *failure) {
	approved, err := s.Machines(s.claim.Node)
	if err != nil {
		failed := missing(nil, "the registered machines are not known")
		failed.missing.Machines = err
		return nil, failed
	}
	valid := slices.DeleteFunc(slices.Clone(approved), func(m *v1alpha1.Machine) bool { return m.Expired(s.Now) })
	switch {
	case len(valid) == 1:
		return valid[0], nil
	case len(valid) > 1:
		return nil, denied("the Machines %s and %s are both registered for it", printable(valid[0].Name), printable(valid[1].Name))
	case len(approved) > 0:
		return nil, denied("Machine %s has expired", printable(approved[0].Name))
	}
	return nil, denied("no Machine is registered for it")
}

// nameTest returns whether a source vouches for a DNS name, before DNS is asked.
func (source *Source) nameTest(s *subject, lists []*altNames) func(string) bool {
	var expanded []string
	for _, template := range source.Names {
		expanded = append(expanded, template.Execute(map[string]string{nametemplate.NodeName: s.claim.Node}))
	}
	return func(name string) bool {
		return (len(source.Names) > 0 || len(lists) > 0) && (len(source.Names) == 0 || slices.Contains(expanded, name)) &&
			!slices.ContainsFunc(lists, func(l *altNames) bool { return !l.hasName(name) })
	}
}

// addressTest returns whether a source vouches for an IP address, before DNS is asked.
func (source *Source) addressTest(lists []*altNames) func(netip.Addr) bool {
	return func(a netip.Addr) bool {
		inNetwork := slices.ContainsFunc(source.Networks, func(n netip.Prefix) bool { return n.Contains(a) })
		return (len(source.Networks) > 0 || len(lists) > 0 || source.DNS) && (len(source.Networks) == 0 || inNetwork) &&
			!slices.ContainsFunc(lists, func(l *altNames) bool { return !l.hasAddress(a) })
	}
}

// confirmed returns nil if the DNS names and the IP addresses of the request belong to each other.
func (s *subject) confirmed() *failure {
	names, found := &s.request.names, altNames{}
	var unresolved []string
	for _, name := range names.dns {
		addresses, known := s.Resolved[name]
		switch {
		case !known:
			unresolved = append(unresolved, name)
		case len(addresses) == 0:
			return denied("DNS has no address of %s", quote(name))
		}
		for _, a := range addresses {
			if found.addresses = append(found.addresses, a.Unmap()); !names.hasAddress(a.Unmap()) {
				return denied("DNS has the address %s of %s, which the request does not have", a, quote(name))
			}
		}
	}
	if len(unresolved) > 0 {
		return missing(unresolved, "DNS has not answered about %s", listed(unresolved, len(unresolved)))
	}
	if rest := names.except(names.hasName, found.hasAddress); !rest.empty() {
		return denied("DNS has %s for none of the names", &rest)
	}
	return nil
}
