package approver

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
	"github.com/node-authorizer/node-authorizer/approve"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Reasons of the conditions of an entry, beside the codes of package approve.
const (
	// NodeRegistered: the node exists.
	NodeRegistered verdict.Code = "NodeRegistered"
	// IssuanceFailed: the signer did not issue what was approved.
	IssuanceFailed verdict.Code = "IssuanceFailed"
	// DeniedElsewhere: somebody other than this approver denied the request.
	DeniedElsewhere verdict.Code = "DeniedElsewhere"
)

// What the ledger's schema, and people, take of text that others wrote.
const (
	maxRequestName      = 253
	maxConditionMessage = 1024
)

// evidence is what the cluster shows of a machine, from which the status of its
// entry follows.
type evidence struct {
	// token are the requests made with the token in the entry's spec, renewals
	// those of the node of that name.
	token, renewals []*request
	// node is the node of that name; nil if it does not exist.
	node *corev1.Node
	// alone tells that no other machine that has or had the node's name may have a
	// certificate that is valid.
	alone bool
	now   time.Time
}

// recordIn changes the status of an entry as far as there is evidence. What is
// not there any more takes nothing back: requests are cleared away after an hour.
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

// begin makes the status one about the token in spec.
func begin(entry *v1alpha1.NodeAttestation) {
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

// recordCertificate looks for the certificate that the token was turned into.
func (v *evidence) recordCertificate(entry *v1alpha1.NodeAttestation) {
	for _, csr := range byName(v.token) {
		certificate := csr.of(entry.Spec.NodeName)
		if certificate == nil {
			continue
		}
		begin(entry)
		if entry.Status.CertificateRequest == "" {
			entry.Status.CertificateRequest = cut(csr.Name, maxRequestName)
		}
		extend(entry, certificate.end)
		if entry.Status.Phase == v1alpha1.Issued || entry.Status.Phase == "" {
			entry.Status.Phase = v1alpha1.Certified
		}
		if !meta.IsStatusConditionTrue(entry.Status.Conditions, v1alpha1.ConditionCertified) {
			v.set(entry, v1alpha1.ConditionCertified, metav1.ConditionTrue, approve.ClientCertificateApproved, "the client certificate was issued")
		}
	}
}

// recordRenewals notes how long the machine's certificates last. What a node's
// name got after its machine was revoked is another machine's.
func (v *evidence) recordRenewals(entry *v1alpha1.NodeAttestation) {
	if entry.Status.CertificateExpiration == nil {
		return // it is not this machine's name yet
	}
	for _, csr := range v.renewals {
		if !v.beforeRevocation(entry, csr) {
			continue
		}
		if certificate := csr.of(entry.Spec.NodeName); certificate != nil {
			extend(entry, certificate.end)
		}
	}
}

// beforeRevocation reports whether a request was made before the machine was revoked, as
// far as is known when that was.
func (v *evidence) beforeRevocation(entry *v1alpha1.NodeAttestation, csr *request) bool {
	revoked := meta.FindStatusCondition(entry.Status.Conditions, v1alpha1.ConditionRevoked)
	return revoked == nil || csr.CreationTimestamp.Before(&revoked.LastTransitionTime)
}

// extend notes the end of a certificate, if it is later than those known.
func extend(entry *v1alpha1.NodeAttestation, end time.Time) {
	if known := entry.Status.CertificateExpiration; known == nil || known.Time.Before(end) {
		entry.Status.CertificateExpiration = &metav1.Time{Time: end}
	}
}

// recordDenial notes why there is no certificate: the last denial or failure.
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
	begin(entry)
	code := verdict.Code(last.Reason)
	switch {
	case last.Type == certificatesv1.CertificateFailed:
		code = IssuanceFailed
	case !approve.IsDenial(code):
		code = DeniedElsewhere
	}
	v.set(entry, v1alpha1.ConditionCertified, metav1.ConditionFalse, code, kindRequest+" "+request+": "+last.Message)
}

// recordNode notes the node of a machine that has its certificate.
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

func (v *evidence) set(entry *v1alpha1.NodeAttestation, kind string, status metav1.ConditionStatus, code verdict.Code, message string) {
	meta.SetStatusCondition(&entry.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: string(code), Message: cut(oneLine(message), maxConditionMessage),
		ObservedGeneration: entry.Generation, LastTransitionTime: metav1.NewTime(v.now),
	})
}

// oneLine escapes what is not printed.
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
