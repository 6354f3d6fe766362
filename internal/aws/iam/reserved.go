package iam

import (
	"fmt"
	"slices"
	"strings"
)

// Reserved are the usernames and groups that mappings must not give. Names with the
// prefix "system:" have a special meaning in Kubernetes. Without this restriction, a
// principal that may write a mapping, or choose the name of a session, could become any
// user.
type Reserved struct {
	// Prefixes are the prefixes of reserved names.
	Prefixes []string
	// GrantedUsernames are exceptions. One that ends in a colon allows longer names with
	// that prefix. Any other allows itself.
	GrantedUsernames []string
	// GrantedGroups are exceptions of the same form.
	GrantedGroups []string
}

// DefaultReserved reserves "system:", except the names of nodes and administrators.
func DefaultReserved() Reserved {
	return Reserved{
		Prefixes:         []string{"system:"},
		GrantedUsernames: []string{"system:node:"},
		GrantedGroups:    []string{"system:bootstrappers", "system:nodes", "system:node-proxier", "system:masters"},
	}
}

// Username returns an error if a username is reserved.
func (r Reserved) Username(name string) error {
	return r.check("username", name, r.GrantedUsernames)
}

// Group returns an error if a group is reserved.
func (r Reserved) Group(name string) error {
	return r.check("group", name, r.GrantedGroups)
}

func (r Reserved) check(what, name string, granted []string) error {
	if slices.ContainsFunc(granted, func(g string) bool { return grants(g, name) }) {
		return nil
	}
	return r.refuse(what, name, name)
}

// refuse returns an error if a name has a reserved prefix.
func (r Reserved) refuse(what, name, written string) error {
	for _, prefix := range r.Prefixes {
		if prefix != "" && strings.HasPrefix(name, prefix) {
			return fmt.Errorf("the %s %s begins with %s, which is reserved and not granted", what, quote(written), quote(prefix))
		}
	}
	return nil
}

// always returns an error if a template can only give reserved names, with any values.
func (r Reserved) always(what, text string, granted []string) error {
	template, err := ParseTemplate(text)
	if err != nil {
		return nil // entries with such templates are left out, and reported, when they are read
	}
	begin, whole := template.Literal()
	if whole {
		return r.check(what, begin, granted)
	}
	for _, g := range granted {
		if strings.HasPrefix(g, begin) || strings.HasSuffix(g, ":") && strings.HasPrefix(begin, g) {
			return nil
		}
	}
	return r.refuse(what, begin, text)
}

// grants reports whether an exception allows a name.
func grants(granted, name string) bool {
	if strings.HasSuffix(granted, ":") {
		return len(name) > len(granted) && strings.HasPrefix(name, granted)
	}
	return name == granted
}
