package containment

import (
	"strings"

	"github.com/node-authorizer/node-authorizer/verdict"
)

// The codes of outcomes, which the condition Accepted of an object has as its reason.
const (
	// Accepted: the servers use this generation.
	Accepted verdict.Code = "Accepted"
	// Invalid: it cannot be used. The last valid generation stays in use, if a server has seen one.
	Invalid verdict.Code = "Invalid"
	// TooLarge: the spec is larger than servers read.
	TooLarge verdict.Code = "TooLarge"
	// LimitExceeded: older objects use up a limit.
	LimitExceeded verdict.Code = "LimitExceeded"
	// Expired: a quarantine has ended.
	Expired verdict.Code = "Expired"
)

// Codes are all codes.
func Codes() []verdict.Code {
	return []verdict.Code{Accepted, Invalid, TooLarge, LimitExceeded, Expired}
}

// outcome says whether servers use an object, and why not.
type outcome struct {
	*object
	Code    verdict.Code
	Message string
	// target is the node or credential that a quarantine cuts off, and reason its reason: for the log.
	target, reason string
	// limited is set if the limit of quarantined nodes decided.
	limited bool
}

// broken reports whether someone has to change the object.
func (o *outcome) broken() bool { return o.Code != Accepted && o.Code != Expired }

// same reports whether nothing about an object has changed that is worth a report.
func (o *outcome) same(as *outcome) bool {
	return o.version() == as.version() && o.Code == as.Code && o.Message == as.Message
}

// maxMessage is the maximum size of a message in bytes.
const maxMessage = 900

// clipped limits the size of a text, parts of which users write.
func clipped(text string) string {
	if len(text) > maxMessage {
		text = text[:maxMessage] + "…"
	}
	return strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "\uFFFD")
}
