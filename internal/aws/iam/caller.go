package iam

import "strings"

// principal is a caller as the mappings and templates see it.
type principal struct {
	*Caller
	// arn is the canonical ARN.
	arn ARN
	// canonical is arn as text.
	canonical string
	// session is the name of a role's session. It is empty for other callers.
	session string
	// id is the caller's unique id. For a session, it is the role's id.
	id string
}

// principal checks that the fields of STS's answer match each other.
func (c *Caller) principal(partition string) (*principal, *Refusal) {
	arn, err := ParseARN(c.ARN)
	if err != nil || c.UserID == "" {
		return nil, Refuse(CallerMalformed, "STS returned the caller %q with the id %q, which do not match", c.ARN, c.UserID)
	}
	canonical, session, err := arn.canonical()
	if err != nil {
		return nil, Refuse(CallerNotSupported, "%v", err)
	}
	if arn.Account != c.Account {
		return nil, Refuse(AccountMismatch, "STS returned the caller %s with the account %q", c.ARN, c.Account)
	}
	if arn.Partition != partition {
		return nil, Refuse(CallerOtherPartition, "the caller %s is not in the partition %s", c.ARN, partition)
	}
	p := &principal{Caller: c, arn: canonical, canonical: canonical.String(), session: session, id: c.UserID}
	var fits bool
	first, rest, two := strings.Cut(c.UserID, ":")
	switch {
	case session != "":
		// The id of a session has two parts. The first, of the role, is the caller's id,
		// as in the reference.
		fits, p.id = first != "" && rest == session, first
	case arn.Service == "sts":
		// The id of a federated user is used whole. The part before its colon is root's id.
		fits = first == arn.Account && rest == arn.Name()
	default:
		fits = !two
	}
	if !fits {
		return nil, Refuse(CallerMalformed, "STS returned the caller %s with the id %q of another caller", c.ARN, c.UserID)
	}
	return p, nil
}
