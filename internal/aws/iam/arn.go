package iam

import (
	"fmt"
	"strings"
)

// ARN is an Amazon Resource Name, "arn:PARTITION:SERVICE:REGION:ACCOUNT:RESOURCE".
//
// Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference-arns.html
type ARN struct {
	// Partition is "aws", "aws-cn", "aws-us-gov" and the like.
	Partition string
	// Service is "iam" or "sts" for callers.
	Service string
	// Region is empty for IAM and STS, which are the same in all regions.
	Region string
	// Account has 12 digits. ParseARN rejects ARNs of AWS's own resources, which have
	// none: "arn:aws:iam::aws:policy/…".
	Account string
	// Resource is everything after the account: "role/teams/a/node", "user/ann", "root".
	Resource string
}

// ParseARN reads the ARN of a resource in an account. It accepts printable ASCII without
// spaces only.
func ParseARN(text string) (ARN, error) {
	parts := strings.SplitN(text, ":", 6)
	if len(parts) != 6 || parts[0] != "arn" {
		return ARN{}, fmt.Errorf("%q is not an ARN: want arn:PARTITION:SERVICE:REGION:ACCOUNT:RESOURCE", text)
	}
	arn := ARN{Partition: parts[1], Service: parts[2], Region: parts[3], Account: parts[4], Resource: parts[5]}
	switch {
	case strings.IndexFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) >= 0:
		return ARN{}, fmt.Errorf("the ARN %q has characters that are not allowed in ARNs", text)
	case arn.Partition == "" || arn.Service == "" || arn.Resource == "":
		return ARN{}, fmt.Errorf("the ARN %q has an empty partition, service or resource", text)
	case !isAccount(arn.Account):
		return ARN{}, fmt.Errorf("the account in the ARN %q is not 12 digits", text)
	}
	return arn, nil
}

// String returns the ARN as it was read.
func (a ARN) String() string {
	return strings.Join([]string{"arn", a.Partition, a.Service, a.Region, a.Account, a.Resource}, ":")
}

// Name returns the last part of the resource: "node" for "role/teams/a/node".
func (a ARN) Name() string { return a.Resource[strings.LastIndexByte(a.Resource, '/')+1:] }

// isRole reports whether the ARN names an IAM role.
func (a ARN) isRole() bool { return a.Service == "iam" && strings.HasPrefix(a.Resource, "role/") }

// sameRole reports whether two ARNs are of the same role. Paths and letter case are
// ignored: STS omits the path, and the name of a role is unique in its account.
func sameRole(a, b ARN) bool {
	return a.isRole() && b.isRole() && a.Partition == b.Partition && a.Account == b.Account &&
		strings.EqualFold(a.Name(), b.Name())
}

// isAccount reports whether a text is an account id.
func isAccount(text string) bool {
	return len(text) == 12 && strings.Trim(text, "0123456789") == ""
}

// Canonical returns the ARN by which a caller is mapped, and the name of its session. For
// a session of a role, that is the ARN of the role. For a user, a role, root or a
// federated user, it is the same ARN. The error means that no caller has such an ARN.
//
//	arn:aws:sts::111122223333:assumed-role/node/i-0123456789abcdef0
//	arn:aws:iam::111122223333:role/node                              i-0123456789abcdef0
func Canonical(text string) (canonical, session string, err error) {
	arn, err := ParseARN(text)
	if err != nil {
		return "", "", err
	}
	canonicalARN, session, err := arn.canonical()
	if err != nil {
		return "", "", err
	}
	return canonicalARN.String(), session, nil
}

func (a ARN) canonical() (canonical ARN, session string, err error) {
	kind, name, _ := strings.Cut(a.Resource, "/")
	switch {
	case a.Region != "":
		return ARN{}, "", fmt.Errorf("the ARN %q has a region: ARNs of callers have none", a)
	case a.Service == "iam" && a.Resource == "root",
		a.Service == "iam" && (kind == "user" || kind == "role") && isPath(name),
		a.Service == "sts" && kind == "federated-user" && isName(name):
		return a, "", nil
	case a.Service == "sts" && kind == "assumed-role":
		i := strings.LastIndexByte(name, '/')
		if i < 0 || !isPath(name[:i]) || !isName(name[i+1:]) {
			return ARN{}, "", fmt.Errorf("the ARN %q does not name a session: want assumed-role/ROLE/SESSION at its end", a)
		}
		role := ARN{Partition: a.Partition, Service: "iam", Account: a.Account, Resource: "role/" + name[:i]}
		return role, name[i+1:], nil
	}
	return ARN{}, "", fmt.Errorf("the ARN %q does not name a user, a role, a session of a role, a federated user or root", a)
}

// isPath reports whether a text is the name of a role or user, with or without a path.
func isPath(text string) bool {
	path, name := "", text
	if i := strings.LastIndexByte(text, '/'); i >= 0 {
		path, name = text[:i], text[i+1:]
		return path != "" && !strings.HasPrefix(path, "/") && isName(name)
	}
	return isName(name)
}

// isName reports whether a text is a valid name of a user, role or session.
//
// Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
func isName(text string) bool {
	odd := func(r rune) bool { return notInName(r) && !strings.ContainsRune("_+=,.@", r) }
	return text != "" && strings.IndexFunc(text, odd) < 0
}
