// Package iam authenticates AWS IAM bearer tokens as Kubernetes users. Nodes on AWS use
// such tokens to become "system:node:NAME" in "system:nodes".
//
// Make an [Authenticator] from a verifier of package iam/sts and the [Mappings] that
// [ParseConfigMap] or [ParseFile] read.
//
// A token is a signed GetCallerIdentity request to STS. Its bearer signs the request, and
// the server sends it. An [Authenticator] takes three steps: it verifies the token
// ([ParseToken] checks the request, a [Verifier] returns the caller), maps the caller's
// ARN to a username and groups ([Mappings]), and resolves the templates in these with the
// caller's [Instance].
//
// Each step has three outcomes: a result, a [Refusal] with a code, or any other error,
// which means that the step could not be evaluated and says nothing about the bearer.
package iam

import (
	"context"
	"fmt"
	"time"

	"github.com/node-authorizer/node-authorizer/verdict"
)

// Caller is the caller that signed a token, as STS returns it.
type Caller struct {
	// ARN is the caller's ARN, as STS returns it:
	// "arn:aws:sts::111122223333:assumed-role/node/i-0123456789abcdef0".
	ARN string
	// Account has 12 digits.
	Account string
	// UserID is STS's unique id of the caller: "AROA…:i-0123456789abcdef0".
	UserID string
	// AccessKeyID is the id of the credentials that signed. It is no secret.
	AccessKeyID string
	// NotAfter is when the token expires. No answer about it may be used later.
	NotAfter time.Time
}

// Verifier returns the caller of a token. It is safe for concurrent use.
type Verifier interface {
	// Verify returns the caller. The error is a [*Refusal] if the token is not valid, and
	// any other error if the token could not be checked.
	Verify(ctx context.Context, token string) (*Caller, error)
}

// CallerTracker is a [Verifier] that tracks known callers: callers that have been
// authenticated. It verifies their tokens first when requests to AWS are limited, because
// anybody can make tokens that only AWS can check. It is safe for concurrent use.
type CallerTracker interface {
	// Authenticated records that the owner of an access key has been authenticated.
	Authenticated(accessKeyID string)
}

// Instance is an EC2 instance as EC2 and IAM describe it.
type Instance struct {
	ID, Account string
	// Running is whether the instance runs, or is about to.
	Running bool
	// VPC is the id of the instance's VPC. It is empty for a terminated instance.
	VPC string
	// PrivateDNSName is the primary private DNS name in lower case. It can be empty. It is
	// unique within the VPC only.
	PrivateDNSName string
	// Roles are the ARNs of the roles in its instance profile, with their paths. It is nil
	// if there is no profile, or if the roles were not requested.
	Roles []string
}

// Instances looks up instances in EC2. It is safe for concurrent use.
type Instances interface {
	// Instance returns the instance with an id, with the roles of its profile if
	// withRoles is set. It is nil if there is no such instance. An error means that the
	// look-up failed.
	Instance(ctx context.Context, id string, withRoles bool) (*Instance, error)
}

// User is a Kubernetes user.
type User struct {
	Username string
	// UID is "aws-iam-authenticator:ACCOUNT:USERID".
	UID    string
	Groups []string
	// Extra has arn, canonicalArn, sessionName, accessKeyId, principalId and
	// sigs.k8s.io/aws-iam-authenticator/principalId. The reference has the same
	// names.
	Extra map[string][]string
	// NotAfter is when the token expires.
	NotAfter time.Time
	// Mapping is the mapping that gave the user.
	Mapping Mapping
}

// Refusal is the error for a token that is refused.
type Refusal struct {
	// Code is the reason, documented in docs/reference/reasons.
	Code verdict.Code
	// Detail is one line that says which check failed. It contains no secret of the token:
	// no signature and no security token.
	Detail string
}

func (r *Refusal) Error() string { return fmt.Sprintf("%s: %s", r.Code, r.Detail) }

// Refuse returns a refusal.
func Refuse(code verdict.Code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// Throttled is the error of a request that AWS or a rate limit of this server rejected.
// Try again later.
type Throttled struct {
	// Service is STS, EC2 or IAM.
	Service string
	Detail  string
}

func (t *Throttled) Error() string { return t.Service + " throttles: " + t.Detail }
