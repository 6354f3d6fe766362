package approve

import (
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Question is a request with what is known of its machine.
type Question struct {
	Request *certificatesv1.CertificateSigningRequest
	// Now is when it is decided.
	Now time.Time
	// Entry is the ledger's entry that names the token of a Client request; nil if
	// none does.
	Entry *v1alpha1.NodeAttestation
	// Shared tells that another entry names the token too.
	Shared bool
	// Approved are the keys, as [PublicKey] writes them, of the token's requests
	// that were approved, whoever bound the token.
	Approved []string
	// Entries are all entries of the ledger with the node's name, revoked ones
	// too. Of a Client request the node is the one of Entry.
	Entries []*v1alpha1.NodeAttestation
	// Others are what is known of all entries with the node's name, and of those that
	// have the certificate that the request was made with, whatever their names are; of
	// Renewal and Serving requests. Their certificates tell whose request it is.
	Others []*v1alpha1.NodeAttestation
	// Used tells by UID which of Entries have a token of which a request was approved,
	// whatever they say themselves. Only those other than Entry are asked for.
	Used map[types.UID]bool
	// NodeAddresses are those of the Node object, for ServingLedgerAndNode.
	NodeAddresses []corev1.NodeAddress
	// SelfNodeServer tells that the requester of a Serving request may create
	// certificatesigningrequests/selfnodeserver.
	SelfNodeServer bool

	Options
}

// Options are what the operator chose. The zero value is the strictest choice.
type Options struct {
	Unattested       Unattested
	ServingAddresses ServingAddresses
}

// Unattested is what is done with requests of nodes that the ledger does not
// have.
type Unattested string

const (
	// DenyUnattested denies them. It is the default.
	DenyUnattested Unattested = "Deny"
	// LeaveUnattested leaves them to somebody else.
	LeaveUnattested Unattested = "Leave"
	// ApproveUnattested approves renewals. Serving requests are approved with
	// ServingLedgerAndNode, and left to somebody else otherwise.
	ApproveUnattested Unattested = "Approve"
)

// ServingAddresses is where the names and addresses of serving certificates may
// come from.
type ServingAddresses string

const (
	// ServingLedger takes those that were attested. It is the default.
	ServingLedger ServingAddresses = "Ledger"
	// ServingLedgerAndNode also takes those of the Node's status. It is weaker: a
	// kubelet without a cloud provider writes its own.
	ServingLedgerAndNode ServingAddresses = "LedgerAndNode"
)

// Outcome is what is done with a request. The zero value is Leave.
type Outcome uint8

const (
	// Leave: nothing.
	Leave Outcome = iota
	// Approve the request.
	Approve
	// Deny the request.
	Deny
)

// String returns "leave", "approve" or "deny".
func (o Outcome) String() string {
	switch o {
	case Approve:
		return "approve"
	case Deny:
		return "deny"
	case Leave:
	}
	return "leave"
}

// Answer is what is done with a request, and why.
type Answer struct {
	Outcome Outcome
	Code    verdict.Code
	Kind    Kind
	// Node is the name of the node that the request is for: the attested one of
	// Client, where it is known, and else the one that asks. A name that no node can
	// have is quoted and cut, as in Message.
	Node string
	// Rule is the check that was not passed; empty for an approval.
	Rule string
	// Message is one line of printable ASCII for people, without a trailing full stop. It
	// is shorter than 1 KiB, whatever the request holds.
	Message string
}

// subject is a question while it is looked into.
type subject struct {
	*Question
	claim Claim
	// request is set by the first check; the later ones need it.
	request *request
	// commonName is set by the check of the request's subject.
	commonName string
}

// holder returns the live entry that the node of a Renewal or Serving request
// has: the oldest. Revoked tells that there is none because all are revoked.
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

// rival returns the live entry that comes before s.Entry for its node name.
func (s *subject) rival() *v1alpha1.NodeAttestation {
	for _, e := range s.Entries {
		if e.UID != s.Entry.UID && e.Spec.NodeName == s.Entry.Spec.NodeName && e.Phase() != v1alpha1.Revoked && s.precedes(e) {
			return e
		}
	}
	return nil
}

// precedes reports whether another entry comes before s.Entry: one that has had
// a certificate before one that has not, and the older one otherwise. What a
// machine had before it was attested again may have been of another name, so it
// counts for it only against a machine that has had nothing.
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

// hadCertificate looks at the status as it is: a machine that was attested again
// has had its certificate all the same.
func hadCertificate(e *v1alpha1.NodeAttestation) bool {
	return e.Status.Phase == v1alpha1.Certified || e.Status.Phase == v1alpha1.Registered
}
