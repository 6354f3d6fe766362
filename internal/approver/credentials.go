package approver

import (
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/approve"
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
		if with := approve.CredentialOf(csr); slices.Contains(known, with) || slices.Contains(seen, with) {
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
func (v *evidence) remember(seen []string, csr *certificatesv1.CertificateSigningRequest, node string) []string {
	certificate := issued(csr, node)
	if certificate == nil || !v.now.Before(certificate.NotAfter) {
		return seen
	}
	if id := approve.CredentialID(certificate); !slices.Contains(seen, id) {
		seen = append(seen, id)
	}
	return seen
}

// byAge orders requests so that a certificate comes before what was asked for
// with it.
func byAge(requests []*certificatesv1.CertificateSigningRequest) []*certificatesv1.CertificateSigningRequest {
	ordered := byName(requests)
	slices.SortStableFunc(ordered, func(a, b *certificatesv1.CertificateSigningRequest) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	return ordered
}
