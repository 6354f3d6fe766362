package approve

import (
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/node-authorizer/node-authorizer/verdict"
)

// Decide answers a question. It uses only those facts in q that the kind of the request needs.
func Decide(q *Question) Answer {
	s := &subject{Question: q, claim: ClaimOf(q.Request)}
	if answer, decided := s.begin(); decided {
		return answer
	}
	if answer, failed := s.check(false); failed {
		return answer
	}
	if answer, failed := s.check(true); failed {
		return answer
	}
	return s.approval()
}

// Ahead decides requests for which no facts are needed. Decided is false if facts are needed.
// [Decide] gives the same answer, with any facts.
func Ahead(csr *certificatesv1.CertificateSigningRequest) (answer Answer, decided bool) {
	s := &subject{Question: &Question{Request: csr}, claim: ClaimOf(csr)}
	if answer, decided := s.begin(); decided {
		return answer, true
	}
	return s.check(false)
}

// maxRequestName is the maximum length of the name of a request. API servers accept names of
// any length, with nearly any characters; kubelets use shorter ones.
const maxRequestName = 253

// begin answers requests that need no decision.
func (s *subject) begin() (Answer, bool) {
	switch {
	case s.claim.Kind == Other, len(s.Request.Name) > maxRequestName:
		return s.answer(Leave, NotOurs,
			"it is not the request of a kubelet with a bootstrap token of this service or with a node's certificate"), true
	case Decided(s.Request):
		return s.answer(Leave, AlreadyDecided, "it has been decided already"), true
	}
	return Answer{}, false
}

// check runs the checks of the kind, either the ones that need facts or the others.
func (s *subject) check(facts bool) (Answer, bool) {
	for i := range checks {
		c := &checks[i]
		if c.facts != facts || !c.of(s.claim.Kind) {
			continue
		}
		if failure := c.test(s); failure != nil {
			answer := s.answer(failure.outcome, c.code, failure.message)
			answer.Missing = failure.missing
			return answer, true
		}
	}
	return Answer{}, false
}

func (s *subject) approval() Answer {
	switch s.claim.Kind {
	case Client:
		return s.answer(Approve, ClientCertificateApproved, fmt.Sprintf(
			"the machine of NodeAttestation %s proved that it is node %s", s.Entry.Name, s.Entry.Spec.NodeName))
	case Renewal:
		return s.answer(Approve, RenewalApproved, "node "+printable(s.claim.Node)+" asks for its next client certificate"+s.basis())
	case Serving:
		return s.answer(Approve, ServingCertificateApproved,
			"node "+printable(s.claim.Node)+" asks for a certificate with its own addresses only"+s.basis())
	case Other:
	}
	return s.answer(Leave, NotOurs, "it is not the request of a kubelet")
}

// basis says why a node is trusted.
func (s *subject) basis() string {
	if entry, _ := s.holder(); entry != nil {
		return ", by NodeAttestation " + entry.Name
	}
	if s.vouchedBy != "" {
		return ", by " + s.vouchedBy
	}
	return "; the ledger does not have it, and unattested nodes are approved"
}

func (s *subject) answer(outcome Outcome, code verdict.Code, message string) Answer {
	return Answer{Outcome: outcome, Code: code, Kind: s.claim.Kind, Node: s.node(), Message: cut(message, mostMessage)}
}

// node returns the name of the node that the request is for, for messages; empty if it is not known.
func (s *subject) node() string {
	node := s.claim.Node
	if s.claim.Kind == Client && s.Entry != nil {
		node = s.Entry.Spec.NodeName
	}
	if node != "" {
		node = printable(node)
	}
	return node
}
