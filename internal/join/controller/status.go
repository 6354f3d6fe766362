package controller

import (
	"slices"
	"strconv"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/approve"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Reasons of the conditions of an entry, in addition to the codes of package approve.
const (
	// NodeRegistered: the node exists.
	NodeRegistered verdict.Code = "NodeRegistered"
	// IssuanceFailed: the signer did not issue an approved certificate.
	IssuanceFailed verdict.Code = "IssuanceFailed"
	// DeniedElsewhere: another approver denied the request.
	DeniedElsewhere verdict.Code = "DeniedElsewhere"
)

// Limits of text that others wrote, in the ledger's schema and in conditions.
const (
	maxRequestName      = 253
	maxConditionMessage = 1024
)

// evidence is the state of the cluster that concerns a machine. The status of its entry is derived
// from it.
type evidence struct {
	// token are the requests that were made with the token in the entry's spec, and renewals the
	// requests of the node in the entry's spec.
	token, renewals []*request
	// node is that node; nil if it does not exist.
	node *corev1.Node
	// alone is true if no other machine that has or had the node's name may have a valid
	// certificate.
	alone bool
	now   time.Time
}

// recordIn updates the status of an entry from the evidence. Missing evidence removes nothing,
// because requests are deleted after an hour.
func (v *evidence) recordIn(entry *v1alpha1.NodeAttestation) {
	v.recordCertificate(entry)
	v.recordRenewals(entry)
	v.recordCredentials(entry)
	if !meta.IsStatusConditionTrue(aboutToken(entry), v1alpha1.ConditionCertified) {
		v.recordDenial(entry)
	}
	v.recordNode(entry)
}

// aboutToken returns the conditions, if they are about the token in spec.
func aboutToken(entry *v1alpha1.NodeAttestation) []metav1.Condition {
	if entry.Status.TokenID != entry.Spec.TokenID {
		return nil
	}
	return entry.Status.Conditions
}

// beginStatus resets the status if it is about another token than that in spec.
func beginStatus(entry *v1alpha1.NodeAttestation) {
	status := &entry.Status
	if status.TokenID == entry.Spec.TokenID {
		return
	}
	status.TokenID, status.CertificateRequest, status.NodeUID = entry.Spec.TokenID, "", ""
	if status.Phase != v1alpha1.Revoked {
		status.Phase = v1alpha1.Issued
	}
	meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionCertified)
	meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionRegistered)
}

// recordCertificate records the certificate that was issued for the token.
func (v *evidence) recordCertificate(entry *v1alpha1.NodeAttestation) {
	for _, csr := range byName(v.token) {
		certificate := csr.of(entry.Spec.NodeName)
		if certificate == nil {
			continue
		}
		beginStatus(entry)
		if entry.Status.CertificateRequest == "" {
			entry.Status.CertificateRequest = cut(csr.Name, maxRequestName)
		}
		extendExpiration(entry, certificate.end)
		if entry.Status.Phase == v1alpha1.Issued || entry.Status.Phase == "" {
			entry.Status.Phase = v1alpha1.Certified
		}
		if !meta.IsStatusConditionTrue(entry.Status.Conditions, v1alpha1.ConditionCertified) {
			v.set(entry, v1alpha1.ConditionCertified, metav1.ConditionTrue,
				approve.ClientCertificateApproved, "the client certificate was issued")
		}
	}
}

// recordRenewals records the expiration of the machine's certificates. Certificates that were
// requested after the machine was revoked belong to another machine.
func (v *evidence) recordRenewals(entry *v1alpha1.NodeAttestation) {
	if entry.Status.CertificateExpiration == nil {
		return // the machine does not have the name yet
	}
	for _, csr := range v.renewals {
		if !v.beforeRevocation(entry, csr) {
			continue
		}
		if certificate := csr.of(entry.Spec.NodeName); certificate != nil {
			extendExpiration(entry, certificate.end)
		}
	}
}

// beforeRevocation reports whether a request was made before the machine was revoked, or the time
// of the revocation is not known.
func (v *evidence) beforeRevocation(entry *v1alpha1.NodeAttestation, csr *request) bool {
	revoked := meta.FindStatusCondition(entry.Status.Conditions, v1alpha1.ConditionRevoked)
	return revoked == nil || csr.CreationTimestamp.Before(&revoked.LastTransitionTime)
}

// extendExpiration sets the expiration to the end of a certificate, if that is later.
func extendExpiration(entry *v1alpha1.NodeAttestation, end time.Time) {
	if known := entry.Status.CertificateExpiration; known == nil || known.Time.Before(end) {
		entry.Status.CertificateExpiration = &metav1.Time{Time: end}
	}
}

// recordDenial records why there is no certificate: the last denial or failure.
func (v *evidence) recordDenial(entry *v1alpha1.NodeAttestation) {
	var last *certificatesv1.CertificateSigningRequestCondition
	var request string
	for _, csr := range byName(v.token) {
		if c := csr.refusal; c != nil && (last == nil || last.LastUpdateTime.Before(&c.LastUpdateTime)) {
			last, request = c, cut(csr.Name, maxRequestName)
		}
	}
	if last == nil {
		return
	}
	beginStatus(entry)
	code := verdict.Code(last.Reason)
	switch {
	case last.Type == certificatesv1.CertificateFailed:
		code = IssuanceFailed
	case !approve.IsDenial(code):
		code = DeniedElsewhere
	}
	v.set(entry, v1alpha1.ConditionCertified, metav1.ConditionFalse, code, kindRequest+" "+request+": "+last.Message)
}

// recordNode records the node of a machine that has its certificate.
func (v *evidence) recordNode(entry *v1alpha1.NodeAttestation) {
	phase := entry.Phase()
	if v.node == nil || (phase != v1alpha1.Certified && phase != v1alpha1.Registered) {
		return
	}
	entry.Status.Phase, entry.Status.NodeUID = v1alpha1.Registered, string(v.node.UID)
	if !meta.IsStatusConditionTrue(entry.Status.Conditions, v1alpha1.ConditionRegistered) {
		v.set(entry, v1alpha1.ConditionRegistered, metav1.ConditionTrue, NodeRegistered, "node "+v.node.Name+" exists")
	}
}

func (v *evidence) set(
	entry *v1alpha1.NodeAttestation, kind string, status metav1.ConditionStatus, code verdict.Code, message string,
) {
	meta.SetStatusCondition(&entry.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: string(code), Message: cut(oneLine(message), maxConditionMessage),
		ObservedGeneration: entry.Generation, LastTransitionTime: metav1.NewTime(v.now),
	})
}

// oneLine escapes characters that cannot be printed.
func oneLine(text string) string {
	var b strings.Builder
	for _, r := range text {
		if strconv.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		escaped := strconv.QuoteRune(r)
		b.WriteString(escaped[1 : len(escaped)-1])
	}
	return b.String()
}

func byName(requests []*request) []*request {
	return slices.SortedFunc(slices.Values(requests), func(a, b *request) int {
		return strings.Compare(a.Name, b.Name)
	})
}
