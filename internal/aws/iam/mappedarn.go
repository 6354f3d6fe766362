package iam

import (
	"fmt"
	"strings"

	"github.com/node-authorizer/node-authorizer/internal/finding"
)

// callers is the kind of callers that an ARN stands for.
type callers string

const (
	roleCallers    callers = "role"
	userCallers    callers = "user"
	sessionCallers callers = "session of a role"
	// otherCallers are root and federated users.
	otherCallers callers = "root or federated user"
)

// mappedARN is a valid ARN of an entry.
type mappedARN struct {
	// arn is the ARN in the text. For a session, it is the ARN of its role.
	arn  string
	kind callers
}

// maxARN is the length of the longest ARN.
//
// Source: https://docs.aws.amazon.com/IAM/latest/APIReference/API_Role.html
const maxARN = 2048

// checkARN checks that an entry's ARN is one of a caller. Letter case does not matter.
func checkARN(text string) (mappedARN, error) {
	if problem := arnProblem(text); problem != "" {
		return mappedARN{}, fmt.Errorf("%s %s", quote(text), problem)
	}
	canonical, session, err := Canonical(text)
	if err != nil {
		canonical, session, err = Canonical(foldASCII(text))
	}
	if err != nil {
		return mappedARN{}, err
	}
	_, resource, _ := cutResource(foldASCII(canonical))
	switch {
	case session != "":
		return mappedARN{canonical, sessionCallers}, nil
	case strings.HasPrefix(resource, "role/"):
		return mappedARN{text, roleCallers}, nil
	case strings.HasPrefix(resource, "user/"):
		return mappedARN{text, userCallers}, nil
	default:
		return mappedARN{text, otherCallers}, nil
	}
}

// arnProblem detects common mistakes in ARNs.
func arnProblem(text string) string {
	folded := foldASCII(text)
	_, resource, isARN := cutResource(text)
	switch {
	case len(text) > maxARN:
		return "is longer than any ARN"
	case strings.TrimSpace(text) != text:
		return "begins or ends with a space"
	case strings.ContainsAny(text, "<>{}$"):
		return "still has a part to fill in"
	case strings.ContainsAny(text, "*?"):
		return "has a wildcard, which is not supported"
	case strings.Contains(folded, ":instance-profile/"):
		return "is an instance profile, not the role in it"
	case strings.Contains(folded, ":policy/"), strings.Contains(folded, ":group/"):
		return "is neither a role nor a user"
	case isARN && strings.HasPrefix(foldASCII(resource), "role/"):
		if account := strings.Split(text, ":")[4]; account == "" {
			return "has no account"
		}
	}
	return ""
}

// list returns the list in which an ARN belongs.
func (c callers) list() MappingKind {
	if c == roleCallers || c == sessionCallers {
		return RoleMapping
	}
	return UserMapping
}

// findings returns warnings about an ARN that is used.
func (a mappedARN) findings(in MappingKind, written string, place finding.Place) []finding.Finding {
	var findings []finding.Finding
	if a.kind == sessionCallers {
		findings = append(findings, finding.Finding{
			Code: MappingSession, Severity: finding.Warning, Place: place, Subject: a.arn,
			Message:     fmt.Sprintf("%s is the ARN of one session of a role", quote(written)),
			Consequence: "every session of the role is mapped",
			Remedy:      "write " + a.arn,
		})
	}
	if belongs := a.kind.list(); belongs != in {
		findings = append(findings, finding.Finding{
			Code: MappingOtherKind, Severity: finding.Warning, Place: place, Subject: a.arn,
			Message:     fmt.Sprintf("%s is a %s mapped as a %s", quote(written), a.kind, in),
			Consequence: "it is mapped; mapRoles is tried before mapUsers",
			Remedy:      fmt.Sprintf("move the entry to %s", listOf(belongs)),
		})
	}
	return findings
}

func listOf(kind MappingKind) string {
	for _, list := range mappingLists() {
		if list.kind == kind {
			return list.name
		}
	}
	return ""
}

func exampleARN(kind MappingKind) string {
	if kind == UserMapping {
		return "arn:aws:iam::111122223333:user/NAME"
	}
	return "arn:aws:iam::111122223333:role/NAME"
}

// accountProblem returns what is wrong with an account id, or an empty text.
func accountProblem(text string) string {
	switch {
	case isAccount(text):
		return ""
	case (len(text) == 10 || len(text) == 11) && strings.Trim(text, "0123456789") == "":
		return fmt.Sprintf("%s has %d digits instead of 12: leading zeros may have been lost", quote(text), len(text))
	default:
		return fmt.Sprintf("%s is not an account id of 12 digits", quote(text))
	}
}
