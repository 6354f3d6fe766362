package iam

import (
	"fmt"
	"strings"

	"github.com/node-authorizer/node-authorizer/finding"
)

// callers are whom an ARN stands for.
type callers string

const (
	roleCallers    callers = "role"
	userCallers    callers = "user"
	sessionCallers callers = "session of a role"
	// otherCallers are root and federated users.
	otherCallers callers = "root or federated user"
)

// mappedARN is the ARN of an entry, checked.
type mappedARN struct {
	// arn is as it is written; for a session, that of its role.
	arn  string
	kind callers
}

// maxARN is the length of the longest ARN.
//
// Source: https://docs.aws.amazon.com/IAM/latest/APIReference/API_Role.html
const maxARN = 2048

// checkARN checks that an entry's ARN is one that callers have. The case of its letters
// does not matter.
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

// arnProblem knows what people write in place of an ARN.
func arnProblem(text string) string {
	folded := foldASCII(text)
	_, resource, isARN := cutResource(text)
	switch {
	case len(text) > maxARN:
		return "is longer than any ARN"
	case strings.TrimSpace(text) != text:
		return "begins or ends with a space"
	case strings.ContainsAny(text, "<>{}$"):
		return "still has a part that has to be filled in"
	case strings.ContainsAny(text, "*?"):
		return "has a wildcard, and ARNs are compared as they are"
	case strings.Contains(folded, ":instance-profile/"):
		return "is an instance profile, not the role in it"
	case strings.Contains(folded, ":policy/"), strings.Contains(folded, ":group/"):
		return "is neither a role nor a user, and nobody else signs requests"
	case isARN && strings.HasPrefix(foldASCII(resource), "role/"):
		if account := strings.Split(text, ":")[4]; account == "" {
			return "has no account"
		}
	}
	return ""
}

// list is the kind of the list in which an ARN belongs.
func (c callers) list() MappingKind {
	if c == roleCallers || c == sessionCallers {
		return RoleMapping
	}
	return UserMapping
}

// findings says what is odd about an ARN that is used all the same.
func (a mappedARN) findings(in MappingKind, written string, place finding.Place) []finding.Finding {
	var findings []finding.Finding
	if a.kind == sessionCallers {
		findings = append(findings, finding.Finding{
			Code: MappingSession, Severity: finding.Warning, Place: place, Subject: a.arn,
			Message:     fmt.Sprintf("%s is the ARN of one session of a role", quote(written)),
			Consequence: "every session of the role is mapped, whatever its name",
			Remedy:      "write " + a.arn,
		})
	}
	if belongs := a.kind.list(); belongs != in {
		findings = append(findings, finding.Finding{
			Code: MappingOtherKind, Severity: finding.Warning, Place: place, Subject: a.arn,
			Message:     fmt.Sprintf("%s is a %s, and mapped as a %s", quote(written), a.kind, in),
			Consequence: "it is mapped all the same; the lists are tried in the order mapRoles, mapUsers",
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

// accountProblem says what is wrong with the number of an account; it is empty if
// nothing is.
func accountProblem(text string) string {
	switch {
	case isAccount(text):
		return ""
	case (len(text) == 10 || len(text) == 11) && strings.Trim(text, "0123456789") == "":
		return fmt.Sprintf("%s has %d digits, and accounts have 12: zeros at the beginning may have been lost", quote(text), len(text))
	default:
		return fmt.Sprintf("%s is not the number of an account, which has 12 digits", quote(text))
	}
}
