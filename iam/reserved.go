package iam

import (
	"fmt"
	"slices"
	"strings"
)

// Reserved says which usernames and groups no mapping may give. Kubernetes gives those
// that begin with "system:" a meaning of their own, so that who may write a mapping,
// or choose the name of a session, could become anybody.
type Reserved struct {
	// Prefixes begin the names that are reserved.
	Prefixes []string
	// GrantedUsernames are given nevertheless. One that ends in a colon grants the
	// names that begin with it and go on; any other grants itself.
	GrantedUsernames []string
	// GrantedGroups are given nevertheless, in the same manner.
	GrantedGroups []string
}

// DefaultReserved reserves "system:", and grants what nodes need and what makes an
// administrator.
func DefaultReserved() Reserved {
	return Reserved{
		Prefixes:         []string{"system:"},
		GrantedUsernames: []string{"system:node:"},
		GrantedGroups:    []string{"system:bootstrappers", "system:nodes", "system:node-proxier", "system:masters"},
	}
}

// Username returns an error if no mapping may give a username.
func (r Reserved) Username(name string) error {
	return r.check("username", name, r.GrantedUsernames)
}

// Group returns an error if no mapping may give a group.
func (r Reserved) Group(name string) error {
	return r.check("group", name, r.GrantedGroups)
}

func (r Reserved) check(what, name string, granted []string) error {
	if slices.ContainsFunc(granted, func(g string) bool { return grants(g, name) }) {
		return nil
	}
	return r.refuse(what, name, name)
}

// refuse returns an error if a name begins with a reserved prefix.
func (r Reserved) refuse(what, name, written string) error {
	for _, prefix := range r.Prefixes {
		if prefix != "" && strings.HasPrefix(name, prefix) {
			return fmt.Errorf("the %s %s begins with %s, which is reserved and not granted", what, quote(written), quote(prefix))
		}
	}
	return nil
}

// always returns an error if a template gives no name that is granted, whatever its
// placeholders stand for.
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

// grants reports whether an entry of a list of granted names grants a name.
func grants(granted, name string) bool {
	if strings.HasSuffix(granted, ":") {
		return len(name) > len(granted) && strings.HasPrefix(name, granted)
	}
	return name == granted
}
