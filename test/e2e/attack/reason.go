package attack

import (
	"regexp"
	"strings"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Reasons are the codes of docs/reference/reasons for a request: of the authorizer and, if it
// was called, of the admission webhook.
type Reasons struct{ Authorization, Admission string }

// Annotations of an audit event: the authorizer's reason, and our webhook's reason.
const (
	authorizationReason = "authorization.k8s.io/reason"
	admissionCode       = "noderestriction.node-authorizer.io/code"
)

// code is the prefix of a reason, after the name of the authorizer: "node-authorizer:
// NoPathToObject: …".
var code = regexp.MustCompile(`^(?:[a-z-]+: )?([A-Z][A-Za-z]+)(?::|$)`)

// ReasonsOf reads the reasons in audit events, by the ids of the requests.
func ReasonsOf(events []auditv1.Event) map[string]Reasons {
	all := map[string]Reasons{}
	for _, event := range events {
		id := string(event.AuditID)
		reasons := all[id]
		if found := code.FindStringSubmatch(event.Annotations[authorizationReason]); found != nil {
			reasons.Authorization = found[1]
		}
		if found := event.Annotations[admissionCode]; found != "" {
			reasons.Admission = found
		}
		all[id] = reasons
	}
	return all
}

// inMessage is the code in the message of a refusal without an audit annotation:
// impersonation.
var inMessage = regexp.MustCompile(`: node-authorizer: ([A-Z][A-Za-z]+): `)

// Explain adds the reasons of a row, and reports whether the audit log has its request.
func (r *Row) Explain(found map[string]Reasons) bool {
	reasons, there := found[r.ID]
	if told := inMessage.FindStringSubmatch(r.Ours.Message); reasons.Authorization == "" && told != nil {
		reasons.Authorization = told[1]
	}
	r.Reasons = reasons
	return there
}

// String returns both reasons.
func (r Reasons) String() string {
	var codes []string
	for _, one := range []string{r.Authorization, r.Admission} {
		if one != "" {
			codes = append(codes, one)
		}
	}
	return strings.Join(codes, ", ")
}
