package exec

import (
	"net/netip"
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
)

// maxNames is how many names, and how many addresses, a machine may have.
const maxNames = 32

// clockSkew is how far the clock of the evidence's maker may be ahead.
const clockSkew = time.Minute

// placeForm is the form of accounts, regions and zones, which have at most maxPlace bytes. A bound in the
// expression would take milliseconds at the start of each command.
var placeForm = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._:/@-]*)?$`)

const maxPlace = 253

// providerIDForm is the form of provider IDs.
var providerIDForm = regexp.MustCompile(`^([a-z][a-z0-9+.-]*://[!-~]+)?$`)

// maxProviderID is how many bytes a provider ID may have.
const maxProviderID = 512

// identity checks an identity. A name that no machine may have is refused. Everything else that is
// wrong is a mistake of the program, so that nothing is decided.
func (a *Attestor) identity(i *v1alpha1.AttestedIdentity, request *v1alpha1.AttestRequest) (*attest.Identity, error) {
	invalid := a.runner.invalid
	id := &attest.Identity{
		Provider: a.options.Provider, InstanceID: i.InstanceID, NodeName: i.NodeName, Names: i.Names,
		Account: i.Account, Region: i.Region, Zone: i.Zone, ProviderID: i.ProviderID, PublicKey: i.PublicKey, SingleUse: i.SingleUse,
	}
	for _, name := range []string{i.InstanceID, v1alpha1.EntryName(a.options.Provider, i.InstanceID)} {
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			return nil, invalid("identity.instanceID is %.253q, want DNS labels: %s", i.InstanceID, problems[0])
		}
	}
	if len(i.Names) == 0 {
		id.Names = []string{i.NodeName}
	}
	if len(i.Names) > maxNames || len(i.Addresses) > maxNames {
		return nil, invalid("identity has %d names and %d addresses, want up to %d", len(i.Names), len(i.Addresses), maxNames)
	}
	for _, name := range append([]string{i.NodeName}, id.Names...) {
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			return nil, invalid("identity has the name %.253q: %s", name, problems[0])
		}
		if err := attest.CheckName(name); err != nil {
			return nil, err
		}
	}
	for _, text := range i.Addresses {
		address, err := netip.ParseAddr(text)
		if address = address.Unmap(); err != nil || address.Zone() != "" || !address.IsGlobalUnicast() {
			return nil, invalid("identity has the address %.100q, want an IP address of one machine", text)
		}
		id.Addresses = append(id.Addresses, address)
	}
	for field, place := range map[string]string{"account": i.Account, "region": i.Region, "zone": i.Zone} {
		if len(place) > maxPlace || !placeForm.MatchString(place) {
			return nil, invalid("identity.%s is %.253q, want letters, digits and ._:/@-", field, place)
		}
	}
	if len(i.ProviderID) > maxProviderID || !providerIDForm.MatchString(i.ProviderID) {
		return nil, invalid("identity.providerID is %.253q, want PROVIDER://ID", i.ProviderID)
	}
	if i.PublicKey != "" && i.PublicKey != request.PublicKey {
		return nil, invalid("identity.publicKey is %.100q, want that of the request, or none", i.PublicKey)
	}
	if i.SingleUse && (i.EvidenceID == "" || i.Issued == nil) {
		return nil, invalid("identity has singleUse, which needs evidenceID and issued")
	}
	if i.Issued != nil {
		if id.Issued = i.Issued.Time; id.Issued.After(a.options.Clock().Add(clockSkew)) {
			return nil, invalid("identity.issued is %s, in the future: compare the clocks", id.Issued.UTC().Format(time.RFC3339))
		}
	}
	return id, nil
}
