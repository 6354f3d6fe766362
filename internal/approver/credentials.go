package approver

import (
	"slices"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
)

// recordCredentials remembers the certificates that are sure to be the machine's:
// they were asked for with its token, or with a certificate that is the machine's.
func (v *evidence) recordCredentials(entry *v1alpha1.NodeAttestation) {
	known := entry.Status.Credentials
	var seen []string
	for _, csr := range byAge(v.token) {
		seen = v.remember(seen, csr, entry.Spec.NodeName)
	}
	for _, csr := range byAge(v.renewals) {
		if with := csr.with; slices.Contains(known, with) || slices.Contains(seen, with) {
			seen = v.remember(seen, csr, entry.Spec.NodeName)
		}
	}
	if len(seen) == 0 {
		return
	}
	earlier := slices.DeleteFunc(slices.Clone(known), func(id string) bool { return slices.Contains(seen, id) })
	all := append(earlier, seen...)
	entry.Status.Credentials = all[max(0, len(all)-v1alpha1.MaxCredentials):]
}

// remember adds the certificate that a request led to, while it is good for
// anything.
func (v *evidence) remember(seen []string, csr *request, node string) []string {
	certificate := csr.of(node)
	if certificate == nil || !v.now.Before(certificate.end) {
		return seen
	}
	if !slices.Contains(seen, certificate.credential) {
		seen = append(seen, certificate.credential)
	}
	return seen
}

// byAge orders requests so that a certificate comes before what was asked for
// with it.
func byAge(requests []*request) []*request {
	ordered := byName(requests)
	slices.SortStableFunc(ordered, func(a, b *request) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	return ordered
}
