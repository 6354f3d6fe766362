package approver

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
)

// recordCredentials remembers the certificates that are sure to be the machine's. The
// oldest are forgotten when there are too many.
func (v *evidence) recordCredentials(entry *v1alpha1.NodeAttestation) {
	if all := v.credentials(entry); len(all) > 0 {
		entry.Status.Credentials = all[max(0, len(all)-v1alpha1.MaxCredentials):]
	}
}

// credentials are the certificates of a machine, the newest last: those of its entry,
// those that were asked for with its token, or with a certificate that is the machine's,
// and what was adopted.
func (v *evidence) credentials(entry *v1alpha1.NodeAttestation) []string {
	known := entry.Status.Credentials
	var seen []string
	for _, csr := range byAge(v.token) {
		seen = v.remember(seen, csr, entry.Spec.NodeName)
	}
	for _, csr := range byAge(v.renewals) {
		switch own := slices.Contains(known, csr.with) || slices.Contains(seen, csr.with); {
		case own:
			seen = v.remember(seen, csr, entry.Spec.NodeName)
		case v.adopts(entry, csr):
			if certificate := csr.of(entry.Spec.NodeName); certificate != nil {
				seen = v.remember(append(seen, csr.with), csr, entry.Spec.NodeName)
				extend(entry, certificate.end)
			}
		}
	}
	earlier := slices.DeleteFunc(slices.Clone(known), func(id string) bool { return slices.Contains(seen, id) })
	return append(earlier, seen...)
}

// adopts reports whether the certificate that a request was made with is the machine's
// although its entry does not have it: it was forgotten, or the entry is new. An approver
// approved the request, no other machine of the name may have a valid certificate, and the
// entry was there before and not revoked.
func (v *evidence) adopts(entry *v1alpha1.NodeAttestation, csr *request) bool {
	if !csr.renewed || csr.with == "" || !v.alone || !entry.CreationTimestamp.Before(&csr.CreationTimestamp) {
		return false
	}
	revoked := meta.FindStatusCondition(entry.Status.Conditions, v1alpha1.ConditionRevoked)
	return entry.Phase() != v1alpha1.Revoked || revoked != nil && csr.CreationTimestamp.Before(&revoked.LastTransitionTime)
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
