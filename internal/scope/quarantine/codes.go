package quarantine

import (
	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// The codes of answers. See docs/reference/reasons.
const (
	// No opinion.
	NotQuarantined   verdict.Code = "NotQuarantined"
	QuarantinePassed verdict.Code = "QuarantinePassed"

	// Refused.
	NodeQuarantined       = v1alpha1.NodeQuarantined
	CredentialQuarantined = v1alpha1.CredentialQuarantined
)

// Summary returns one fixed sentence for each code. It names no object and may be shown to the
// requesting user. It is empty for codes of other packages.
func Summary(code verdict.Code) string {
	switch code {
	case NotQuarantined:
		return "neither the node nor the credential is quarantined"
	case QuarantinePassed:
		return "the node or the credential is quarantined, and a rule of the Quarantine lets the request pass"
	case NodeQuarantined:
		return "the node is quarantined"
	case CredentialQuarantined:
		return "the credential is quarantined"
	}
	return ""
}
