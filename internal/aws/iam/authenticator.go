package iam

import (
	"cmp"
	"context"
	"errors"
	"fmt"
)

// SessionCheck says how the session of a node is checked.
type SessionCheck string

// The checks. A caller that assumes a role chooses the name of the session. EC2 uses the
// instance id. Any other principal that may assume a role of nodes can use the id of any
// instance, and would be authenticated as its node without a check.
const (
	// CheckInstanceProfile requires that the session's name is the id of a running
	// instance in the caller's account with the caller's role in its instance profile.
	CheckInstanceProfile SessionCheck = "InstanceProfile"
	// CheckInstance requires the same except for the role.
	CheckInstance SessionCheck = "Instance"
	// NoSessionCheck requires nothing: a principal that may assume the role can be
	// authenticated as any of its nodes.
	NoSessionCheck SessionCheck = "None"
)

// needsRoles reports whether the check needs the roles of an instance. An unknown value
// checks everything.
func (c SessionCheck) needsRoles() bool { return c != CheckInstance && c != NoSessionCheck }

// Mapper finds the mapping of a caller. It is safe for concurrent use.
type Mapper interface {
	// Find returns the mapping of a caller by its canonical ARN or its account, and false
	// if there is none. An error means that the mappings have not been read yet.
	Find(canonical, account string) (Mapping, bool, error)
}

// Options are the options of an [Authenticator].
type Options struct {
	// Verifier returns the caller of a token. Required. It can be a [CallerTracker].
	Verifier Verifier
	// Mappings map callers to Kubernetes users. Required.
	Mappings Mapper
	// Instances returns the names of instances and the facts for the check of sessions.
	// If it is nil, authentication that depends on an instance is an error.
	Instances Instances
	// Partition is the partition of all callers. The default is "aws".
	Partition string
	// SessionCheck is the check of each session whose name is used in the name of a node.
	// The default is CheckInstanceProfile.
	SessionCheck SessionCheck
	// SessionCheckExempt are the ARNs of roles whose sessions are not instances and are
	// not checked: roles of Fargate pods, or of nodes outside EC2. Paths are ignored. An
	// invalid ARN exempts no role. A mapping with {{EC2PrivateDNSName}} is about instances:
	// no role is exempt from its check.
	SessionCheckExempt []string
	// VPCs are the ids of the VPCs whose instances may be nodes. If it is empty, instances
	// of all VPCs may. The VPC is checked if the session is checked, or if the private DNS
	// name is used in the name of a node, with any SessionCheck.
	VPCs []string
	// Quarantines returns the Quarantines whose nodes are not authenticated; nil: none are followed.
	// While they cannot be found, the authentication of a node is an error.
	Quarantines Quarantines
	// Reserved are the names that mappings cannot give. [DefaultReserved] is what
	// Kubernetes needs.
	Reserved Reserved
}

// Authenticator authenticates tokens as users. It is safe for concurrent use.
type Authenticator struct {
	options Options
	exempt  []ARN
}

// NewAuthenticator returns an authenticator.
func NewAuthenticator(o Options) *Authenticator {
	if o.Partition == "" {
		o.Partition = "aws"
	}
	if o.SessionCheck == "" {
		o.SessionCheck = CheckInstanceProfile
	}
	a := &Authenticator{options: o}
	for _, text := range o.SessionCheckExempt {
		if role, err := ParseARN(text); err == nil {
			a.exempt = append(a.exempt, role)
		}
	}
	return a
}

// Authenticate returns the user of a token. The error is a [*Refusal] if the token is
// refused, a [*Throttled] if requests to AWS are throttled, and any other error if the
// token could not be checked.
func (a *Authenticator) Authenticate(ctx context.Context, token string) (*User, error) {
	caller, err := a.options.Verifier.Verify(ctx, token)
	if err != nil {
		return nil, err
	}
	who, refusal := caller.principal(a.options.Partition)
	if refusal != nil {
		return nil, refusal
	}
	mapping, ok, err := a.options.Mappings.Find(who.canonical, who.Account)
	if err != nil {
		return nil, fmt.Errorf("find the mapping of %s: %w", who.canonical, err)
	}
	if !ok {
		return nil, Refuse(NotMapped, "no mapping is about %s or its account", who.canonical)
	}
	if mapping.Unusable {
		return nil, Refuse(MappingUnusable, "the mapping of %s in %s cannot be used", who.canonical,
			cmp.Or(mapping.Place.String(), mapping.Source))
	}
	user, err := a.user(ctx, who, mapping)
	if err != nil {
		return nil, err
	}
	if verifier, ok := a.options.Verifier.(CallerTracker); ok {
		verifier.Authenticated(who.AccessKeyID)
	}
	return user, nil
}

// user returns the user that a mapping gives a caller.
func (a *Authenticator) user(ctx context.Context, who *principal, mapping Mapping) (*User, error) {
	username, groups, err := a.resolve(ctx, who, mapping)
	if err != nil {
		var refusal *Refusal
		if errors.As(err, &refusal) {
			return nil, err
		}
		return nil, fmt.Errorf("make a user of %s by the mapping in %s: %w", who.ARN, cmp.Or(mapping.Place.String(), mapping.Source), err)
	}
	if refusal := a.checkNames(username, groups, who); refusal != nil {
		return nil, refusal
	}
	if err := a.checkQuarantine(who, username); err != nil {
		return nil, err
	}
	extra := []string{who.ARN, who.canonical, who.session, who.AccessKeyID, who.id, who.id}
	return &User{
		Username: username,
		UID:      "aws-iam-authenticator:" + who.Account + ":" + who.id,
		Groups:   groups,
		Extra: map[string][]string{
			"arn":          extra[0:1:1],
			"canonicalArn": extra[1:2:2],
			"sessionName":  extra[2:3:3],
			"accessKeyId":  extra[3:4:4],
			"principalId":  extra[4:5:5],
			// aws-iam-authenticator sets both names: the second has a domain prefix.
			"sigs.k8s.io/aws-iam-authenticator/principalId": extra[5:6:6],
		},
		NotAfter: who.NotAfter,
		Mapping:  mapping,
	}, nil
}
