package iam

import (
	"cmp"
	"context"
	"errors"
	"fmt"
)

// SessionCheck says what is asked about the session of a node.
type SessionCheck string

// The checks. A session's name is chosen by whoever assumes the role. EC2 takes the id
// of the instance; but whoever else may assume a role of nodes can take that of any
// instance, and would be its node.
const (
	// CheckInstanceProfile asks that the session's name is the id of an instance that
	// runs, in the caller's account, with the caller's role in its instance profile.
	CheckInstanceProfile SessionCheck = "InstanceProfile"
	// CheckInstance asks the same but for the role.
	CheckInstance SessionCheck = "Instance"
	// NoSessionCheck asks nothing: who may assume the role may be all of its nodes.
	NoSessionCheck SessionCheck = "None"
)

// needsRoles reports whether the roles of an instance are asked for. What is not known
// checks all there is.
func (c SessionCheck) needsRoles() bool { return c != CheckInstance && c != NoSessionCheck }

// Mapper finds who a caller is in Kubernetes. It is safe for concurrent use.
type Mapper interface {
	// Find returns the mapping of a caller by its canonical ARN or its account; false
	// if there is none. An error means that this is not known, for the mappings have
	// not been read yet.
	Find(canonical, account string) (Mapping, bool, error)
}

// Options are those of an [Authenticator].
type Options struct {
	// Verifier finds out whose a token is. Required. It can be [Acquainted].
	Verifier Verifier
	// Mappings say who that is in Kubernetes. Required.
	Mappings Mapper
	// Instances are asked for the names of instances, and for the check of sessions.
	// Without them, a user that depends on either is an error.
	Instances Instances
	// Partition is that of all callers: "aws" if it is empty.
	Partition string
	// SessionCheck is made of each session whose name has a part in the name of a
	// node. CheckInstanceProfile if it is empty.
	SessionCheck SessionCheck
	// SessionCheckExempt are the ARNs of roles whose sessions are no instances, and
	// are not checked: those of Fargate's pods, or of nodes outside EC2. A path does not
	// matter. What is no ARN of a role exempts nobody. A mapping with
	// {{EC2PrivateDNSName}} is about instances, and for it nobody is exempt.
	SessionCheckExempt []string
	// VPCs are the ids of those whose instances may be nodes; with none, those of any
	// VPC may. An instance is in one of them if its session is checked, or its private
	// DNS name has a part in the name of a node, whatever the SessionCheck.
	VPCs []string
	// Reserved are the names that no mapping gives. [DefaultReserved] is what
	// Kubernetes needs.
	Reserved Reserved
}

// Authenticator turns tokens into users. It is safe for concurrent use.
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

// Authenticate returns the user that a token stands for. The error is a [*Refusal] if
// it stands for none, a [*Throttled] if AWS is asked too much, and any other error if
// it could not be found out.
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
		return nil, Refuse(MappingUnusable, "the mapping of %s in %s cannot be used", who.canonical, cmp.Or(mapping.Place.String(), mapping.Source))
	}
	user, err := a.user(ctx, who, mapping)
	if err != nil {
		return nil, err
	}
	if verifier, ok := a.options.Verifier.(Acquainted); ok {
		verifier.Recognised(who.AccessKeyID)
	}
	return user, nil
}

// user makes the user that a mapping gives a caller.
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
			// The reference gives both names: the second is in a namespace of its own.
			"sigs.k8s.io/aws-iam-authenticator/principalId": extra[5:6:6],
		},
		NotAfter: who.NotAfter,
		Mapping:  mapping,
	}, nil
}
