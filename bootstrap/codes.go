package bootstrap

import (
	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Codes of answers, documented in docs/reasons.md. Attestors have their own.
const (
	TokenIssued   verdict.Code = "TokenIssued"
	TokenRepeated verdict.Code = "TokenRepeated"

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
	BootstrapUnavailable      verdict.Code = "BootstrapUnavailable"

	// MachineGone is why the service itself revokes an entry.
	MachineGone verdict.Code = "MachineGone"
)

// summaries is the one line that a machine is told beside the code.
var summaries = map[verdict.Code]string{
	ClientCertificateRequired:   "a client certificate is required",
	ClientCertificateInvalid:    "the client certificate is not valid here",
	ClientNameNotAllowed:        "the client certificate is of somebody who may not ask",
	TooManyRequests:             "too many requests, try again later",
	MalformedRequest:            "the request is not of the form that is expected",
	InvalidNodeName:             "the name cannot be that of a node",
	NameMismatch:                "the evidence is of a machine with another node name",
	AlreadyRegistered:           "a node with this name exists",
	AlreadyAttested:             "the machine has used its token",
	NameChanged:                 "the machine was given another node name before",
	BootstrapUnavailable:        "the request could not be decided, try again",
	v1alpha1.AttestationRevoked: "the machine was revoked",
	v1alpha1.NameTaken:          "another machine has this node name",
}

// notAccepted is the line for codes of attestors.
const notAccepted = "the evidence was not accepted"

// reason is what a machine is told.
func reason(code verdict.Code) string {
	line, ok := summaries[code]
	if !ok {
		line = notAccepted
	}
	return string(code) + ": " + line
}
