package iam

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// errNoInstances is the error of a user that depends on EC2 where nobody asks it.
var errNoInstances = errors.New("EC2 is not asked for instances")

// resolver makes the names of one user out of a mapping's templates.
type resolver struct {
	*principal
	instances Instances
	// withRoles is whether the instance is asked for with its roles.
	withRoles bool
	// instance is the one of the session's name, once it has been found, and complete
	// whether that was with its roles.
	instance *Instance
	complete bool
}

// resolve returns the names that a mapping gives a caller, whose session is checked
// where it has a part in the name of a node.
func (a *Authenticator) resolve(ctx context.Context, who *principal, mapping Mapping) (username string, groups []string, err error) {
	if mapping.Kind == AccountMapping {
		return who.canonical, nil, nil
	}
	r := &resolver{principal: who, instances: a.options.Instances}
	check := a.sessionCheck(who)
	// One question is enough if it is clear from the beginning what will be checked.
	r.withRoles = check.needsRoles() && strings.HasPrefix(mapping.Username, nodeidentity.UserPrefix)

	bySession := false
	var names []string
	for _, text := range slices.Concat([]string{mapping.Username}, mapping.Groups) {
		template, err := ParseTemplate(text)
		if err != nil {
			return "", nil, err
		}
		bySession = bySession || template.UsesSession()
		name, err := template.Expand(func(placeholder string) (string, error) { return r.value(ctx, placeholder) })
		if err != nil {
			return "", nil, err
		}
		names = append(names, name)
	}
	username, groups = names[0], names[1:]
	if bySession && check != NoSessionCheck && strings.HasPrefix(username, nodeidentity.UserPrefix) {
		r.withRoles = check.needsRoles()
		err = r.checkSession(ctx)
	}
	return username, groups, err
}

// sessionCheck is the check of a caller's session.
func (a *Authenticator) sessionCheck(who *principal) SessionCheck {
	if slices.ContainsFunc(a.exempt, func(role ARN) bool { return sameRole(role, who.arn) }) {
		return NoSessionCheck
	}
	return a.options.SessionCheck
}

// value is what stands for a placeholder.
func (r *resolver) value(ctx context.Context, placeholder string) (string, error) {
	switch placeholder {
	case PlaceholderAccountID:
		return r.Account, nil
	case PlaceholderAccessKeyID:
		return r.AccessKeyID, nil
	}
	if r.session == "" {
		return "", Refuse(SessionMissing, "%s is no session of a role, and its mapping has {{%s}}", r.ARN, placeholder)
	}
	switch placeholder {
	case PlaceholderSessionName:
		return strings.ReplaceAll(r.session, "@", "-"), nil
	case PlaceholderSessionNameRaw:
		return r.session, nil
	case PlaceholderPrivateDNSName:
		return r.privateDNSName(ctx)
	}
	return "", fmt.Errorf("nothing is known to stand for {{%s}}", placeholder)
}

func (r *resolver) privateDNSName(ctx context.Context) (string, error) {
	if err := r.find(ctx); err != nil {
		return "", err
	}
	switch {
	case r.instance.PrivateDNSName != "":
		return r.instance.PrivateDNSName, nil
	case !r.instance.Running:
		// An instance that has ended has lost its name.
		return "", r.ended()
	}
	return "", Refuse(NameEmpty, "the instance %s has no private DNS name", r.session)
}

// find asks for the instance of the session's name, if it has not been asked for with
// all that is wanted.
func (r *resolver) find(ctx context.Context) error {
	if r.instance != nil && (r.complete || !r.withRoles) {
		return nil
	}
	if !isInstanceID(r.session) {
		return Refuse(SessionNotInstance, "%s: the session's name is not the id of an instance", r.ARN)
	}
	if r.instances == nil {
		return errNoInstances
	}
	instance, err := r.instances.Instance(ctx, r.session, r.withRoles)
	switch {
	case err != nil:
		return fmt.Errorf("look the instance %s up: %w", r.session, err)
	case instance == nil:
		return Refuse(SessionInstanceUnknown, "%s: EC2 knows no instance %s", r.ARN, r.session)
	case instance.ID != r.session:
		return fmt.Errorf("look the instance %s up: the answer is about %q", r.session, instance.ID)
	}
	r.instance, r.complete = instance, r.withRoles
	return nil
}

// checkSession finds a session that is not that of the instance it is named after.
func (r *resolver) checkSession(ctx context.Context) error {
	if err := r.find(ctx); err != nil {
		return err
	}
	switch {
	case !r.instance.Running:
		return r.ended()
	case r.instance.Account != r.Account:
		return Refuse(SessionAccountMismatch, "%s: the instance %s is of the account %q", r.ARN, r.session, r.instance.Account)
	case r.withRoles && !slices.ContainsFunc(r.instance.Roles, r.isOwnRole):
		return Refuse(SessionRoleMismatch, "%s: the instance profile of %s does not have that role", r.ARN, r.session)
	}
	return nil
}

func (r *resolver) ended() *Refusal {
	return Refuse(SessionInstanceEnded, "%s: the instance %s does not run", r.ARN, r.session)
}

func (r *resolver) isOwnRole(text string) bool {
	role, err := ParseARN(text)
	return err == nil && sameRole(role, r.arn)
}

// isInstanceID reports whether a text is an id as EC2 gives it: "i-" and 17 hexadecimal
// digits, or 8 for instances from before 2018.
//
// Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/resource-ids.html
func isInstanceID(text string) bool {
	digits, ok := strings.CutPrefix(text, "i-")
	return ok && (len(digits) == 8 || len(digits) == 17) && strings.Trim(digits, "0123456789abcdef") == ""
}
