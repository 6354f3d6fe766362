package v1alpha1

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The kinds of the documents that the provider exec exchanges with programs: a request on standard
// input, and a response on standard output.
const (
	AttestRequestKind   = "AttestRequest"
	AttestResponseKind  = "AttestResponse"
	CollectRequestKind  = "CollectRequest"
	CollectResponseKind = "CollectResponse"
)

// AttestRequest asks the program on the server which machine shows this evidence.
type AttestRequest struct {
	metav1.TypeMeta `json:",inline"`
	// NodeName is the name that the machine requests. It is not evidence.
	NodeName string `json:"nodeName"`
	// RemoteAddress is the source address of the machine's request.
	RemoteAddress string `json:"remoteAddress"`
	// Challenge is what the machine was asked to put into the evidence, if evidence of this kind can
	// contain it. It was made by the server, at most two minutes ago.
	Challenge string `json:"challenge"`
	// PublicKey is "sha256:" and the hash, in hexadecimal, of the public key (SubjectPublicKeyInfo,
	// DER) for which the machine wants its certificate. The machine claims it: only evidence that
	// contains it proves it. It is absent if the kubelet makes the key later.
	PublicKey string `json:"publicKey,omitempty"`
	// Evidence is the evidence of the CollectResponse.
	Evidence json.RawMessage `json:"evidence"`
	// State is the state of the challenge that this evidence answers. It is absent in the first round.
	State json.RawMessage `json:"state,omitempty"`
}

// AttestResponse has exactly one of its fields. A program that cannot decide writes none, and ends
// with an exit status other than 0.
type AttestResponse struct {
	metav1.TypeMeta `json:",inline"`
	// Identity is the machine according to the evidence.
	Identity *AttestedIdentity `json:"identity,omitempty"`
	// Refusal is why the machine may not join.
	Refusal *AttestRefusal `json:"refusal,omitempty"`
	// Challenge is what the machine has to answer with another round of evidence.
	Challenge *AttestChallenge `json:"challenge,omitempty"`
}

// AttestedIdentity is a machine according to its evidence.
type AttestedIdentity struct {
	// InstanceID identifies the machine permanently. It consists of DNS labels.
	InstanceID string `json:"instanceID"`
	// NodeName is the name of the machine's node. It follows from the evidence.
	NodeName string `json:"nodeName"`
	// Names are the DNS names that the machine may have in its serving certificate; absent for NodeName alone.
	Names []string `json:"names,omitempty"`
	// Addresses are the IP addresses that the machine may have in its serving certificate.
	Addresses []string `json:"addresses,omitempty"`
	// Account is the account, project or tenant of the machine.
	Account string `json:"account,omitempty"`
	// Region is where the machine is.
	Region string `json:"region,omitempty"`
	// Zone is where in the region the machine is.
	Zone string `json:"zone,omitempty"`
	// ProviderID is spec.providerID of the machine's Node: hcloud://42. It is absent if the evidence
	// does not say.
	ProviderID string `json:"providerID,omitempty"`
	// PublicKey is the public key of the request, if the evidence contains it. Then the machine gets a
	// certificate for this key only.
	PublicKey string `json:"publicKey,omitempty"`
	// Issued is when the evidence was made.
	Issued *metav1.Time `json:"issued,omitempty"`
	// SingleUse is true if the same evidence must not be accepted twice. It needs EvidenceID and Issued.
	SingleUse bool `json:"singleUse,omitempty"`
	// EvidenceID is the same for all copies of the evidence, also where somebody has changed a part
	// that the program does not verify.
	EvidenceID string `json:"evidenceID,omitempty"`
}

// AttestRefusal is why a machine may not join.
type AttestRefusal struct {
	// Code is the reason: up to 63 letters and digits in CamelCase. It may be a code of node-authorizer.
	Code string `json:"code"`
	// Message is for the operator's log. It contains nothing of the evidence that is secret.
	Message string `json:"message"`
	// Malformed is true if the evidence does not have the provider's form, so that nothing was checked.
	Malformed bool `json:"malformed,omitempty"`
}

// AttestChallenge asks the machine for another round of evidence.
type AttestChallenge struct {
	// Document is for the program on the machine. It is not secret.
	Document json.RawMessage `json:"document"`
	// State is what the program needs in the next round. The machine cannot read or change it.
	State json.RawMessage `json:"state,omitempty"`
}

// CollectRequest asks the program on the machine for evidence, or for the node's name alone: then it
// has neither Challenge nor PublicKey nor Document.
type CollectRequest struct {
	metav1.TypeMeta `json:",inline"`
	// Challenge is what evidence contains to show that it is new.
	Challenge string `json:"challenge,omitempty"`
	// PublicKey is the public key that evidence contains so that it is of no use for another key.
	PublicKey string `json:"publicKey,omitempty"`
	// Document is the document of the server's challenge. It is absent in the first round.
	Document json.RawMessage `json:"document,omitempty"`
}

// CollectResponse is the answer of the program on the machine.
type CollectResponse struct {
	metav1.TypeMeta `json:",inline"`
	// NodeName is the name that the machine's kubelet registers under; absent for the host's name.
	NodeName string `json:"nodeName,omitempty"`
	// Evidence is for the program on the server. It may be absent if the node's name alone was asked for.
	Evidence json.RawMessage `json:"evidence,omitempty"`
}
