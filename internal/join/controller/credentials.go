package controller

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
)

// recordCredentials records the certificates that are certain to be the machine's. If there are
// too many, the oldest are dropped.
func (v *evidence) recordCredentials(entry *v1alpha1.NodeAttestation) {
	if all := v.credentials(entry); len(all) > 0 {
		entry.Status.Credentials = all[max(0, len(all)-v1alpha1.MaxCredentials):]
	}
}

// credentials returns the certificates of a machine, the newest last: the certificates in its entry,
// the ones requested with its token or with one of its certificates, and adopted ones.
func (v *evidence) credentials(entry *v1alpha1.NodeAttestation) []string {
	known := entry.Status.Credentials
	var seen []string
	for _, csr := range byAge(v.token) {
		seen = v.addCertificate(seen, csr, entry.Spec.NodeName)
	}
	for _, csr := range byAge(v.renewals) {
		switch own := slices.Contains(known, csr.with) || slices.Contains(seen, csr.with); {
		case own:
			seen = v.addCertificate(seen, csr, entry.Spec.NodeName)
		case v.adopts(entry, csr):
			if certificate := csr.of(entry.Spec.NodeName); certificate != nil {
				seen = v.addCertificate(append(seen, csr.with), csr, entry.Spec.NodeName)
				extendExpiration(entry, certificate.end)
			}
		}
	}
	earlier := slices.DeleteFunc(slices.Clone(known), func(id string) bool { return slices.Contains(seen, id) })
	return append(earlier, seen...)
}

// adopts reports whether the certificate with which a request was made is the machine's although
// its entry does not have it, because it was dropped or the entry is new. This is so if an
// approver approved the request, no other machine with the name may have a valid certificate,
// and the entry existed before the request and was not revoked.
func (v *evidence) adopts(entry *v1alpha1.NodeAttestation, csr *request) bool {
	if !csr.renewed || csr.with == "" || !v.alone || !entry.CreationTimestamp.Before(&csr.CreationTimestamp) {
		return false
	}
	revoked := meta.FindStatusCondition(entry.Status.Conditions, v1alpha1.ConditionRevoked)
	return entry.Phase() != v1alpha1.Revoked || revoked != nil && csr.CreationTimestamp.Before(&revoked.LastTransitionTime)
}

// addCertificate adds the certificate that was issued for a request, unless it has expired.
func (v *evidence) addCertificate(seen []string, csr *request, node string) []string {
	certificate := csr.of(node)
	if certificate == nil || !v.now.Before(certificate.end) {
		return seen
	}
	if !slices.Contains(seen, certificate.credential) {
		seen = append(seen, certificate.credential)
	}
	return seen
}

// byAge sorts requests so that each certificate comes before those requested with it.
func byAge(requests []*request) []*request {
	ordered := byName(requests)
	slices.SortStableFunc(ordered, func(a, b *request) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	return ordered
}
