package approve

import (
	"net/netip"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Question is a request with the facts about its machine.
type Question struct {
	Request *certificatesv1.CertificateSigningRequest
	// Now is the time of the decision.
	Now time.Time
	// Entry is the entry of the ledger that names the token of a Client request; nil if
	// there is none.
	Entry *v1alpha1.NodeAttestation
	// Shared is true if another entry names the token too.
	Shared bool
	// Approved are the keys, in the format of [PublicKey], of the token's requests that
	// were approved by any approver.
	Approved []string
	// Entries are all entries of the ledger with the node's name, including revoked
	// ones. For a Client request the node is the node of Entry.
	Entries []*v1alpha1.NodeAttestation
	// Others are all entries with the node's name, and all entries that have the
	// certificate with which the request was made. It is used for Renewal and Serving
	// requests, to find the owner of the certificate.
	Others []*v1alpha1.NodeAttestation
	// NodeQuarantine is the name of the Quarantine that cuts off the node; empty if none does.
	// For a Client request the node is the node of Entry. The answer does not have the name: the
	// requester reads it.
	NodeQuarantine string
	// CredentialQuarantine is the name of the Quarantine that cuts off the credential with
	// which the request was made; empty if none does.
	CredentialQuarantine string
	// Used contains the UIDs of the Entries, except Entry, for whose token a request was
	// approved, even if the entry does not say so.
	Used map[types.UID]bool
	// NodeAddresses are the addresses of the Node object, for ServingLedgerAndNode and for Sources.
	NodeAddresses []corev1.NodeAddress
	// OtherNode returns the name of another node that has a DNS name or an IP address as its name or
	// in its status; empty if there is none. Sources need it.
	OtherNode func(nameOrAddress string) string
	// Machines returns the approved Machines of a node, for Sources with Machine. An error means that they are not known.
	Machines func(node string) ([]*v1alpha1.Machine, error)
	// Newer is the number of undecided Serving requests of the node that are newer than this one.
	Newer int
	// Resolved are the addresses of DNS names, for Sources; none if DNS says that there are none.
	// [Answer.Missing] lists the names that are needed.
	Resolved map[string][]netip.Addr
	// SelfNodeServer is true if the requester of a Serving request may create
	// certificatesigningrequests/selfnodeserver.
	SelfNodeServer bool

	Options
}

// Options are the operator's choices. The zero value is the strictest choice.
type Options struct {
	Unattested       Unattested
	ServingAddresses ServingAddresses
	// Sources vouch for the serving certificates of nodes that the ledger does not have. If there are
	// none, Unattested and ServingAddresses decide about these.
	Sources []Source
}

// Unattested says what happens to requests of nodes that the ledger does not have.
type Unattested string

const (
	// DenyUnattested denies them. It is the default.
	DenyUnattested Unattested = "Deny"
	// LeaveUnattested leaves them to other approvers.
	LeaveUnattested Unattested = "Leave"
	// ApproveUnattested approves renewals. Serving requests are approved with
	// ServingLedgerAndNode, and left to other approvers otherwise.
	ApproveUnattested Unattested = "Approve"
)

// ServingAddresses is the source of the names and addresses of serving certificates.
type ServingAddresses string

const (
	// ServingLedger allows the attested ones. It is the default.
	ServingLedger ServingAddresses = "Ledger"
	// ServingLedgerAndNode also allows the addresses of the Node's status. It is weaker: a
	// kubelet without a cloud provider writes its own addresses.
	ServingLedgerAndNode ServingAddresses = "LedgerAndNode"
)

// Outcome is the decision about a request. The zero value is Leave.
type Outcome uint8

const (
	// Leave the request to other approvers.
	Leave Outcome = iota
	// Approve the request.
	Approve
	// Deny the request.
	Deny
)

// String returns "leave", "approve" or "deny".
func (o Outcome) String() string {
	return [...]string{Leave: "leave", Approve: "approve", Deny: "deny"}[o]
}

// Answer is the decision about a request, and the reason.
type Answer struct {
	Outcome Outcome
	Code    verdict.Code
	Kind    Kind
	// Node is the node that the request is for: for Client the attested node, if it is
	// known, and otherwise the node that asks. An invalid name is quoted and cut, as in
	// Message.
	Node string
	// Missing are the facts without which the request cannot be decided, as Message says; nil if it is
	// decided.
	Missing *Missing
	// Message is one line of printable ASCII for people, without a trailing full stop. It
	// is always shorter than 1 KiB.
	Message string
}

// Missing are facts about a request that the caller has to find.
type Missing struct {
	// Names are the DNS names that are missing in [Question.Resolved].
	Names []string
	// Machines is the error of [Question.Machines]; nil if there is none.
	Machines error
}

// subject is a question during its evaluation.
type subject struct {
	*Question
	claim Claim
	// request is set by the first check; later checks need it.
	request *request
	// commonName is set by the check of the request's subject.
	commonName string
	// vouchedBy describes the source that vouches for the names of the request; empty if none does.
	vouchedBy string
}

// holder returns the entry of the node of a Renewal or Serving request: the oldest one that is
// not revoked. Revoked is true if there is none because all are revoked.
func (s *subject) holder() (entry *v1alpha1.NodeAttestation, revoked bool) {
	var live []*v1alpha1.NodeAttestation
	for _, e := range s.Entries {
		switch {
		case e.Spec.NodeName != s.claim.Node:
		case e.Phase() == v1alpha1.Revoked:
			revoked = true
		default:
			live = append(live, e)
		}
	}
	if len(live) == 0 {
		return nil, revoked
	}
	return slices.MinFunc(live, v1alpha1.Older), false
}

// rival returns an entry that is not revoked and precedes s.Entry for its node name.
func (s *subject) rival() *v1alpha1.NodeAttestation {
	for _, e := range s.Entries {
		sameName := e.UID != s.Entry.UID && e.Spec.NodeName == s.Entry.Spec.NodeName
		if sameName && e.Phase() != v1alpha1.Revoked && s.precedes(e) {
			return e
		}
	}
	return nil
}

// precedes reports whether another entry precedes s.Entry: an entry that has had a certificate
// precedes one that has not; otherwise the older one precedes. A certificate from before the
// machine was attested again may have been for another name, so it counts only against a
// machine without any certificate.
func (s *subject) precedes(other *v1alpha1.NodeAttestation) bool {
	theirs := hadCertificate(other) || other.BoundKey() != "" || s.Used[other.UID]
	ours := s.Entry.BoundKey() != "" || len(s.Approved) > 0
	switch {
	case theirs && !ours:
		return true
	case !theirs && (ours || hadCertificate(s.Entry)):
		return false
	}
	return v1alpha1.Older(other, s.Entry) < 0
}

// hadCertificate uses the status itself: a machine that was attested again has had its
// certificate too.
func hadCertificate(e *v1alpha1.NodeAttestation) bool {
	return e.Status.Phase == v1alpha1.Certified || e.Status.Phase == v1alpha1.Registered
}
