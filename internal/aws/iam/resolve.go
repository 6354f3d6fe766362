package iam

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// errNoInstances is the error for a user that depends on EC2 if Instances is not set.
var errNoInstances = errors.New("look-ups of instances in EC2 are not configured")

// resolver expands the templates of a mapping for one caller.
type resolver struct {
	*principal
	// mapped is the ARN of the caller's role in the mapping, which may have a path.
	mapped    string
	instances Instances
	vpcs      []string
	// withRoles is whether the look-up of the instance includes its roles.
	withRoles bool
	// instance is the instance of the session's name once it has been looked up, and
	// complete is whether the look-up included its roles.
	instance *Instance
	complete bool
}

// resolve returns the names that a mapping gives a caller. It checks the session if its
// name is used in the name of a node.
func (a *Authenticator) resolve(ctx context.Context, who *principal, mapping Mapping) (username string, groups []string, err error) {
	if mapping.Kind == AccountMapping {
		return who.canonical, nil, nil
	}
	templates, err := parseTemplates(slices.Concat([]string{mapping.Username}, mapping.Groups))
	if err != nil {
		return "", nil, err
	}
	r := &resolver{principal: who, mapped: mapping.ARN, instances: a.options.Instances, vpcs: a.options.VPCs}
	check := a.sessionCheck(who, templates)
	// One look-up is enough if the roles are included from the beginning.
	r.withRoles = check.needsRoles() && strings.HasPrefix(mapping.Username, nodeidentity.UserPrefix)

	var names []string
	for _, template := range templates {
		name, err := template.Expand(func(placeholder string) (string, error) { return r.value(ctx, placeholder) })
		if err != nil {
			return "", nil, err
		}
		names = append(names, name)
	}
	username, groups = names[0], names[1:]
	if !strings.HasPrefix(username, nodeidentity.UserPrefix) {
		return username, groups, nil
	}
	switch bySession := slices.ContainsFunc(templates, Template.UsesSession); {
	case bySession && check != NoSessionCheck:
		r.withRoles = check.needsRoles()
		err = r.checkSession(ctx)
	case r.instance != nil:
		// The VPC is checked even without a check of the session.
		err = r.checkVPC()
	}
	return username, groups, err
}

func parseTemplates(texts []string) ([]Template, error) {
	templates := make([]Template, len(texts))
	for i, text := range texts {
		template, err := ParseTemplate(text)
		if err != nil {
			return nil, err
		}
		templates[i] = template
	}
	return templates, nil
}

// sessionCheck returns the check of a caller's session. Roles are exempt because their
// sessions are not instances. A mapping that uses the instance of a session is never
// exempt: otherwise any session of the role could be the node of any instance.
func (a *Authenticator) sessionCheck(who *principal, templates []Template) SessionCheck {
	exempt := slices.ContainsFunc(a.exempt, func(role ARN) bool { return sameRole(role, who.arn) })
	byInstance := slices.ContainsFunc(templates, func(t Template) bool { return t.Uses(PlaceholderPrivateDNSName) })
	if exempt && !byInstance {
		return NoSessionCheck
	}
	return a.options.SessionCheck
}

// value returns the value of a placeholder.
func (r *resolver) value(ctx context.Context, placeholder string) (string, error) {
	switch placeholder {
	case PlaceholderAccountID:
		return r.Account, nil
	case PlaceholderAccessKeyID:
		return r.AccessKeyID, nil
	}
	if r.session == "" {
		return "", Refuse(SessionMissing, "%s is not a session of a role, and its mapping uses {{%s}}", r.ARN, placeholder)
	}
	switch placeholder {
	case PlaceholderSessionName:
		return strings.ReplaceAll(r.session, "@", "-"), nil
	case PlaceholderSessionNameRaw:
		return r.session, nil
	case PlaceholderPrivateDNSName:
		return r.privateDNSName(ctx)
	}
	return "", fmt.Errorf("there is no value for {{%s}}", placeholder)
}

func (r *resolver) privateDNSName(ctx context.Context) (string, error) {
	if err := r.find(ctx); err != nil {
		return "", err
	}
	switch {
	case r.instance.PrivateDNSName != "":
		return r.instance.PrivateDNSName, nil
	case !r.instance.Running:
		// A terminated instance has no name any more.
		return "", r.ended()
	}
	return "", Refuse(NameEmpty, "the instance %s has no private DNS name", r.session)
}

// find looks up the instance of the session's name, unless an earlier look-up returned
// everything that is needed.
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
		return fmt.Errorf("look up the instance %s: %w", r.session, err)
	case instance == nil:
		return Refuse(SessionInstanceUnknown, "%s: there is no instance %s in EC2", r.ARN, r.session)
	case instance.ID != r.session:
		return fmt.Errorf("look up the instance %s: the answer is about %q", r.session, instance.ID)
	}
	r.instance, r.complete = instance, r.withRoles
	return nil
}

// checkSession refuses a session that does not belong to the instance in its name.
func (r *resolver) checkSession(ctx context.Context) error {
	if err := r.find(ctx); err != nil {
		return err
	}
	switch {
	case !r.instance.Running:
		return r.ended()
	case r.instance.Account != r.Account:
		return Refuse(SessionAccountMismatch, "%s: the instance %s is in the account %q", r.ARN, r.session, r.instance.Account)
	}
	if err := r.checkVPC(); err != nil {
		return err
	}
	if r.withRoles && !slices.ContainsFunc(r.instance.Roles, r.isOwnRole) {
		return Refuse(SessionRoleMismatch, "%s: the instance profile of %s does not have the role %s", r.ARN, r.session, r.mapped)
	}
	return nil
}

// checkVPC refuses an instance in another VPC. It can have the name of a node, because
// private DNS names are unique within a VPC only.
func (r *resolver) checkVPC() error {
	if len(r.vpcs) == 0 || slices.Contains(r.vpcs, r.instance.VPC) {
		return nil
	}
	return Refuse(SessionOtherVPC, "%s: the instance %s is in the VPC %q", r.ARN, r.session, r.instance.VPC)
}

func (r *resolver) ended() *Refusal {
	return Refuse(SessionInstanceEnded, "%s: the instance %s does not run", r.ARN, r.session)
}

// isOwnRole reports whether a role of IAM is the caller's role. STS omits the path of a
// role, and IAM returns it. If the mapping has a path, the paths must be equal too.
func (r *resolver) isOwnRole(text string) bool {
	role, err := ParseARN(text)
	_, hasPath := withoutPath(r.mapped)
	return err == nil && sameRole(role, r.arn) && (!hasPath || foldASCII(text) == foldASCII(r.mapped))
}

// isInstanceID reports whether a text has the form of an instance id: "i-" and 17
// hexadecimal digits, or 8 for instances from before 2018.
//
// Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/resource-ids.html
func isInstanceID(text string) bool {
	digits, ok := strings.CutPrefix(text, "i-")
	return ok && (len(digits) == 8 || len(digits) == 17) && strings.Trim(digits, "0123456789abcdef") == ""
}
