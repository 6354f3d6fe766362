package bootstrap

import (
	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/machines"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Codes of answers, documented in docs/reference/reasons. Attestors have their own.
const (
	TokenIssued   verdict.Code = "TokenIssued"
	TokenRepeated verdict.Code = "TokenRepeated"
	ChallengeSent verdict.Code = "ChallengeSent"

	ClientCertificateRequired verdict.Code = "ClientCertificateRequired"
	ClientCertificateInvalid  verdict.Code = "ClientCertificateInvalid"
	ClientNameNotAllowed      verdict.Code = "ClientNameNotAllowed"
	TooManyRequests           verdict.Code = "TooManyRequests"
	MalformedRequest          verdict.Code = "MalformedRequest"
	InvalidNodeName           verdict.Code = "InvalidNodeName"
	NameMismatch              verdict.Code = "NameMismatch"
	AlreadyRegistered         verdict.Code = "AlreadyRegistered"
	AlreadyAttested           verdict.Code = "AlreadyAttested"
	NameChanged               verdict.Code = "NameChanged"
	PublicKeyChanged          verdict.Code = "PublicKeyChanged"
	EvidenceUsed              verdict.Code = "EvidenceUsed"
	BootstrapUnavailable      verdict.Code = "BootstrapUnavailable"

	// MachineGone is the reason when the service itself revokes an entry.
	MachineGone verdict.Code = "MachineGone"
)

// summaries are the lines that a machine gets with the code.
var summaries = map[verdict.Code]string{
	ClientCertificateRequired:   "a client certificate is required",
	ClientCertificateInvalid:    "the client certificate is not valid",
	ClientNameNotAllowed:        "the name in the client certificate is not allowed",
	TooManyRequests:             "too many requests, try again later",
	MalformedRequest:            "the request is malformed",
	InvalidNodeName:             "the name is not a valid node name",
	NameMismatch:                "the evidence is for another node name",
	AlreadyRegistered:           "a node with this name exists",
	AlreadyAttested:             "the machine has used its token",
	NameChanged:                 "the machine was given another node name before",
	PublicKeyChanged:            "the machine named another public key before",
	EvidenceUsed:                "the evidence was accepted before and is good for once",
	BootstrapUnavailable:        "the request could not be decided, try again",
	machines.PendingApproval:    "a person has to approve this machine",
	machines.TooManyPending:     "too many machines wait for approval, try again later",
	v1alpha1.AttestationRevoked: "the machine was revoked",
	v1alpha1.NameTaken:          "another machine has this node name",

	policyv1alpha1.NodeQuarantined: "the node is quarantined",
}

// notAccepted is the line for codes of attestors.
const notAccepted = "the evidence was not accepted"

// reason is the text that a machine gets.
func reason(code verdict.Code) string {
	line, ok := summaries[code]
	if !ok {
		line = notAccepted
	}
	return string(code) + ": " + line
}
