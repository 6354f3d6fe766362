// Package iam turns an AWS IAM bearer token into a Kubernetes user, as nodes on AWS
// use it to become "system:node:NAME" in "system:nodes".
//
// Make an [Authenticator] from a verifier of package iam/sts and the [Mappings] that
// [ParseConfigMap] or [ParseFile] read.
//
// A token is a request to STS, GetCallerIdentity, that its bearer has signed and
// somebody else sends. Three steps lead from it to a user: to verify (what the token
// asks, [ParseToken]; whose it is, a [Verifier]), to map (the caller's ARN to a
// username and groups, [Mappings]) and to resolve (templates in these, with what EC2
// says of an [Instance]). An [Authenticator] takes all three.
//
// Each has three outcomes: a result, a [Refusal] with a code, or any other error,
// which means that it could not be found out, and says nothing about the bearer.
package iam

import (
	"context"
	"fmt"
	"time"

	"github.com/node-authorizer/node-authorizer/verdict"
)

// Caller is who signed a token, as STS says.
type Caller struct {
	// ARN is the caller's, as STS has it:
	// "arn:aws:sts::111122223333:assumed-role/node/i-0123456789abcdef0".
	ARN string
	// Account has 12 digits.
	Account string
	// UserID is STS's unique id of the caller: "AROA…:i-0123456789abcdef0".
	UserID string
	// AccessKeyID is the id of the credentials that signed. It is no secret.
	AccessKeyID string
	// NotAfter is when the token ends: no answer about it may be used later.
	NotAfter time.Time
}

// Verifier finds out whose a token is. It is safe for concurrent use.
type Verifier interface {
	// Verify returns the caller. The error is a [*Refusal] if the token is not good,
	// and any other error if that could not be found out.
	Verify(ctx context.Context, token string) (*Caller, error)
}

// Acquainted is a [Verifier] that is told who got a user. When AWS cannot be asked about
// everybody's token, it asks about theirs first: anybody in the world can make tokens
// that have to be asked about. It is safe for concurrent use.
type Acquainted interface {
	// Recognised tells that the owner of an access key got a user.
	Recognised(accessKeyID string)
}

// Instance is what EC2 and IAM say of an instance.
type Instance struct {
	ID, Account string
	// Running is whether the instance runs, or is about to.
	Running bool
	// VPC is the id of the instance's VPC; an instance that has ended is in none.
	VPC string
	// PrivateDNSName is the primary private DNS name in lower case; it can be empty. It
	// is of no other instance of the VPC, but can be of one in another VPC.
	PrivateDNSName string
	// Roles are the ARNs of the roles in its instance profile, with their paths; nil if
	// it has no profile, or if the roles were not asked for.
	Roles []string
}

// Instances are looked up in EC2. It is safe for concurrent use.
type Instances interface {
	// Instance returns an instance by its id, with the roles of its profile if they
	// are asked for. It is nil if there is none of that id; an error means that it
	// could not be found out.
	Instance(ctx context.Context, id string, withRoles bool) (*Instance, error)
}

// User is a Kubernetes user.
type User struct {
	Username string
	// UID is "aws-iam-authenticator:ACCOUNT:USERID".
	UID    string
	Groups []string
	// Extra has arn, canonicalArn, sessionName, accessKeyId, principalId and
	// sigs.k8s.io/aws-iam-authenticator/principalId, as the reference calls them.
	Extra map[string][]string
	// NotAfter is when the token ends.
	NotAfter time.Time
	// Mapping is what made the user.
	Mapping Mapping
}

// Refusal is the error that says that a token gets no user.
type Refusal struct {
	// Code is the reason, documented in docs/reasons.md.
	Code verdict.Code
	// Detail is one line that says which check failed. It has nothing of the token that
	// is secret: no signature, no security token.
	Detail string
}

func (r *Refusal) Error() string { return fmt.Sprintf("%s: %s", r.Code, r.Detail) }

// Refuse returns a refusal.
func Refuse(code verdict.Code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// Throttled is the error of a question that AWS, or our own limit, turned away for
// now. It is worth another try.
type Throttled struct {
	// Service is STS, EC2 or IAM.
	Service string
	Detail  string
}

func (t *Throttled) Error() string { return t.Service + " throttles: " + t.Detail }
