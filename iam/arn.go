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
	// Service is "iam" or "sts" for those who sign requests.
	Service string
	// Region is empty for services that are the same in all regions, as these two are.
	Region string
	// Account has 12 digits; it is empty for resources of AWS itself, such as
	// "arn:aws:iam::aws:policy/…", which are not read.
	Account string
	// Resource is all the rest: "role/teams/a/node", "user/ann", "root".
	Resource string
}

// ParseARN reads the ARN of something that an account has. It can hold printable ASCII
// only, and no spaces.
func ParseARN(text string) (ARN, error) {
	parts := strings.SplitN(text, ":", 6)
	if len(parts) != 6 || parts[0] != "arn" {
		return ARN{}, fmt.Errorf("%q is not an ARN: it has to be arn:PARTITION:SERVICE:REGION:ACCOUNT:RESOURCE", text)
	}
	arn := ARN{Partition: parts[1], Service: parts[2], Region: parts[3], Account: parts[4], Resource: parts[5]}
	switch {
	case strings.IndexFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) >= 0:
		return ARN{}, fmt.Errorf("the ARN %q has characters that no ARN has", text)
	case arn.Partition == "" || arn.Service == "" || arn.Resource == "":
		return ARN{}, fmt.Errorf("the ARN %q has an empty partition, service or resource", text)
	case !isAccount(arn.Account):
		return ARN{}, fmt.Errorf("the account in the ARN %q is not 12 digits", text)
	}
	return arn, nil
}

// String is the ARN as it was read.
func (a ARN) String() string {
	return strings.Join([]string{"arn", a.Partition, a.Service, a.Region, a.Account, a.Resource}, ":")
}

// Name is what follows the resource's kind and path: "node" of "role/teams/a/node".
func (a ARN) Name() string { return a.Resource[strings.LastIndexByte(a.Resource, '/')+1:] }

// isRole reports whether the ARN is that of a role of IAM.
func (a ARN) isRole() bool { return a.Service == "iam" && strings.HasPrefix(a.Resource, "role/") }

// sameRole reports whether two ARNs are of one role. Paths are left out, as STS leaves
// them out: the name of a role is unique in its account, whatever its path and the
// case of its letters.
func sameRole(a, b ARN) bool {
	return a.isRole() && b.isRole() && a.Partition == b.Partition && a.Account == b.Account &&
		strings.EqualFold(a.Name(), b.Name())
}

// isAccount reports whether a text is the id of an account.
func isAccount(text string) bool {
	return len(text) == 12 && strings.Trim(text, "0123456789") == ""
}

// Canonical returns the ARN by which a caller is mapped: that of a user, a role, root
// or a federated user as it is, and for a session of a role that of the role, with the
// session's name beside it. The error says that no caller has such an ARN.
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
		return ARN{}, "", fmt.Errorf("the ARN %q has a region, and who signs requests has none", a)
	case a.Service == "iam" && a.Resource == "root",
		a.Service == "iam" && (kind == "user" || kind == "role") && isPath(name),
		a.Service == "sts" && kind == "federated-user" && isName(name):
		return a, "", nil
	case a.Service == "sts" && kind == "assumed-role":
		i := strings.LastIndexByte(name, '/')
		if i < 0 || !isPath(name[:i]) || !isName(name[i+1:]) {
			return ARN{}, "", fmt.Errorf("the ARN %q is not that of a session: it has to end in assumed-role/ROLE/SESSION", a)
		}
		role := ARN{Partition: a.Partition, Service: "iam", Account: a.Account, Resource: "role/" + name[:i]}
		return role, name[i+1:], nil
	}
	return ARN{}, "", fmt.Errorf("the ARN %q is not that of a user, a role, a session of a role, a federated user or root", a)
}

// isPath reports whether a text is the name of a role or user, or such a name with a
// path before it.
func isPath(text string) bool {
	path, name := "", text
	if i := strings.LastIndexByte(text, '/'); i >= 0 {
		path, name = text[:i], text[i+1:]
		return path != "" && !strings.HasPrefix(path, "/") && isName(name)
	}
	return isName(name)
}

// isName reports whether a text is made as the names of users, roles and sessions are.
//
// Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
func isName(text string) bool {
	odd := func(r rune) bool { return notInName(r) && !strings.ContainsRune("_+=,.@", r) }
	return text != "" && strings.IndexFunc(text, odd) < 0
}
