package iam

import "strings"

// principal is a caller as the mappings and templates see it.
type principal struct {
	*Caller
	// arn is the canonical one.
	arn ARN
	// canonical is arn as a text.
	canonical string
	// session is the name of a role's session; empty for all others.
	session string
	// id is the caller's unique id, for a session that of its role.
	id string
}

// principal checks that what STS says of a caller fits together.
func (c *Caller) principal(partition string) (*principal, *Refusal) {
	arn, err := ParseARN(c.ARN)
	if err != nil || c.UserID == "" {
		return nil, Refuse(CallerMalformed, "STS names the caller %q with the id %q, which it cannot be", c.ARN, c.UserID)
	}
	canonical, session, err := arn.canonical()
	if err != nil {
		return nil, Refuse(CallerNotSupported, "%v", err)
	}
	if arn.Account != c.Account {
		return nil, Refuse(AccountMismatch, "STS names the caller %s, and its account %q", c.ARN, c.Account)
	}
	if arn.Partition != partition {
		return nil, Refuse(CallerOtherPartition, "the caller %s is not of the partition %s", c.ARN, partition)
	}
	p := &principal{Caller: c, arn: canonical, canonical: canonical.String(), session: session, id: c.UserID}
	var fits bool
	first, rest, two := strings.Cut(c.UserID, ":")
	switch {
	case session != "":
		// The id of a session is two in one, and that of the role is the caller's, as in
		// the reference.
		fits, p.id = first != "" && rest == session, first
	case arn.Service == "sts":
		// The id of a federated user is one. What is before its colon is root's id.
		fits = first == arn.Account && rest == arn.Name()
	default:
		fits = !two
	}
	if !fits {
		return nil, Refuse(CallerMalformed, "STS names the caller %s, and the id %q is of another caller", c.ARN, c.UserID)
	}
	return p, nil
}
